"""Sets up the machine around the agent: its limits, its power-off timer and its CloudWatch agent."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.credentials import CredentialsExpired
from contract import names
from contract.jobs import Job
from contract.sessions import SessionCredentials

ARM = "opt/trainyard/arm-power-off"
CLOUDWATCH = "opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl"
CLOUDWATCH_COMMON = "opt/aws/amazon-cloudwatch-agent/etc/common-config.toml"
PROFILE = "trainyard"
KEYS_EVERY_S = 300.0
"""How often the CloudWatch agent gets the newest credentials; they are renewed half an hour before they expire."""
SYSTEM_LOGS = ("/var/log/messages", "/var/log/syslog", "/var/log/cloud-init-output.log")
"""Log files to ship where the image has them. On Amazon Linux 2023 none has the kernel's lines, which agent.kernel ships."""
GPU = ("utilization_gpu", "utilization_memory", "memory_used", "temperature_gpu", "power_draw")


def raise_limits(note: Callable[[str], None]) -> None:
    """Raises the limits of the agent and of all that it starts. cloud-init's children may open 1,024 files, too few for data
    loaders, and lock 8 MiB of memory, too little for RDMA (EFA) and pinned buffers."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    _set_limit(resource.RLIMIT_NOFILE, (files, files), "open files", note)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    _set_limit(resource.RLIMIT_MEMLOCK, unlimited, "locked memory", note)


def _set_limit(which: int, wanted: tuple[int, int], what: str, note: Callable[[str], None]) -> None:
    try:
        resource.setrlimit(which, wanted)
    except (OSError, ValueError) as problem:
        note(f"the limit of {what} stays at {resource.getrlimit(which)[0]}: {problem}")


def give_way(nice: int) -> None:
    """Makes this thread, and those that it starts, as nice as that; others of the process stay as they are."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)


def power_off_at(root: Path, epoch: float, note: Callable[[str], None]) -> None:
    """Moves the timer that user data armed. After a failure the machine powers off at the earlier time, which is safe."""
    try:
        done = subprocess.run(
            [str(root / ARM), str(math.ceil(epoch))], capture_output=True, timeout=60, text=True, check=False
        )
        trouble = done.stderr.strip() if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as problem:
        trouble = str(problem)
    if trouble:
        note(f"the power-off timer stays where it was: {trouble}")


def cloudwatch_settings(job: Job, attempt: int, rank: int) -> dict[str, Any]:
    """The CloudWatch agent's settings: system logs to the job's log group, and GPU metrics of all GPUs of the job together.

    Each combination of dimensions is a metric of its own, billed by the hour: one for each GPU would cost 30 times as much as all else that
    the control plane does for the job. Minimum and maximum still show a GPU that idles.
    """
    stream = f"{names.log_stream(job.id, attempt, rank)}/system"
    files = [{"file_path": file, "log_group_name": job.log_group, "log_stream_name": stream} for file in SYSTEM_LOGS]
    gpu = {"measurement": list(GPU), "append_dimensions": {"job": job.id}, "drop_original_metrics": list(GPU)}
    return {
        "agent": {"region": job.home_region, "metrics_collection_interval": 60},
        "logs": {"logs_collected": {"files": {"collect_list": files}}},
        "metrics": {
            "namespace": names.node_metrics(job.deployment),
            "metrics_collected": {"nvidia_gpu": gpu},
            "aggregation_dimensions": [["job"]],
        },
    }


def start_cloudwatch(root: Path, folder: Path, settings: dict[str, Any], **ways: Any) -> None:
    """Starts `run_cloudwatch` in a thread of its own."""
    arguments = (root, folder, settings)
    threading.Thread(target=run_cloudwatch, args=arguments, kwargs=ways, name="cloudwatch", daemon=True).start()


def run_cloudwatch(
    root: Path,
    folder: Path,
    settings: dict[str, Any],
    *,
    credentials: Callable[[], SessionCredentials],
    sleep: Callable[[float], None],
    note: Callable[[str], None],
) -> None:
    """Starts the CloudWatch agent where the image has it, and gives it the job's newest credentials for as long as the node lives. Logs a
    failure, and waits while the credentials are expired. Never returns where the agent runs."""
    control = root / CLOUDWATCH
    if not control.exists():
        return
    started = False
    while True:
        try:
            _write_credentials(root, folder, credentials())
            if not started:
                _start_cloudwatch(control, folder, settings)
                started = True
        except Exception as problem:
            if not started and not isinstance(problem, CredentialsExpired):
                note(f"no system logs and GPU metrics: the CloudWatch agent did not start ({problem})")
                return
            note(
                f"the CloudWatch agent keeps its credentials: {problem}"
                if started
                else f"no CloudWatch agent yet: {problem}"
            )
        sleep(KEYS_EVERY_S)


def _write_credentials(root: Path, folder: Path, credentials: SessionCredentials) -> None:
    """Writes the credentials as a profile that the agent's common settings name; it reads the file again and again."""
    file = folder / "cloudwatch-keys"
    new = file.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(
        f"[{PROFILE}]\naws_access_key_id = {credentials.access_key}\naws_secret_access_key = {credentials.secret_key}\n"
        f"aws_session_token = {credentials.token}\n",
        "utf-8",
    )
    new.replace(file)
    common = root / CLOUDWATCH_COMMON
    common.parent.mkdir(parents=True, exist_ok=True)
    common.write_text(
        f'[credentials]\n  shared_credential_profile = "{PROFILE}"\n  shared_credential_file = "{file}"\n', "utf-8"
    )


def _start_cloudwatch(control: Path, folder: Path, settings: dict[str, Any]) -> None:
    file = folder / "cloudwatch.json"
    file.write_text(json.dumps(settings), "utf-8")
    subprocess.run(
        [str(control), "-a", "fetch-config", "-m", "ec2", "-s", "-c", f"file:{file}"],
        capture_output=True,
        timeout=120,
        check=True,
    )

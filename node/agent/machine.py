"""Sets up the machine around the agent: its limits, its power-off timer and its CloudWatch agent."""

from __future__ import annotations

import json
import math
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract import names
from contract.jobs import Job

ARM = "opt/trainyard/arm-power-off"
CLOUDWATCH = "opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl"
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
    """The CloudWatch agent's settings: system logs to the job's log group, GPU metrics with job and rank as dimensions."""
    stream = f"{names.log_stream(job.id, attempt, rank)}/system"
    files = [{"file_path": file, "log_group_name": job.log_group, "log_stream_name": stream} for file in SYSTEM_LOGS]
    gpu = {"measurement": list(GPU), "append_dimensions": {"job": job.id, "rank": str(rank)}}
    return {
        "agent": {"region": job.home_region, "metrics_collection_interval": 60},
        "logs": {"logs_collected": {"files": {"collect_list": files}}},
        "metrics": {"namespace": names.node_metrics(job.deployment), "metrics_collected": {"nvidia_gpu": gpu}},
    }


def start_cloudwatch(root: Path, folder: Path, settings: dict[str, Any], note: Callable[[str], None]) -> None:
    """Starts the CloudWatch agent where the image has it. A failure is only logged."""
    control = root / CLOUDWATCH
    if not control.exists():
        return
    try:
        file = folder / "cloudwatch.json"
        file.write_text(json.dumps(settings), "utf-8")
        subprocess.run(
            [str(control), "-a", "fetch-config", "-m", "ec2", "-s", "-c", f"file:{file}"],
            capture_output=True,
            timeout=120,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as problem:
        note(f"no system logs and GPU metrics: the CloudWatch agent did not start ({problem})")

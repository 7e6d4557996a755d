"""Says how docker is to run a job's container: facts in, a list of arguments out. No shell reads it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NAME = "trainyard"
"""The container's name: a machine has one at a time."""
FILES, STACK = 1_048_576, 64 * 1024**2
LIMITS = ("memlock=-1:-1", f"nofile={FILES}:{FILES}", f"stack={STACK}:{STACK}")
OOM_SCORE = 500
"""As of commands outside of containers: where memory is full, the kernel ends the trainer and not the agent."""
ENV_LINE = 60_000
"""The most bytes of a line of an environment file: docker reads at most 64 KiB."""
DOCKERS_OWN = re.compile(
    r"(LD|GLIBC|MALLOC|DOCKER|BUILDKIT|OTEL|GO|XDG|SSL_CERT)_?\w*|PATH|HOME|TMPDIR|(HTTPS?|NO|ALL)_PROXY", re.IGNORECASE
)
"""Variables that docker's client or its loader obeys. Docker takes what no line can hold from its own environment: with these a job
would run code of its own as root outside of its container."""
MEANING: Mapping[str, str] = {
    "--name": "The name by which the agent asks about the container and ends it.",
    "--pull": "`never`: what runs is what the agent has pulled by its digest.",
    "--log-driver": "`none`: the daemon keeps no second copy of the output, which would fill its disk; the agent is attached to it.",
    "--init": "A small process 1 that passes signals on and reaps orphans. A trainer as process 1 would ignore SIGTERM without a handler.",
    "--no-healthcheck": "A health check of the image would run beside the training, and its result has no reader.",
    "--network": "`host`: rank 0 listens at the address that every node has, and libraries see the machine's network cards.",
    "--shm-size": "Bytes of /dev/shm, half of the machine's memory as outside of containers; docker's 64 MiB are too few for data loaders.",
    "--ulimit": "Locked memory without limit (RDMA, pinned buffers), a million open files, stacks of 64 MiB.",
    "--pids-limit": "Three quarters of the machine's processes and threads, so that one which forks for ever leaves some to the agent.",
    "--oom-score-adj": "Where memory is full, the kernel ends the container's processes first.",
    "--gpus": "`all`: every GPU of the machine, by the NVIDIA container toolkit. Only on types that have some.",
    "--device": "A device file of the machine: EFA (uverbs), NVIDIA, Neuron, GDRCopy. Only those that the machine shows. "
    "GPUs that the toolkit alone gave are lost to the container when systemd reads its units anew.",
    "--mount": "A folder of the job, or a file system that it mounts. What is missing on the machine is an error and makes no folder.",
    "--env-file": "The training's environment. Docker's own command line, which every process of the machine can read, has no value.",
    "--env": "The name of a variable whose value does not fit into a line of that file; docker takes it from its own environment. With "
    "`job_role` also the names that would lead SDKs to other credentials, without a value: the image's own values are taken away.",
    "--workdir": "The folder of the request's code, where there is one; otherwise the image's own.",
    "--entrypoint": "The first word of the request's command, in place of the image's entry point.",
}
"""What each option means that the agent gives to `docker run` (docker's reference, "docker container run")."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder of the machine, and where the container has it."""

    source: Path
    target: str
    read_only: bool = False

    def __str__(self) -> str:
        """Written as CSV, as docker reads it: a path may have a comma."""
        fields = [
            "type=bind",
            f"source={self.source}",
            f"target={self.target}",
            *(["readonly"] if self.read_only else []),
        ]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(fields)
        return line.getvalue()


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What of the machine a container gets."""

    gpus: bool = False
    devices: tuple[tuple[Path, str], ...] = ()
    """Device file of the machine, and its path in the container."""
    shared_bytes: int = 64 * 1024**2
    most_processes: int = 24_576


@dataclass(frozen=True, kw_only=True)
class DockerEnvironment:
    """The environment of a container, as docker takes it."""

    lines: tuple[str, ...]
    """Of the environment file."""
    passed: Mapping[str, str]
    """What no line can hold."""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> DockerEnvironment:
        lines = {name: f"{name}={value}" for name, value in variables.items()}
        whole = {name for name, line in lines.items() if _is_a_line(line)}
        return cls(
            lines=tuple(line for name, line in lines.items() if name in whole),
            passed={name: value for name, value in variables.items() if name not in whole},
        )


def _is_a_line(text: str) -> bool:
    """Whether docker reads it as it stands; it takes the end of a line for the end of the value, and only UTF-8."""
    if "\n" in text or "\r" in text:
        return False
    try:
        return len(text.encode()) <= ENV_LINE
    except UnicodeEncodeError:
        return False


def run(
    address: str,
    *,
    command: Sequence[str],
    arguments: Sequence[str],
    mounts: Sequence[Mount],
    environment_file: Path,
    passed: Sequence[str],
    folder: str,
    hardware: Hardware,
) -> list[str]:
    """Returns the words after `docker`. `command` runs in place of the image's entry point, which runs where it is empty; both get the
    arguments. `folder` is the working folder, empty for the image's own."""
    words = [
        "run",
        "--name",
        NAME,
        "--pull",
        "never",
        "--log-driver",
        "none",
        "--init",
        "--no-healthcheck",
        "--network",
        "host",
    ]
    words += ["--shm-size", str(hardware.shared_bytes)]
    for limit in LIMITS:
        words += ["--ulimit", limit]
    words += ["--pids-limit", str(hardware.most_processes), "--oom-score-adj", str(OOM_SCORE)]
    words += ["--gpus", "all"] if hardware.gpus else []
    for source, target in hardware.devices:
        words += ["--device", f"{source}:{target}"]
    for mount in mounts:
        words += ["--mount", str(mount)]
    words += ["--env-file", str(environment_file)]
    for name in passed:
        words += ["--env", name]
    words += ["--workdir", folder] if folder else []
    words += ["--entrypoint", command[0]] if command else []
    return [*words, address, *command[1:], *arguments]

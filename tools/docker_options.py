"""Where docker and NVIDIA document each option that the agent gives to `docker run`, what it takes, and what no rehearsal shows of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

DOCKER = "https://docs.docker.com/reference/cli/docker/container/run/"
NVIDIA = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"
ULIMITS = frozenset(
    {
        "core",
        "cpu",
        "data",
        "fsize",
        "locks",
        "memlock",
        "msgqueue",
        "nice",
        "nofile",
        "nproc",
        "rss",
        "rtprio",
        "rttime",
        "sigpending",
        "stack",
    }
)
"""Names that docker takes (go-units, which its reference names)."""


@dataclass(frozen=True, kw_only=True)
class Documented:
    """One option in the documentation."""

    takes: str
    """The type that the reference gives it."""
    fits: Callable[[str], bool]
    """Whether a value is one that the reference allows."""
    section: str = "options"
    """Part of the page that explains it; those without one stand in its table of options."""
    more: str = ""
    """Another page."""
    untested: str = ""
    """What only a real docker, or a machine with the hardware, shows."""

    @property
    def address(self) -> str:
        return f"{DOCKER}#{self.section}"


def _ulimit(value: str) -> bool:
    found = re.fullmatch(r"([a-z]+)=(-1|[0-9]+):(-1|[0-9]+)", value)
    return found is not None and found[1] in ULIMITS


def _mount(value: str) -> bool:
    return value.startswith("type=bind,source=/") and ",target=/" in value


def _path(value: str) -> bool:
    return value.startswith("/")


OPTIONS: Mapping[str, Documented] = {
    "--name": Documented(
        takes="string",
        fits=lambda value: re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", value) is not None,
        section="name",
    ),
    "--pull": Documented(
        takes="always, missing or never", fits=lambda value: value in ("always", "missing", "never"), section="pull"
    ),
    "--log-driver": Documented(
        takes="string",
        fits=lambda value: value == "none",
        section="log-driver",
        untested="that `docker run` still shows the output",
    ),
    "--init": Documented(takes="nothing", fits=lambda value: value == "", section="init", untested="docker's own init"),
    "--no-healthcheck": Documented(
        takes="nothing",
        fits=lambda value: value == "",
        section="no-healthcheck",
        untested="that no process of the image's check runs",
    ),
    "--network": Documented(
        takes="network",
        fits=lambda value: value == "host",
        section="network",
        untested="EFA and NCCL on the machine's cards",
    ),
    "--shm-size": Documented(takes="bytes", fits=str.isdigit, untested="the size in the container"),
    "--ulimit": Documented(takes="ulimit", fits=_ulimit, section="ulimit", untested="that the daemon may raise them"),
    "--pids-limit": Documented(takes="whole number", fits=str.isdigit, untested="the cgroup that counts"),
    "--oom-score-adj": Documented(
        takes="-1000 to 1000",
        fits=lambda value: value.isdigit() and int(value) <= 1000,
        untested="whom the kernel ends",
    ),
    "--gpus": Documented(
        takes="gpu-request",
        fits=lambda value: value == "all",
        section="gpus",
        more=NVIDIA,
        untested="the whole of it: an image that sets no NVIDIA_DRIVER_CAPABILITIES gets the toolkit's default, compute and utility",
    ),
    "--device": Documented(
        takes="list",
        fits=lambda value: re.fullmatch(r"/[^:]+:/dev/[^:]+", value) is not None,
        section="device",
        untested="EFA, Neuron and GDRCopy through it",
    ),
    "--mount": Documented(
        takes="mount",
        fits=_mount,
        section="mount",
        untested="labels of SELinux, which the machine's image does not enforce",
    ),
    "--env-file": Documented(
        takes="list", fits=_path, untested="the longest line, which is read from docker's sources"
    ),
    "--env": Documented(takes="list", fits=lambda value: "=" not in value and value != "", section="env"),
    "--workdir": Documented(takes="string", fits=_path, section="workdir"),
    "--entrypoint": Documented(takes="string", fits=lambda value: value != ""),
}

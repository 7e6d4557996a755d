"""A child process with its wall time and its peak memory, as the kernel counted them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class Failed(RuntimeError):
    """The process ended with an error; the message has the end of what it printed."""


@dataclass(frozen=True, slots=True)
class Measured:
    seconds: float
    peak_mb: float
    """Largest resident set, 1 MB = 1,000,000 bytes; never less than what this process held when it started the other."""
    output: str
    """Standard output."""
    began: float
    """When it was started, by `time.monotonic`."""
    cpu_s: float


def measured(command: Sequence[str], *, variables: Mapping[str, str], work: Path) -> Measured:
    """Runs the command to its end. Raises Failed."""
    with (work / "stdout").open("w+") as stdout, (work / "stderr").open("w+") as stderr:
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=dict(variables), cwd=work)
        _, status, usage = os.wait4(child.pid, 0)
        took = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        if child.returncode:
            raise Failed(f"{command[0]} ended with {child.returncode}:\n{stderr.read()[-2000:]}")
        cpu_s = usage.ru_utime + usage.ru_stime
        return Measured(took, usage.ru_maxrss * 1024 / 1e6, stdout.read(), began, cpu_s)

"""A container's end is the end of all its processes, also of those that left its group or its session."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from localaws.containers.container import Container
from localaws.testing.waiting import HANG_S, lives, until

pytestmark = pytest.mark.rehearsal
LEAVES = """
import subprocess, sys, time
middle = "import subprocess, sys; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True)"
subprocess.run([sys.executable, "-c", middle])
time.sleep(float(sys.argv[1]))
sys.exit(3)
"""
"""Its parent is gone, and it has a session of its own: as the workers of torchrun and the ranks of mpirun."""


def begin(folder: Path, seconds: str) -> tuple[Container, int]:
    lines: list[str] = []
    container = Container([sys.executable, "-c", LEAVES, seconds], {"PATH": os.environ["PATH"]}, folder, lines.append)
    until(lambda: lines)
    return container, int(lines[0])


def test_a_process_in_a_session_of_its_own_ends_with_the_command(tmp_path: Path) -> None:
    container, pid = begin(tmp_path, "0")
    assert container.wait(HANG_S) == 3
    assert not lives(pid)


def test_a_process_in_a_session_of_its_own_ends_with_a_kill(tmp_path: Path) -> None:
    container, pid = begin(tmp_path, "600")
    assert lives(pid)
    container.kill()
    assert container.wait(HANG_S) == 128 + 9
    assert not lives(pid)

"""What runs one process under torchrun: the code that it writes, and the signals that it hands on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.launching import torchrun
from agent.launching.process_ends import ENDED_BY_LAUNCHER, ProcessEnd, find_cause, read_ends
from localaws.testing.waiting import HANG_S, until

COUNTS = """
trap 'echo asked >>"$0"' TERM
echo >>"$0.runs"
until [ -e "$0.over" ]; do sleep 0.01; done
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torchrun.lay_out(tmp_path / "launcher")
    return tmp_path / "launcher"


def start(folder: Path, *words: str, leads: bool = True, rank: int = 3) -> subprocess.Popen[str]:
    """As torchrun does. `leads`: in a session of its own, as today's torchrun, or in torchrun's own group."""
    return subprocess.Popen(
        [sys.executable, "-u", str(folder / torchrun.WORKER), *words],
        env={**os.environ, "RANK": str(rank)}, cwd=folder.parent, start_new_session=leads,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def run(folder: Path, *words: str) -> tuple[int, str]:
    child = start(folder, *words)
    said, _ = child.communicate(timeout=HANG_S)
    return child.returncode, said


def read_codes(folder: Path) -> list[tuple[int, int]]:
    return [(one.rank, one.code) for one in read_ends(folder)]


@pytest.mark.parametrize("code", [0, 1, 75, 137, 255])
def test_a_process_ends_with_its_own_code_and_leaves_it(folder: Path, code: int) -> None:
    assert run(folder, "sh", "-c", f"exit {code}") == (code, "")
    assert read_codes(folder) == [(3, code)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_a_signal_ended_ends_so_for_torchrun_too(folder: Path, number: signal.Signals) -> None:
    assert run(folder, "sh", "-c", f"kill -{number.value} $$")[0] == -number
    assert read_codes(folder) == [(3, 128 + number)]


def test_a_script_runs_in_torchruns_own_python_and_a_program_as_it_stands(folder: Path) -> None:
    (folder.parent / "train.py").write_text("import sys; print(sys.executable, sys.argv, sys.stdout.write_through)")
    assert run(folder, "train.py", "-x", "a b") == (0, f"{sys.executable} ['train.py', '-x', 'a b'] True\n")
    assert run(folder, "echo", "train.py") == (0, "train.py\n")


@pytest.mark.parametrize(
    ("mode", "code", "why"), [(None, 127, "No such file or directory"), (0o644, 126, "Permission denied")]
)
def test_a_program_that_cannot_be_started_is_named(folder: Path, mode: int | None, code: int, why: str) -> None:
    if mode is not None:
        (folder.parent / "program").write_text("#!/bin/sh\n")
        (folder.parent / "program").chmod(mode)
    ended, said = run(folder, "./program")
    assert (ended, said) == (code, f"trainyard: the command './program' cannot be started: {why}\n")
    assert read_codes(folder) == [(3, code)]


def test_a_process_has_the_signals_that_any_other_has(folder: Path) -> None:
    """Python ignores a broken pipe for itself, and blocks what it waits for; a shell could change neither. A suite in the background
    ignores some already."""
    inherited = sum(1 << one - 1 for one in (1, 2, 3) if signal.getsignal(one) is signal.SIG_IGN)
    code, said = run(folder, "grep", "-E", "SigBlk|SigIgn", "/proc/self/status")
    blocked, ignored = (int(line.split()[1], 16) for line in said.splitlines())
    assert (code, blocked, ignored & (1 << 31) - 1) == (0, 0, inherited), "glibc has two signals above these for itself"


@contextmanager
def started(folder: Path, *, leads: bool) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that notes each SIGTERM, and ends when the test is over."""
    notes = folder.parent / "notes"
    child = start(folder, "sh", "-c", COUNTS, str(notes), leads=leads)
    until(Path(f"{notes}.runs").exists)
    try:
        yield child, notes
    finally:
        Path(f"{notes}.over").touch()
        child.communicate(timeout=HANG_S)


def test_a_signal_to_the_whole_group_reaches_the_process_once(folder: Path) -> None:
    with started(folder, leads=True) as (child, notes):
        os.killpg(child.pid, signal.SIGTERM)
        until(notes.exists)
    assert (child.returncode, notes.read_text()) == (0, "asked\n")


def test_a_signal_of_an_older_torchrun_which_knows_no_groups_reaches_the_process(folder: Path) -> None:
    with started(folder, leads=False) as (child, notes):
        child.terminate()
        until(notes.exists)
    assert (child.returncode, notes.read_text()) == (0, "asked\n")


def test_a_process_that_is_killed_from_without_leaves_no_code(folder: Path) -> None:
    run(folder, "sh", "-c", "kill -9 $PPID")
    assert read_codes(folder) == []


@pytest.mark.parametrize(
    ("ends", "rank"),
    [
        ((), None),
        (((1, 0, 0), (2, 1, 0)), None),
        (((1, 0, ENDED_BY_LAUNCHER),), None),
        (((1, 0, ENDED_BY_LAUNCHER), (2, 1, 75), (3, 2, 1)), 1),
        (((1, 2, 1), (2, 1, 75)), 2),
    ],
)
def test_the_first_failure_that_no_launcher_brought_about_is_the_cause(
    ends: Sequence[tuple[float, int, int]], rank: int | None
) -> None:
    cause = find_cause(ProcessEnd(*one) for one in ends)
    assert (cause.rank if cause else None) == rank


@pytest.mark.parametrize("text", ["", "x", "1.5", "\xff"])
def test_what_the_code_of_a_job_writes_in_place_of_a_code_is_none(folder: Path, text: str) -> None:
    (folder / "codes/0").write_text(text, "latin-1")
    (folder / "codes/name").write_text("75")
    (folder / "codes/1").symlink_to("/etc/hostname")
    assert read_codes(folder) == []

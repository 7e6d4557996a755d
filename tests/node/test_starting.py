"""Commands that do not start: what the node says of each, and that it says nothing of one that does."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from agent.failures import CannotStart
from agent.training import ChildProcess
from localaws.testing.waiting import HANG_S

SCRIPT = b"#!/bin/sh\nexit 0\n"
OTHER = {"x86_64": (183, "aarch64")}.get(platform.machine(), (62, "x86_64"))


def elf(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0" + machine.to_bytes(2, "little") + bytes(44)


def refusal(folder: Path, program: str) -> str:
    with pytest.raises(CannotStart) as problem:
        ChildProcess([program], folder=folder, environment=os.environ, on_line=print)
    return str(problem.value)


def put(folder: Path, content: bytes, mode: int = 0o755) -> str:
    (folder / "run.sh").write_bytes(content)
    (folder / "run.sh").chmod(mode)
    return "./run.sh"


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (
            b"#!/bin/sh\r\nexit 0\r\n",
            0o755,
            "has a first line that ends with a carriage return; allowed: Unix line ends",
        ),
        (b"#!/usr/bin/env sh\r\n", 0o755, "has a first line that ends with a carriage return"),
        (
            b"#!/usr/bin/pyhton3\n",
            0o755,
            "has a first line that names '/usr/bin/pyhton3', which this machine does not have",
        ),
        (b"\xef\xbb\xbf#!/bin/sh\n", 0o755, "begins with a byte order mark; allowed: UTF-8 without one"),
        (b"exit 0\n", 0o755, "does not begin with #! and what runs it; allowed: a first line such as #!/bin/bash"),
        (b"", 0o755, "does not begin with #! and what runs it"),
        (SCRIPT, 0o644, "is not executable; allowed: a file on which `chmod +x` was run"),
        (b"MZ\x90\0", 0o755, "is a program of Windows"),
        (elf(OTHER[0]), 0o755, f"is built for {OTHER[1]}, and this machine has {platform.machine()}"),
    ],
)
def test_a_file_that_does_not_run_is_told_with_its_cause(tmp_path: Path, content: bytes, mode: int, says: str) -> None:
    assert refusal(tmp_path, put(tmp_path, content, mode)).startswith(f"the command './run.sh' {says}")


def test_what_is_no_file_is_called_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe", 0o755)
    assert "'./folder' is a folder" in refusal(tmp_path, "./folder")
    assert "'./link' is a link to 'nowhere', which is not there" in refusal(tmp_path, "./link")
    assert "'./pipe' is not a file" in refusal(tmp_path, "./pipe")


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-file", "no/such/folder"])
def test_what_is_nowhere_is_told_so(tmp_path: Path, program: str) -> None:
    assert refusal(tmp_path, program) == f"the command {program!r} is neither on PATH nor a file of the code archive"


def test_a_file_of_the_code_that_is_named_like_a_program_is_told_how_to_run_it(tmp_path: Path) -> None:
    put(tmp_path, SCRIPT)
    assert refusal(tmp_path, "run.sh") == (
        "the command 'run.sh' is not on PATH; allowed: ./run.sh for the file of that name in the code archive"
    )


@pytest.mark.parametrize("content", [SCRIPT, b"#!/bin/sh\n# saved twice\r\n", b"#!/usr/bin/env -S sh -e\r\nexit 0\n"])
def test_a_file_that_runs_is_run(tmp_path: Path, content: bytes) -> None:
    child = ChildProcess([put(tmp_path, content)], folder=tmp_path, environment=os.environ, on_line=print)
    assert child.wait(HANG_S) == 0
    child.end()

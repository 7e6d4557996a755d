"""What the first bytes of a file say about running it, beside what this kernel does with the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from contract.executables import BYTE_ORDER_MARK, CARRIAGE_RETURN, FIRST_BYTES, NO_INTERPRETER, CannotRun, cannot_run

WRONG: dict[bytes, CannotRun] = {
    b"#!/bin/sh\r\nexit 0\r\n": CARRIAGE_RETURN,
    b"#!/bin/sh\r": CARRIAGE_RETURN,
    b"#!/bin/sh -e\r\n": CARRIAGE_RETURN,
    b"#!/usr/bin/env sh\r\n": CARRIAGE_RETURN,
    b"#! /bin/sh\rexit 0\r": CARRIAGE_RETURN,
    b"#!\r\n": CARRIAGE_RETURN,
    b"\xef\xbb\xbf#!/bin/sh\n": BYTE_ORDER_MARK,
    "#!/bin/sh\n".encode("utf-16"): BYTE_ORDER_MARK,
    b"exit 0\n": NO_INTERPRETER,
    b"": NO_INTERPRETER,
    b"#!\n": NO_INTERPRETER,
    b"\n#!/bin/sh\n": NO_INTERPRETER,
}
RIGHT = (
    b"#!/bin/sh\n",
    b"#!/bin/sh\n# a comment\r\n",
    b"#! /bin/sh -e\nexit 0\n",
    b"#!/bin/sh",
    b"#!/usr/bin/env sh\nexit 0\n",
)


def runs(file: Path) -> bool:
    try:
        return subprocess.run([str(file)], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel that runs files is Linux's")
@pytest.mark.parametrize(("head", "why"), [*WRONG.items(), *((head, None) for head in RIGHT)])
def test_what_cannot_run_is_what_this_kernel_does_not_run(tmp_path: Path, head: bytes, why: CannotRun | None) -> None:
    file = tmp_path / "run"
    file.write_bytes(head)
    file.chmod(0o755)
    assert cannot_run(head[:FIRST_BYTES]) == why
    assert runs(file) is (why is None)


@pytest.mark.parametrize(
    "head",
    [
        b"#!/usr/bin/env -S python3 -u\r\n",
        b"#!/usr/bin/perl -w\r\n",
        b"#!/opt/tool -x\r\n",
        b"#!/opt/interpreter-of-tomorrow\n",
        b"#!" + b"/long" * 60,
        b"\x7fELF\x02",
        b"\0asm\1\0\0\0",
    ],
)
def test_what_some_machine_may_run_is_not_judged(head: bytes) -> None:
    assert cannot_run(head[:FIRST_BYTES]) is None


@pytest.mark.parametrize(
    ("head", "system"), [(b"MZ\x90\0", "Windows"), (b"\xcf\xfa\xed\xfe", "macOS"), (b"\xca\xfe\xba\xbe", "macOS")]
)
def test_a_program_of_another_system_is_called_so(head: bytes, system: str) -> None:
    assert cannot_run(head) == CannotRun(f"is a program of {system}", "a program that is built for Linux")

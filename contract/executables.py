"""Says by the first bytes of a file why Linux does not run it as a program."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

FIRST_BYTES = 256
"""How much of a file the kernel reads to find out how to run it."""
MARK = b"#!"
BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ELF = b"\x7fELF"
FOREIGN = {
    b"\xcf\xfa\xed\xfe": "macOS",
    b"\xca\xfe\xba\xbe": "macOS",
    b"MZ": "Windows",
}
EXECUTABLE = (
    "a file on which `chmod +x` was run before it was packed on Linux or macOS, or its interpreter in front of it"
)
MACHINES = {3: "i686", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""What an ELF file calls the processors that it is for, by their names of `uname -m`."""
STRICT = re.compile(rb"(.*/)?(env (?!-S).*|((ba|da|k|z)?sh|python[0-9.]*) .*)", re.DOTALL)
"""Interpreters, with what they are given, that take a carriage return for a part of it. `env -S` does not, nor does Perl."""


class CannotRun(NamedTuple):
    """Why no machine runs a file."""

    problem: str
    """The second half of a sentence about the file."""
    allowed: str


CARRIAGE_RETURN = CannotRun(
    "has a first line that ends with a carriage return", "Unix line ends, as `dos2unix` makes them"
)
BYTE_ORDER_MARK = CannotRun("begins with a byte order mark", "UTF-8 without one")
NO_INTERPRETER = CannotRun(
    "does not begin with #! and what runs it",
    "a first line such as #!/bin/bash, or its interpreter in front of it",
)


def cannot_run(head: bytes) -> CannotRun | None:
    """Returns why no machine runs a file that begins with `head`; None where one may."""
    if has_carriage_return(head):
        return CARRIAGE_RETURN
    if head.startswith(BYTE_ORDER_MARKS):
        return BYTE_ORDER_MARK
    if found := next((system for start, system in FOREIGN.items() if head.startswith(start)), ""):
        return CannotRun(f"is a program of {found}", "a program that is built for Linux")
    may_run = head.startswith(ELF) or b"\0" in head or _words(head) or (head.startswith(MARK) and not _is_whole(head))
    return None if may_run else NO_INTERPRETER


def has_carriage_return(head: bytes) -> bool:
    """Whether a script's interpreter, or what its first line gives to that, ends with a carriage return and so is not found."""
    words = _words(head)
    if not words:
        return False
    return b"\r" in words[0] or (words[-1].endswith(b"\r") and STRICT.fullmatch(b" ".join(words)) is not None)


def interpreter(head: bytes) -> str:
    """Returns the program that a script's first line names; empty where there is none."""
    words = _words(head)
    return words[0].decode(errors="replace") if words else ""


def _words(head: bytes) -> list[bytes]:
    """Splits what stands behind `#!` as the kernel does; none where that line does not end in `head`."""
    if not head.startswith(MARK) or not _is_whole(head):
        return []
    return [one for one in re.split(rb"[ \t]+", head.partition(b"\n")[0][len(MARK) :]) if one]


def _is_whole(head: bytes) -> bool:
    """Whether the first line ends in `head`."""
    return b"\n" in head or len(head) < FIRST_BYTES


def processors(head: bytes) -> str:
    """Returns the processors that a program is built for; empty where that is not known."""
    if not head.startswith(ELF) or len(head) < 20:
        return ""
    return MACHINES.get(int.from_bytes(head[18:20], "big" if head[5] == 2 else "little"), "")

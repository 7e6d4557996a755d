"""Ctrl-C outside of a command's own care: while modules are imported, while another program begins, and at the end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

LEFT = 130
"""Exit code, as shells have it for a process that Ctrl-C ended."""


def leave_at_once(_signal: int = signal.SIGINT, _frame: FrameType | None = None) -> NoReturn:
    """Ends the process with a line, and no traceback: nothing was begun yet, so nothing is to be put away."""
    os.write(sys.stderr.fileno(), b"interrupted; nothing was started\n")
    os._exit(LEFT)


def begin_command() -> None:
    """Has Ctrl-C be the command's own matter from now on: it raises KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is leave_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def hear_every_end() -> None:
    """Has a SIGTERM and a terminal that is closed end the command as Ctrl-C does, so that programs which it began are ended too."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is signal.SIG_DFL:
            signal.signal(one, signal.default_int_handler)


@contextmanager
def hold() -> Iterator[None]:
    """Has Ctrl-C wait until the end of the block, and then end it. Programs that begin in the block do not hear of it at all, where they
    do not want to: the CDK's would print tracebacks of their own. Both are needed: programs inherit the mask, and the system gives a
    signal that this thread masks to any other thread of the process."""
    heard = list[int]()
    before = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def explain(words: str) -> Iterator[None]:
    """Has Ctrl-C in the block end the command with these words."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(words) from None


def leave_quietly() -> NoReturn:
    """Ends the process after its last line. What libraries say while they put things away is left out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(os.devnull).open("wb") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere.fileno(), stream.fileno())
    sys.exit(LEFT)

"""Asks a program of the machine something, within a time, whatever state its driver is in."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

MOST_BYTES = 64 * 1024
"""Of an answer; the rest is read and dropped."""
LOOK_S = 0.2
"""How often a caller may end the wait."""
LAST_WORDS_S = 1.0
"""How long what a program has written is read after its end: something that it started may hold the pipe."""


@dataclass(frozen=True)
class Said:
    """What a program answered."""

    code: int | None
    """Its exit code, below 0 after a signal; None where it had not ended in time."""
    text: str = ""
    """Its output and its errors, as they came."""


def ask(command: Sequence[str], most_s: float, pause: Callable[[float], None] = lambda _: None) -> Said:
    """What the program says within so many seconds. One that cannot even be killed, because a driver holds it, is left behind. Its words
    come by a pipe: a full disk changes none of them. `pause` is called again and again meanwhile, with 0.0; whatever it raises ends the
    program first.

    Raises OSError where it cannot be started.
    """
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    heard = bytearray()
    reader = threading.Thread(target=_read, args=(process.stdout, heard), name="answer", daemon=True)
    reader.start()
    code: int | None = None
    try:
        code = _ended(process, time.monotonic() + most_s, pause)
    finally:
        if code is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    reader.join(LAST_WORDS_S)
    return Said(code, bytes(heard).decode("utf-8", "replace"))


def _ended(process: subprocess.Popen[bytes], until: float, pause: Callable[[float], None]) -> int | None:
    """Its exit code; None where it has not ended by then, in seconds of the monotonic clock."""
    while (left := until - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, LOOK_S))
        pause(0.0)
    return process.poll()


def _read(pipe: IO[bytes], heard: bytearray) -> None:
    while chunk := os.read(pipe.fileno(), 8192):
        heard += chunk[: max(0, MOST_BYTES - len(heard))]

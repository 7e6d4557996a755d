"""Runs a command in its own process group, hands on its output line by line, and ends all of its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from agent import dumps, starting
from agent.failures import CannotStart, Ordered
from agent.lines import Lines

TAIL_LINES, TAIL_WIDTH = 50, 1000
FIRST_TO_GO = "500"
"""The oom_score_adj of commands: where memory is full, the kernel ends the trainer, which reports an error, and not the agent."""
LINGER_S = 2.0
"""How long processes that the command left behind may still write."""


class RunningTraining(Protocol):
    """A training that was started."""

    why: str
    """What is known of its end beside its exit code, to be read after it."""
    ended_s: float
    """For how many seconds it had ended when `wait` returned its exit code."""

    @property
    def pid(self) -> int: ...

    @property
    def heard_at(self) -> float: ...

    @property
    def tail(self) -> deque[str]: ...

    def wait(self, timeout_s: float) -> int | None: ...

    def stop(self, first: signal.Signals, grace_s: float) -> int: ...

    def end(self, linger_s: float = LINGER_S) -> int: ...


class WrappedTraining:
    """What all trainings have that run another one and make more of its end."""

    def __init__(self, inner: RunningTraining) -> None:
        self._inner, self.why, self.ended_s = inner, "", 0.0

    @property
    def pid(self) -> int:
        return self._inner.pid

    @property
    def heard_at(self) -> float:
        return self._inner.heard_at

    @property
    def tail(self) -> deque[str]:
        return self._inner.tail


class ChildProcess:
    """A command, started at once. Raises CannotStart where it cannot be run."""

    def __init__(
        self, command: Sequence[str], *, folder: Path, environment: Mapping[str, str], on_line: Callable[[str], None]
    ) -> None:
        self._on_line, self.why, self.ended_s = on_line, "", 0.0
        self.heard_at = time.monotonic()
        """When it last wrote anything, half a line too."""
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        program = command[0]
        if why := starting.unrunnable(program, folder, environment):
            raise CannotStart(why)
        try:
            self._process = subprocess.Popen(
                list(command),
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            raise CannotStart(starting.cause(program, folder, environment, problem)) from None
        with suppress(OSError):  # not every system has it
            Path(f"/proc/{self._process.pid}/oom_score_adj").write_text(FIRST_TO_GO)
        self._reader = threading.Thread(target=self._read, name="output", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, 128 + n after signal n; None while the command runs."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code

    def wait_unless(self, came: threading.Event, look_s: float) -> int:
        """The exit code, once all of its processes have ended. Raises Ordered where the event comes first, and ends them."""
        while (code := self.wait(look_s)) is None:
            if came.is_set():
                self.end(0.0)
                raise Ordered
        self.end()
        return code

    def stop(self, first: signal.Signals, grace_s: float) -> int:
        """Sends `first` to every process of the group, and SIGKILL to those that are left after `grace_s` seconds.

        The group counts, not the command alone: a shell dies of SIGTERM at once while its trainer still saves.
        """
        until = time.monotonic() + grace_s
        self._signal(first)
        while time.monotonic() < until and not self._is_gone():
            self.wait(0.05)
            self._reader.join(0.0 if self._process.returncode is None else 0.05)
        return self.end(0.0)

    def end(self, linger_s: float = LINGER_S) -> int:
        """Kills what is left of the command's processes, and reads its last lines. Returns the exit code."""
        self._reader.join(linger_s)
        self._kill()
        code = None
        while code is None:
            code = self.wait(1.0)
        self._reader.join(LINGER_S)
        return code

    def _is_gone(self) -> bool:
        # A process of the group that still runs keeps the pipe open, so the pipe's end proves that none does, zombies included.
        return self._process.poll() is not None and not self._reader.is_alive()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return

    def _kill(self) -> None:
        """Kills its group, and what descends from it or is in its session: torchrun and mpirun give their processes groups of their own."""
        with suppress(OSError):  # not every system has /proc
            for one in dumps.processes(self._process.pid):
                if one != self._process.pid:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(one, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def _read(self) -> None:
        lines, pipe = Lines(), self._process.stdout
        assert pipe is not None
        while chunk := os.read(pipe.fileno(), 65536):
            self.heard_at = time.monotonic()
            self._take(lines.feed(chunk, self.heard_at))
        self._take(lines.end())

    def _take(self, lines: list[str]) -> None:
        for line in lines:
            self.tail.append(line[:TAIL_WIDTH])
            self._on_line(line)


def described(code: int) -> str:
    """The exit code in words for a person."""
    if code <= 128:
        return f"exited with code {code}"
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return f"exited with code {code}"
    hint = "; often the machine's memory was full" if name == "SIGKILL" else ""
    return f"was ended by {name} (code {code}{hint})"

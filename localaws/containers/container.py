"""A container of the rehearsal: a process tree in a folder of its own; its lines are read, and it is stopped as an orchestrator does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

INIT = Path(__file__).with_name("init.py")
BASIC = "/usr/local/bin:/usr/bin:/bin"
KILLED = 128 + signal.SIGKILL
LINES_S = 2.0
"""How long to wait for its last lines: a process that left the group could hold the pipe open for ever."""


class Container:
    """Starts running at once; `say` receives each printed line, in a thread of its own."""

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], folder: Path, say: Callable[[str], None]
    ) -> None:
        """Passes nothing of the person's own environment to the container."""
        self._say = say
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(INIT), *command],
            env=dict(variables),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, None while the container runs."""
        return self._process.poll()

    def wait(self, limit_s: float | None = None) -> int | None:
        """Returns the exit code once all lines are read; None if the container still runs after `limit_s`."""
        try:
            code = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(LINES_S)
        return code

    def terminate(self) -> None:
        """Sends SIGTERM to the command, which decides how to react."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Kills everything at once."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def end(self, grace_s: float) -> int:
        """Sends SIGTERM, waits `grace_s`, sends SIGKILL; returns the exit code."""
        self.terminate()
        if (code := self.wait(grace_s)) is None:
            self.kill()
            code = self.wait()
        return KILLED if code is None else code

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as told:
            for line in told:
                self._say(line.decode(errors="replace").rstrip("\n"))


def slim_python(folder: Path) -> Path:
    """Makes a folder for PATH whose `python` has only its standard library; packages come by PYTHONPATH."""
    for name in ("python", "python3"):
        script = folder / name
        if not script.exists():
            folder.mkdir(parents=True, exist_ok=True)
            beside = script.with_name(f"{name}.{os.getpid()}.{threading.get_ident()}")
            beside.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
            beside.chmod(0o755)
            beside.replace(script)
    return folder

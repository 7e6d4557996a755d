"""The container as the agent's child: docker hands on its output and its exit code; orders go to the daemon, which outlives docker."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.container.docker import Docker
from agent.failures import CannotStart, MachineTrouble
from agent.training import LINGER_S, ChildProcess

NEVER = "0001-01-01T00:00:00Z"
"""When a container was started that never was."""
REFUSED = 125
"""Docker's own exit code where it could not even make the container."""
LOOK_S = 0.2
WORDS = 1000


class ContainerProcess:
    """Started at once, with the methods of ChildProcess. Raises CannotStart where docker itself cannot be run."""

    def __init__(
        self,
        docker: Docker,
        words: Sequence[str],
        *,
        folder: Path,
        passed: Mapping[str, str],
        on_line: Callable[[str], None],
    ) -> None:
        """`words` are those after `docker`; `passed` are variables that it takes from its own environment."""
        self._docker, self._over, self._pid = docker, False, 0
        self.why = ""
        """What docker says of the end, beside its exit code."""
        self._client = ChildProcess(
            docker.words(*words), folder=folder, environment={**docker.variables, **passed}, on_line=on_line
        )

    @property
    def pid(self) -> int:
        """Of its first process, as the machine sees it; docker's own as long as there is none."""
        if not self._pid:
            self._pid = int((self._docker.state() or {}).get("Pid") or 0)
        return self._pid or self._client.pid

    @property
    def heard_at(self) -> float:
        return self._client.heard_at

    @property
    def tail(self) -> deque[str]:
        return self._client.tail

    def wait(self, timeout_s: float) -> int | None:
        """The exit code; None while the container runs. Raises CannotStart or MachineTrouble where it never ran."""
        code = self._client.wait(timeout_s)
        return None if code is None else self._judged(code)

    def stop(self, first: signal.Signals, grace_s: float) -> int:
        """Sends `first` to its first process, and ends all of them where it still runs after `grace_s` seconds."""
        until = time.monotonic() + grace_s
        self._docker.signal(first)
        while time.monotonic() < until:
            if (code := self.wait(LOOK_S)) is not None:
                return code
        return self.end(0.0)

    def end(self, linger_s: float = LINGER_S) -> int:
        """Ends it with all of its processes, and reads its last lines. Returns the exit code."""
        if not self._over:
            self._docker.signal(signal.SIGKILL)
            if (code := self._client.wait(LINGER_S)) is not None:
                self._client.end(linger_s)
                return self._judged(code)
        return self._client.end(linger_s)

    def _judged(self, code: int) -> int:
        if self._over:
            return code
        self._over = True
        state = self._docker.state()
        if state is None:
            if code == REFUSED:
                raise MachineTrouble(f"docker could not make the container: {self._words()}")
            return code
        if state.get("Running"):
            self.why = ", and docker was gone before its container, which was ended"
            self._docker.signal(signal.SIGKILL)
        elif str(state.get("StartedAt") or NEVER) == NEVER:
            raise _never_ran(code, state, self._words())
        if state.get("OOMKilled"):
            self.why = "; docker says that memory was full"
        return code

    def _words(self) -> str:
        self._client.end(LINGER_S)
        return "\n".join(self._client.tail)[-WORDS:] or "it said nothing"


def _never_ran(code: int, state: Mapping[str, Any], said: str) -> Exception:
    """Docker made the container and could not start it: with 126 and 127 because of what was to run, otherwise because of the machine."""
    words = str(state.get("Error") or "") or said
    if code in (126, 127):
        return CannotStart(f"the image's command cannot be started: {words}")
    return MachineTrouble(f"docker could not start the container: {words}")

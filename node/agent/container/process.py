"""The container as the agent's child: docker hands on its output and its exit code; orders go to the daemon, which outlives docker."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.container import ends
from agent.container.docker import Docker
from agent.failures import MachineTrouble
from agent.training import LINGER_S, ChildProcess

LOOK_S = 0.2
ENDS_S = 10.0
"""How long docker may take to end a container: drivers take back the memory of eight GPUs in seconds."""
WORDS = 1000


class ContainerProcess:
    """Started at once, with the methods of ChildProcess. Raises CannotStart where docker itself cannot be run."""

    def __init__(
        self,
        docker: Docker,
        words: Sequence[str],
        *,
        folder: Path,
        variables: Mapping[str, str],
        on_line: Callable[[str], None],
    ) -> None:
        """`words` are those after `docker`; `variables` are its own environment."""
        self._docker, self._over, self._asked, self._pid = docker, False, False, 0
        self.why = ""
        """What docker says of the end, beside its exit code."""
        self.ended_s = 0.0
        self._client = ChildProcess(docker.words(*words), folder=folder, environment=variables, on_line=on_line)

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
        """Sends `first` to its first process, and ends all of them where it still runs after `grace_s` seconds. A container that docker
        is still starting gets the signal as soon as it runs."""
        until, heard, self._asked = time.monotonic() + grace_s, False, True
        while time.monotonic() < until:
            heard = heard or self._docker.signal(first)
            if (code := self.wait(LOOK_S)) is not None:
                return code
        return self.end(0.0)

    def end(self, linger_s: float = LINGER_S) -> int:
        """Ends it with all of its processes, and reads its last lines. Returns the exit code."""
        if not self._over:
            until, heard, self._asked = time.monotonic() + ENDS_S, False, True
            while (code := self._client.wait(LOOK_S)) is None and time.monotonic() < until:
                heard = heard or self._docker.signal(signal.SIGKILL)
            self._over = code is not None
        return self._client.end(linger_s)

    def _judged(self, code: int) -> int:
        if self._over or self._asked:  # what the agent ends itself needs no explanation
            self._over = True
            return code
        self._over = True
        self._client.end(LINGER_S)  # its last lines
        state, tail = self._docker.state(), list(self._client.tail)
        if state is not None and state.get("Running"):
            self._docker.signal(signal.SIGKILL)
        words = "\n".join(tail)[-WORDS:] or "it said nothing"
        if (problem := ends.failure(code, state, tail, words)) is not None:
            raise problem
        if stops := self._docker.stops():
            raise MachineTrouble(f"{stops}, which ended the container with {code}")
        if state is not None and state.get("OOMKilled"):
            self.why = "; docker says that memory was full"
        return code

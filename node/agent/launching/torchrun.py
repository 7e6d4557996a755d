"""A node's share of a training under torchrun, whose own exit code is 1 for every process that fails: the process' code is kept."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from agent.launching.process_ends import find_cause, read_ends
from agent.launching.worker import CODES
from agent.training import LINGER_S, RunningTraining, WrappedTraining

WORKER = "worker.py"
"""What torchrun starts for each process of the node; torchrun's own Python runs it."""


def lay_out(folder: Path) -> None:
    """Makes the folder of the script and of what it writes. It may be there from another run."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / CODES).mkdir(parents=True)
    (folder / WORKER).write_bytes(Path(__file__).with_name(WORKER).read_bytes())


class TorchrunShare(WrappedTraining):
    """torchrun on this node as a RunningTraining, whose end is that of the process that failed first."""

    def __init__(self, inner: RunningTraining, folder: Path, *, on_failure: Callable[[float], None]) -> None:
        """`on_failure` gets the moment (epoch seconds) at which a process has failed, while torchrun still ends the others: it gives them
        30 seconds."""
        super().__init__(inner)
        self._folder, self._on_failure, self._has_failed = folder, on_failure, False

    def wait(self, timeout_s: float) -> int | None:
        """Returns the exit code of the first process of the node that failed, or torchrun's where none has; None while torchrun runs."""
        code = self._inner.wait(timeout_s)
        self.why, self.ended_s = self._inner.why, self._inner.ended_s
        if code == 0:
            return code
        ends = read_ends(self._folder)
        cause = find_cause(ends)
        if code is None:
            if cause is not None and not self._has_failed:
                self._has_failed = True
                self._on_failure(cause.at)
            return None
        # torchrun ends processes of its own node alone: the first that SIGTERM ended, with no other cause, was ended by something else.
        cause = cause or next((one for one in ends if one.code != 0), None)
        if cause is None:
            return code
        # Processes of other nodes fail within milliseconds of the first: its own moment counts, not when torchrun has ended.
        self.why, self.ended_s = f"{self.why}{cause.words}", max(0.0, time.time() - cause.at)
        return cause.code

    def stop(self, first: signal.Signals, grace_s: float) -> int:
        return self._inner.stop(first, grace_s)

    def end(self, linger_s: float = LINGER_S) -> int:
        return self._inner.end(linger_s)

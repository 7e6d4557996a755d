"""A node's share of an MPI training: mpirun on rank 0, a daemon of it on every other node; no sshd, no key and no listener between them."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from agent import dumps
from agent.failures import CannotStart
from agent.launching.mpi_variables import ADDRESSES, COMMAND, HYDRA_HOSTS, OPEN_MPI_HOSTS, PROCESS, REMOTE, SHARE
from agent.launching.process_ends import find_cause, read_ends
from agent.launching.relay import COMMANDS, ENDS
from agent.launching.worker import CODES
from agent.training import LINGER_S, RunningTraining, WrappedTraining
from contract.cluster import Cluster

EFFECT_S = 5.0
"""How long an end waits that no process of this node explains: the node that has the cause reports it at once, and of ends that are closer
than two seconds the attendant does not know which came first."""
TELL_S, TELL_AGAIN_S = 300.0, 5.0
"""How long a node tries to tell rank 0 of its end before it reports it, and how often."""
LOOK_S = 0.2
ABSENT = 127
"""Exit code of share.sh where there is no such program."""
MPIRUN, DAEMON = "mpirun", "the daemon of rank 0's mpirun"
"""What runs on rank 0, and on other nodes."""


def lay_out(folder: Path, cluster: Cluster, command: Sequence[str]) -> None:
    """Makes the folder of the scripts, of the command and the lists of hosts, and of what the scripts write. It may be there from another
    run. The command is in a file, because mpirun reads words of its own in it."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in (COMMANDS, ENDS, CODES):
        (folder / name).mkdir(parents=True)
    (folder / COMMAND).write_text(shlex.join(command), "utf-8")
    here = Path(__file__)
    for name, script in ((REMOTE, "remote.sh"), (SHARE, "share.sh"), (PROCESS, "process.sh")):
        (folder / name).write_bytes(here.with_name(script).read_bytes())
        (folder / name).chmod(0o755)
    (folder / ADDRESSES).write_text("".join(f"{one}\n" for one in cluster.addresses), "ascii")
    (folder / OPEN_MPI_HOSTS).write_text(cluster.format_open_mpi_hosts(), "ascii")
    (folder / HYDRA_HOSTS).write_text(cluster.format_hydra_hosts(), "ascii")


class MpiShare(WrappedTraining):
    """What runs on this node, mpirun or its daemon, as a RunningTraining: orders reach the processes of the training themselves, and the
    end is that of the processes."""

    def __init__(
        self,
        inner: RunningTraining,
        folder: Path,
        processes: int,
        *,
        what: str,
        on_end: Callable[[int], bool],
        close: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`what` runs in `inner`. `on_end` gets its exit code until it returns whether that was told; `close` is called when nothing of the
        share runs any more."""
        super().__init__(inner)
        self._folder, self._processes, self._what = folder, processes, what
        self._on_end, self._close, self._monotonic, self._sleep = on_end, close, monotonic, sleep
        self._ended_at: float | None = None
        self._told, self._tell_at = False, 0.0

    def wait(self, timeout_s: float) -> int | None:
        """The exit code of the first process of the node that failed; else 0 if all of them ended well; else that of mpirun or its daemon,
        or 1, after EFFECT_S. None while it runs. Raises CannotStart where there is no mpirun."""
        code = self._inner.wait(timeout_s)
        if code is None:
            return None
        ended_s = self._tell_end(code)
        ends = read_ends(self._folder)
        if cause := find_cause(ends):
            # Processes of other nodes fail within milliseconds of the first: its own moment counts, not when the agent looked.
            self.ended_s, self.why = max(0.0, time.time() - cause.at), f"{self._inner.why}{cause.words}"
            return cause.code
        if code == ABSENT and not ends and self._what == MPIRUN:
            raise CannotStart("launcher mpi needs mpirun, which neither the job's image nor its requirements bring")
        well = sum(one.code == 0 for one in ends)
        ended_well = code == 0 and well == self._processes
        if ended_well and (self._told or ended_s > TELL_S):
            return 0
        if ended_well or ended_s < EFFECT_S:
            self._sleep(timeout_s)
            return None
        left = f"; {well} of the {self._processes} processes of this node had ended well" if code == 0 else ""
        self.why = f"{self._inner.why}; that is {self._what}{left}, which another node's log may explain"
        return code or 1

    def stop(self, first: signal.Signals, grace_s: float) -> int:
        """Sends `first` to the processes of the training and all that they started, and not to mpirun, which would kill them a second
        later. Ends everything that is left after `grace_s`."""
        until = self._monotonic() + grace_s
        if not self._send(first):
            return self._closed(self._inner.stop(first, grace_s))
        while self._monotonic() < until:
            if self._inner.wait(LOOK_S) is not None:
                break
        return self.end(0.0)

    def end(self, linger_s: float = LINGER_S) -> int:
        return self._closed(self._inner.end(linger_s))

    def _closed(self, code: int) -> int:
        self._tell_end(code)  # Hydra waits for it
        self._close()
        return code

    def _tell_end(self, code: int) -> float:
        """Tells the end, now and then until it is told. Returns for how many seconds the share has ended."""
        now = self._monotonic()
        self._ended_at = now if self._ended_at is None else self._ended_at
        if not self._told and now >= self._tell_at:
            self._told, self._tell_at = self._on_end(code), now + TELL_AGAIN_S
        return now - self._ended_at

    def _send(self, number: signal.Signals) -> int:
        """Returns to how many processes of the training it was sent."""
        found = [one for one in dumps.processes(self._inner.pid) if _is_process(one)]
        for one in dict.fromkeys(each for shell in found for each in dumps.processes(shell)):
            with suppress(OSError):
                os.kill(one, number)
        return len(found)


def _is_process(pid: int) -> bool:
    """Whether it is the shell around a process of the training."""
    found = dumps.standing(pid)
    return found is not None and found.name == PROCESS

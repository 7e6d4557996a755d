"""Makes the network of a node slow for its deep health check: the processes of each all-reduce stand still, but for short moments.

It is a process of its own (`python -m rehearsal.slow_link PID`, where PID is the node's init) and ends with its standard input. A thread
of the rehearsal would wait for that program's other threads, and an all-reduce needs a tenth of a second in all: it was over before
such a thread had looked.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from localaws.machines.init import descendants

STANDS_S, MOVES_S = 3.0, 0.008
"""How long the all-reduce stands still, and moves, in turn, once it has met its peers. 32 MiB between two processes of one computer take
19 ms and more: what moved for 20 ms was once measured between two stops."""
LOOK_S = 0.2
"""How often it is seen whether a node measures: Python and PyTorch take longer to start."""
MEETS_S = 0.01
"""How long a process moves between two looks at whether it has met its peers. It stands still during a look, so a slow one costs
nothing."""
PRIORITY = 1
"""Of a real-time process, the least: on a busy computer every other one would come too late to stop an all-reduce."""
MEASURES = b"/links/collective.py\0"
SOCKET = "socket:["
CONNECTED = "01"
"""State of a connection in /proc/net/tcp."""


def main(init: int) -> int:
    with contextlib.suppress(OSError):  # without the right it is only later on a busy computer
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    while not ended(LOOK_S):
        if measuring := [process for process in descendants(init) if measures(process)]:
            slow_down(measuring)
    return 0


def ended(within_s: float) -> bool:
    """Whether the rehearsal has closed standard input; waits for so long."""
    return bool(select.select([sys.stdin], [], [], within_s)[0])


def slow_down(measuring: list[int]) -> None:
    """Slows the processes down until they are gone.

    Only those that have met their peers: Python and PyTorch have no network to read a disk by."""
    while left(measuring):
        tell(measuring, signal.SIGSTOP)
        if met := connected(measuring):
            time.sleep(STANDS_S)
        tell(measuring, signal.SIGCONT)
        time.sleep(MOVES_S if met else MEETS_S)


def left(processes: list[int]) -> bool:
    return any(map(measures, processes))


def tell(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, number)


def measures(process: int) -> bool:
    with contextlib.suppress(OSError):
        return MEASURES in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def connected(processes: list[int]) -> bool:
    held = set[str]().union(*map(sockets, processes))
    # The long list of all connections only where there may be one.
    return bool(held) and not held.isdisjoint(connections())


def connections() -> Iterator[str]:
    """The inode of each TCP connection of this computer."""
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == CONNECTED:
                    yield fields[9]


def sockets(process: int) -> set[str]:
    found = set[str]()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                if (link := str(Path(entry.path).readlink())).startswith(SOCKET):
                    found.add(link[len(SOCKET) : -1])
    return found


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))

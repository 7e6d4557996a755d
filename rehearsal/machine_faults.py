"""The faults of a node's hardware: their keys, how the product reacts to each, and what each does to a node."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from localaws.machines import gpus
from localaws.machines.gpus import GpuState
from localaws.machines.init import descendants
from rehearsal.fault_keys import LATER_ON_NODE, MOMENTS, OF_NODE, SECOND, FaultKind, choice, moment

BAD_GPU, SLOW_LINK = "bad-gpu", "slow-link"
MACHINE_FAULTS = {
    BAD_GPU: FaultKind(
        "a GPU of the node is bad, by stand-ins of nvidia-smi and of the kernel's log; from the training on, what is running there dies of "
        "it (SIGABRT), as a program that uses CUDA does",
        "NodeUnhealthy, before the training or in place of the command's error: a new attempt from the newest checkpoint, which tries the "
        "node's zone last. The report of the job has the instance. With `health: off` in the request the command's error is its own.",
        {
            "how": choice(
                "fewer",
                "it is missing, has uncorrectable memory errors, or an Xid, or has fallen off the bus; or nvidia-smi hangs",
                *("fewer", "memory", "xid", "lost", "hangs"),
            ),
            "at": moment("boot", "when"),
            **LATER_ON_NODE,
        },
    ),
    SLOW_LINK: FaultKind(
        "the network of the node is slow while its deep health check measures it: the processes of the all-reduce stand still (SIGSTOP) "
        "but for a moment every few seconds, and its bytes with them. The training is not slowed down",
        "With `health: deep` in the request NodeUnhealthy, before the training: a new attempt, which tries the node's zone last. With two "
        "nodes either may be named, and the reason has both instances; with more, this one's. With another `health` nothing happens.",
        {**OF_NODE, "rank": SECOND},
    ),
}
LOOK_S = 0.2
"""How often it is seen whether a node with a slow network lives."""
FELL = "NVRM: Xid (PCI:0000:10:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LOST = "Unable to determine the device handle for GPU0000:10:00.0: GPU is lost.  Reboot the system to recover this GPU"


def bad(count: int, how: str) -> tuple[GpuState, list[str]]:
    """What nvidia-smi of a node with `count` GPUs answers once one of them is bad, and what its kernel says."""
    states = {
        "fewer": GpuState(gpus=max(0, count - 1)),
        "memory": GpuState(gpus=count, errors=1),
        "lost": GpuState(gpus=0, code=15, words=LOST),
        "hangs": GpuState(gpus=count, hangs=True),
    }
    return states.get(how, GpuState(gpus=count)), [FELL] if how in ("xid", "lost") else []


def spoil(folder: Path, count: int, how: str) -> None:
    """Makes a GPU of a node bad that runs."""
    state, lines = bad(count, how)
    for line in lines:
        gpus.say(folder, line)
    gpus.show(folder, state)


def is_deadly(when: str) -> bool:
    """Whether the training is running at that moment of a fault."""
    return when not in MOMENTS[: MOMENTS.index("training")]


def abort(agent: int) -> None:
    """Aborts the command that the agent has started, with all processes of its own, as CUDA does. Who follows the journal lives."""
    for process in descendants(agent):
        with contextlib.suppress(OSError):
            if b"tail\0" not in Path(f"/proc/{process}/cmdline").read_bytes():
                os.kill(process, signal.SIGABRT)


def slow_down(init: int, lives: Callable[[], bool]) -> None:
    """Slows down every all-reduce that measures the node's network, for as long as the node lives. Returns at once."""

    def watch() -> None:
        with subprocess.Popen(
            [sys.executable, "-m", "rehearsal.slow_link", str(init)],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
        ):
            while lives():
                time.sleep(LOOK_S)

    threading.Thread(target=watch, name="slow-link", daemon=True).start()

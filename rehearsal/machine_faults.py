"""The faults of a node's hardware: their keys, how the product reacts to each, and what each does to a node."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from localaws.machines import gpus
from localaws.machines.gpus import GpuState
from localaws.machines.init import descendants
from rehearsal.fault_keys import MOMENTS, OF_NODE, FaultKind, choice, moment

BAD_GPU = "bad-gpu"
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
            **OF_NODE,
        },
    ),
}
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

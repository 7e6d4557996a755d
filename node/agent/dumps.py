"""Writes to the log where the training's processes stand and what its devices do, within seconds, whatever state they are in.

A Python process of the job writes the stacks of its threads when it gets STACKS: its environment registers that with faulthandler, whose
handler needs neither the interpreter's lock nor a thread that runs. Nothing here waits for a process of the training: of one that a
driver or a file system holds (state D), even reading the command line would wait as well, so only files of /proc that never do are read.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.programs import ask

STACKS = 47
"""A real-time signal that neither glibc nor CUDA nor PyTorch uses. It is sent to processes that have a handler for it, and to no others."""
HOOK = f"import faulthandler, sys; sys.__stderr__ and faulthandler.register({STACKS})\n"
"""A line of a `.pth` file, which every Python process of the environment runs when it starts."""
MOST_S = 10.0
"""How long stacks are asked for, all processes together, and how long each command may take."""
ANSWER_S = 1.0
"""How long one process is waited for."""
QUIET_S = 0.05
"""A process that has written nothing for so long has written its stacks."""
MOST_PROCESSES = 64
"""Processes that are asked, those first that answer, and among them those that the command started: a trainer before its data loaders. On
rank 0 of a large MPI job more shells than that stand for the other nodes."""
DEVICES = (("usr/bin/nvidia-smi",), ("opt/aws/neuron/bin/neuron-ls", "--wide"))
"""Commands that show the state of devices, where the image has them."""
STATES = {
    "R": "runs",
    "S": "sleeps",
    "D": "is held by the kernel",
    "T": "is stopped",
    "t": "is traced",
    "Z": "has ended",
}


@dataclass(frozen=True)
class Standing:
    """One process."""

    pid: int
    parent: int
    name: str
    state: str
    answers: bool
    """It has a handler for STACKS."""


def dump(command: int, root: Path, *, heard: Callable[[], float], note: Callable[[str], None]) -> None:
    """Writes the stacks of every process of the command (its process id), and the state of the devices. `heard` says when output of the
    command came last (monotonic). Returns within seconds, also where something hangs: that is then left behind."""
    parts = [
        threading.Thread(target=_devices, args=(root, note), name="devices", daemon=True),
        threading.Thread(target=_stacks, args=(command, heard, note), name="stacks", daemon=True),
    ]
    until = time.monotonic() + MOST_S + 2 * ANSWER_S
    for part in parts:
        part.start()
    for part in parts:
        part.join(max(0.0, until - time.monotonic()))
        if part.is_alive():
            note(f"the {part.name} did not all answer within {MOST_S:.0f} s")


def processes(command: int) -> list[int]:
    """The process of the command, and all that descend from it or are in its session, nearer ones first."""
    children: dict[int, list[int]] = {}
    strays = []
    for entry in sorted(int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()):
        with suppress(OSError, IndexError, ValueError):
            fields = Path("/proc", str(entry), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(entry)
            if int(fields[3]) == command:
                strays.append(entry)
    found = [command]
    for one in found:
        found += [child for child in children.get(one, ()) if child not in found]
    return found + [one for one in strays if one not in found]


def standing(pid: int) -> Standing | None:
    """None where it has gone."""
    try:
        lines = Path("/proc", str(pid), "status").read_text("utf-8", "replace").splitlines()
        told = {name: rest.strip() for name, _, rest in (line.partition(":") for line in lines)}
        caught = int(told["SigCgt"], 16) >> (STACKS - 1) & 1
        return Standing(pid, int(told["PPid"]), told["Name"], told["State"][:1], bool(caught))
    except (OSError, KeyError, ValueError):
        return None


def _stacks(command: int, heard: Callable[[], float], note: Callable[[str], None]) -> None:
    until = time.monotonic() + MOST_S
    found = [one for one in map(standing, processes(command)) if one is not None and one.state != "Z"]
    for asked, one in enumerate(sorted(found, key=lambda one: not one.answers)):
        if asked >= MOST_PROCESSES or time.monotonic() > until:
            note(f"{len(found) - asked} more processes are not asked for their stacks")
            return
        note(_describe(one))
        if one.answers and not _ask_for_stacks(one, heard, until):
            note(f"process {one.pid} has not answered within {ANSWER_S:.0f} s")


def _describe(one: Standing) -> str:
    where = ""
    with suppress(OSError):
        where = Path("/proc", str(one.pid), "wchan").read_text("utf-8", "replace").strip("0\n")
    held = f" in {where}" if where else ""
    follows = "its stacks follow" if one.answers else "it writes no stacks: it does not run the job's Python"
    return f"process {one.pid} ({one.name}, of {one.parent}) {STATES.get(one.state, one.state)}{held}; {follows}"


def _ask_for_stacks(one: Standing, heard: Callable[[], float], until: float) -> bool:
    """Asks the process for its stacks, and waits until it has written them."""
    began = time.monotonic()
    with suppress(ProcessLookupError):
        os.kill(one.pid, STACKS)
        if one.state == "T":  # it could not obey the order either
            os.kill(one.pid, signal.SIGCONT)
    while (now := time.monotonic()) < min(until, began + ANSWER_S):
        if heard() > began and now - heard() > QUIET_S:
            return True
        time.sleep(QUIET_S / 5)
    return heard() > began


def _devices(root: Path, note: Callable[[str], None]) -> None:
    for name, *options in DEVICES:
        if (program := root / name).exists():
            note(f"{program.name} says:")
            try:
                said = ask([str(program), *options], MOST_S)
            except OSError as problem:
                note(f"it cannot be started: {problem}")
                continue
            for line in said.text.splitlines():
                note(line)
            if said.code is None:
                note(f"it has not ended within {MOST_S:.0f} s")

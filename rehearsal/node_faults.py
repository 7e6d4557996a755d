"""The faults of single nodes: how an affected node starts, and what happens to it later."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from contract import tags
from contract.reports import NodeReport, Phase
from localaws.conditions import Conditions, Fault
from localaws.machines.init import descendants
from localaws.machines.mischief import Birth, Losses
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_reservations import target
from rehearsal.fault_keys import MOMENTS
from rehearsal.faults import FAULTS
from rehearsal.state import reports

if TYPE_CHECKING:
    from localaws.machines.nodes import Node

BOOT, AGENT = MOMENTS[:2]
PHASES = [phase.value for phase in Phase]
BROKEN = {"fails": b"false", "killed": b"kill -KILL $$"}
AGENTS_COMMAND = b"\0-m\0agent\0"


def _any(_machine: Machine) -> bool:
    return True


MARKETS: Mapping[str, Callable[[Machine], bool]] = {
    "node-interrupted": lambda machine: machine.is_spot,
    "block-ends": lambda machine: bool(target(machine.request)),
}
"""Which machines a fault can befall at all."""


class NodeFaults:
    """Applies the faults of `rehearsal.faults` to single nodes of a job."""

    striking = frozenset(
        {"agent-crash", "block-ends", "disk-full", "freeze", "no-network", "node-interrupted", "node-lost"}
    )

    def birth(self, machine: Machine, conditions: Conditions) -> Birth:
        """Returns what the requested faults change about a machine that boots now."""

        def fault(name: str) -> Fault | None:
            return conditions.fault(name, machine.marks)

        made = Birth(user_data=machine.user_data)
        if broken := fault("user-data-fails"):
            made = replace(
                made, user_data=_with_line(made.user_data, broken.number("line"), BROKEN[broken.text("how")])
            )
        if skewed := fault("clock-skew"):
            made = replace(made, skew_s=skewed.seconds("seconds") / conditions.speed)
        if cut := fault("no-network"):
            made = replace(made, has_wire=True, cut=cut.text("at") == BOOT)
        if full := fault("disk-full"):
            made = replace(made, full=full.text("at") == BOOT)
        return replace(made, timerless=fault("timer-off") is not None)

    def befalls(self, fault: Fault, node: Node) -> bool:
        """Whether the fault's moment has come for a node that it applies to."""
        machine = node.machine
        if not fault.meets(machine.marks) or not MARKETS.get(fault.name, _any)(machine):
            return False
        when = fault.text("at" if "at" in FAULTS[fault.name].keys else "step")
        if when == BOOT:
            return False  # the node started with it
        if when == AGENT:
            return agent(node.pid) is not None
        if when in PHASES:
            said = _report(machine, machine.index)
            return said is not None and PHASES.index(said.phase.value) >= PHASES.index(when)
        first = _report(machine, 0)
        return first is not None and first.progress is not None and first.progress.step >= int(when)

    def strike(self, fault: Fault, node: Node, losses: Losses) -> None:
        """Carries the fault out, once."""
        strikes: Mapping[str, Callable[[], None]] = {
            "agent-crash": lambda: _kill_agent(node.pid),
            "block-ends": lambda: losses.end_block(node.machine),
            "disk-full": lambda: fill_disk(node.pid),
            "freeze": lambda: freeze(node.pid),
            "no-network": node.cut_off,
            "node-interrupted": lambda: losses.interrupt(node.machine, notice=fault.text("notice") == "yes"),
            "node-lost": lambda: losses.vanish(node.machine, fault.seconds("running")),
        }
        strikes[fault.name]()


def _with_line(script: bytes, number: int, line: bytes) -> bytes:
    lines = script.split(b"\n")
    lines[number - 1 : number] = [line]
    return b"\n".join(lines)


def agent(init: int) -> int | None:
    """Returns the process id of the node's agent, None before and after it."""
    found = [process for process in descendants(init) if AGENTS_COMMAND in _command(process)]
    return min(found, default=None)  # a child between fork and exec has its parent's command line


def _kill_agent(init: int) -> None:
    if process := agent(init):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def fill_disk(init: int) -> None:
    """Keeps every process of the node, and those that they start, from writing any byte to a file."""
    limited: set[int] = set()
    while new := descendants(init) - limited:  # repeats until no fork has escaped
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process, resource.RLIMIT_FSIZE, (0, 0))
        limited |= new


def freeze(init: int) -> None:
    """Stops every process of the node except its process 1, which belongs to the rehearsal."""
    still: set[int] = set()
    while new := descendants(init) - still:
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        still |= new


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _report(machine: Machine, rank: int) -> NodeReport | None:
    """Returns the newest report of the rank in the machine's attempt."""
    job, attempt = machine.marks.get(tags.JOB, ""), int(machine.marks.get(tags.ATTEMPT, "0"))
    wanted = (job, attempt, rank)
    return next((one for one in reports() if (one.job, one.attempt, one.rank) == wanted), None)

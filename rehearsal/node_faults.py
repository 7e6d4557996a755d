"""The faults of single nodes: how an affected node starts, and what happens to it later."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contract import tags
from contract.reports import NodeReport, Phase
from localaws.conditions import Conditions, Fault
from localaws.machines.init import descendants
from localaws.machines.mischief import Birth, FaultyNode, Losses
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_moto import gpus_of
from rehearsal import machine_faults
from rehearsal.fault_keys import BOOT, MOMENTS
from rehearsal.fault_marks import rank_of
from rehearsal.faults import FAULTS
from rehearsal.idle_faults import PHASES, can_befall, explain_idle, read_moment
from rehearsal.interruptions import read_step
from rehearsal.machine_faults import BAD_GPU, SLOW_LINK
from rehearsal.state import reports

AGENT = MOMENTS[1]
USER_DATA = "user-data-fails"
TRAINING = PHASES.index(Phase.TRAINING.value)
BROKEN = {"fails": b"false", "killed": b"kill -KILL $$"}
AGENTS_COMMAND = b"\0-m\0agent\0"


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that has struck a node."""

    fault: Fault
    job: str
    attempt: int
    rank: int
    at: float
    """UTC epoch seconds."""

    @classmethod
    def of(cls, fault: Fault, machine: Machine) -> Strike:
        return cls(fault, *_attempt(machine), rank_of(machine.marks), time.time())


LOSSES = frozenset({"node-lost", "spot-kill"})
"""Faults that end a machine at once."""


def list_harmless(strikes: Iterable[Strike], attempts: int) -> list[str]:
    """Returns a line for each machine whose loss interrupted nothing: a job of so many `attempts` ended well in the one that lost it."""
    return [
        f"{one.fault.name} ended the machine of rank {one.rank} in attempt {one.attempt} and interrupted nothing: the job no longer needed "
        "it"
        + (
            "; a shorter checkpoint_minutes brings the checkpoint that the fault waits for earlier"
            if one.fault.text("closed")
            else ""
        )
        for one in strikes
        if one.fault.name in LOSSES and one.attempt == attempts
    ]


class NodeFaults:
    """Applies the faults of `rehearsal.faults` to single nodes of a job."""

    def __init__(self) -> None:
        self.strikes: list[Strike] = []
        self.last_steps: dict[str, int | None] = {}
        """The last step that the trainer of a node told, by the instance; of nodes that have ended."""
        self.missed: dict[int, str] = {}
        """By the identity of a fault of nodes' births: why it changed nothing."""

    striking = frozenset(
        {
            "agent-crash",
            BAD_GPU,
            "block-ends",
            "disk-full",
            "freeze",
            "no-network",
            "node-lost",
            SLOW_LINK,
            "spot-kill",
            "spot-notice",
            "spot-rebalance",
            "trainer-hang",
        }
    )

    def birth(self, machine: Machine, conditions: Conditions) -> Birth:
        """Returns what the requested faults change about a machine that boots now."""

        def fault(name: str) -> Fault | None:
            return conditions.fault(name, machine.marks)

        made = Birth(user_data=machine.user_data)
        if broken := fault(USER_DATA):
            if (lines := made.user_data.count(b"\n")) < broken.number("line"):
                self.missed[id(broken)] = (
                    f"the user data has {lines} lines, and it waits for line {broken.number('line')}"
                )
            made = replace(
                made, user_data=_with_line(made.user_data, broken.number("line"), BROKEN[broken.text("how")])
            )
        if skewed := fault("clock-skew"):
            made = replace(made, skew_s=skewed.seconds("seconds") / conditions.speed)
        if cut := fault("no-network"):
            made = replace(made, has_wire=True, cut=cut.text("at") == BOOT)
        if full := fault("disk-full"):
            made = replace(made, full=full.text("at") == BOOT)
        if (spoiled := fault(BAD_GPU)) and spoiled.text("at") == BOOT:
            state, lines = machine_faults.bad(gpus_of(machine.request["InstanceType"]), spoiled.text("how"))
            made = replace(made, gpus=state, kernel=lines)
        return replace(made, timerless=fault("timer-off") is not None)

    def death(self, node: FaultyNode) -> None:
        """Notes what the summary needs of the node's disk, which is about to be gone."""
        self.last_steps[node.machine.id] = read_step(node.folder)

    def befalls(self, fault: Fault, node: FaultyNode) -> bool:
        """Whether the fault's moment has come for a node that it applies to."""
        machine = node.machine
        if not fault.meets(machine.marks) or not can_befall(fault, machine):
            return False
        if not self._has_turn(fault, machine) or not _has_closed(fault, machine):
            return False
        when = read_moment(fault)
        if when == BOOT:
            return False  # the node started with it
        if when == AGENT:
            return agent(node.pid) is not None
        if when in PHASES:
            said = _report(machine, rank_of(machine.marks))
            return said is not None and PHASES.index(said.phase.value) >= PHASES.index(when)
        first = _report(machine, 0)
        if first is None or PHASES.index(first.phase.value) < TRAINING:
            return False
        return (first.progress.step if first.progress else 0) >= int(when)

    def strike(self, fault: Fault, node: FaultyNode, losses: Losses) -> None:
        """Carries the fault out, once."""
        strikes: Mapping[str, Callable[[], None]] = {
            "agent-crash": lambda: _kill_agent(node.pid),
            BAD_GPU: lambda: _spoil(node, fault),
            "block-ends": lambda: losses.end_block(node.machine),
            "disk-full": lambda: fill_disk(node.pid),
            "freeze": lambda: freeze(node.pid),
            "no-network": node.cut_off,
            "node-lost": lambda: losses.vanish(node.machine, fault.seconds("running")),
            SLOW_LINK: lambda: machine_faults.slow_down(node.pid, lambda: node.alive),
            "spot-kill": lambda: losses.interrupt(node.machine, notice=False),
            "spot-notice": lambda: losses.interrupt(node.machine, notice=True),
            "spot-rebalance": lambda: losses.recommend(node.machine),
            "trainer-hang": lambda: hang(node.pid),
        }
        self.strikes.append(Strike.of(fault, node.machine))
        strikes[fault.name]()

    def last_step(self, node: FaultyNode) -> int | None:
        """Returns the last step that the node's trainer told, whether the node has ended or not."""
        ended = self.last_steps.get(node.machine.id)
        return read_step(node.folder) if ended is None else ended

    def list_idle(self, faults: Iterable[Fault], job: str, machines: Sequence[Machine]) -> list[str]:
        """Says of each of `faults` that should have struck one of the job's `machines`, and has struck none, why it has not."""
        mine = [one for one in reports() if one.job == job]
        return [
            f"{fault.name} struck no node: {self._explain(fault, job, machines, mine)}"
            for fault in faults
            if self._is_idle(fault, job, machines)
        ]

    def _is_idle(self, fault: Fault, job: str, machines: Sequence[Machine]) -> bool:
        if fault.name not in self.striking | {USER_DATA} or fault.text("job") not in {"", job}:
            return False
        if fault.name == USER_DATA:
            return id(fault) in self.missed
        if read_moment(fault) == BOOT:  # the nodes started with it
            return bool(machines) and not any(can_befall(fault, one) for one in machines)
        return not any(strike.job == job and strike.fault is fault for strike in self.strikes)

    def _explain(self, fault: Fault, job: str, machines: Sequence[Machine], found: Sequence[NodeReport]) -> str:
        if id(fault) in self.missed:
            return self.missed[id(fault)]
        others = [one for one in self.strikes if one.job == job and "times" in FAULTS[one.fault.name].keys]
        return explain_idle(fault, machines, found, {one.attempt for one in others if one.fault is not fault})

    def _has_turn(self, fault: Fault, machine: Machine) -> bool:
        """Whether a fault that strikes one attempt after another may strike this one."""
        if "times" not in FAULTS[fault.name].keys:
            return True
        job, attempt = _attempt(machine)
        of_job = [strike for strike in self.strikes if strike.job == job and "times" in FAULTS[strike.fault.name].keys]
        own = {strike.attempt for strike in of_job if strike.fault is fault}
        if attempt in own:
            return True  # another rank
        taken = not fault.text("attempt") and any(strike.attempt == attempt for strike in of_job)
        return len(own) < fault.number("times") and not taken


def _has_closed(fault: Fault, machine: Machine) -> bool:
    """Whether the attempt has the checkpoint that the fault waits for, if it waits for one."""
    if "closed" not in FAULTS[fault.name].keys or not (wanted := fault.text("closed")):
        return True
    first = _report(machine, 0)
    return first is not None and first.closed_step >= int(wanted)


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
    _stop_below(init)


def hang(init: int) -> None:
    """Stops whatever the node's agent has started, and not the agent."""
    if process := agent(init):
        _stop_below(process)


def _spoil(node: FaultyNode, fault: Fault) -> None:
    with contextlib.suppress(FileNotFoundError):  # the node has just ended, and its disk is gone
        machine_faults.spoil(node.folder, gpus_of(node.machine.request["InstanceType"]), fault.text("how"))
    if machine_faults.is_deadly(fault.text("at")) and (process := agent(node.pid)):
        machine_faults.abort(process)


def _stop_below(process_id: int) -> None:
    still: set[int] = set()
    while new := descendants(process_id) - still:
        for process in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        still |= new


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _attempt(machine: Machine) -> tuple[str, int]:
    """Returns the machine's job and the number of the attempt."""
    return machine.marks.get(tags.JOB, ""), int(machine.marks.get(tags.ATTEMPT, "0"))


def _report(machine: Machine, rank: int) -> NodeReport | None:
    """Returns the newest report of the rank in the machine's attempt."""
    wanted = (*_attempt(machine), rank)
    return next((one for one in reports() if (one.job, one.attempt, one.rank) == wanted), None)

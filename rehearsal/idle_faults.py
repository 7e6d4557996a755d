"""Says after a job why a fault has struck none of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from contract import tags
from contract.reports import NodeReport, Phase
from localaws.conditions import Fault
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_moto import gpus_of
from localaws.services.ec2_request import target
from rehearsal.fault_keys import ALL, MOMENTS
from rehearsal.fault_marks import choose_rank
from rehearsal.faults import FAULTS
from rehearsal.machine_faults import BAD_GPU, SLOW_LINK

PHASES = [phase.value for phase in Phase]
OVER = "the training was over before"


@dataclass(frozen=True, slots=True)
class Target:
    """Which machines a fault can befall at all."""

    fits: Callable[[Machine], bool]
    what: str
    """In words, behind "is not"."""


SPOT = Target(lambda machine: machine.is_spot, "a spot node: the request needs a market of spot")
TARGETS: Mapping[str, Target] = {
    "spot-kill": SPOT,
    "spot-notice": SPOT,
    "spot-rebalance": SPOT,
    "block-ends": Target(
        lambda machine: bool(target(machine.request)), "in a block: the request needs its reservation"
    ),
    BAD_GPU: Target(lambda machine: gpus_of(machine.request["InstanceType"]) > 0, "of a type with GPUs"),
}


def can_befall(fault: Fault, machine: Machine) -> bool:
    """Whether the machine is one that the fault can befall at all."""
    return fault.name not in TARGETS or TARGETS[fault.name].fits(machine)


def read_moment(fault: Fault) -> str:
    """Returns the moment at which a fault of nodes strikes: one of MOMENTS, or a step."""
    if fault.name == SLOW_LINK:
        return MOMENTS[1]
    keys = FAULTS[fault.name].keys
    return fault.text("at" if "at" in keys else "step") if {"at", "step"} & keys.keys() else MOMENTS[0]


def explain_idle(
    fault: Fault, machines: Sequence[Machine], reports: Sequence[NodeReport], taken: Collection[int] = ()
) -> str:
    """Returns why the fault struck none of the job's `machines`, whose newest reports these are. `taken`: the attempts that other
    interruptions have struck."""
    if not machines:
        return "the job had no node"
    keys = FAULTS[fault.name].keys
    last = max(map(read_attempt, machines))
    attempt = fault.text("attempt") if "attempt" in keys else ""
    if attempt and int(attempt) > last:
        return f"the job had {last} attempt{'s' if last > 1 else ''}, and it waits for attempt {attempt}"
    nodes = int(machines[0].marks.get(tags.NODES, "1"))
    rank = choose_rank(fault, nodes) if "rank" in keys else ALL
    if rank != ALL and int(rank) >= nodes:
        return f"the job has no rank {rank}"
    meant = [one for one in machines if fault.meets(one.marks)]
    if meant and not any(can_befall(fault, one) for one in meant):
        return f"{'no node is' if rank == ALL else f'rank {rank} is not'} {TARGETS[fault.name].what}"
    attempts = {read_attempt(one) for one in meant}
    if "times" in keys and not attempt and attempts <= set(taken):
        return "another interruption has struck each attempt of the job"
    found = [one for one in reports if one.attempt in attempts]
    first = [one for one in found if one.rank == 0]
    return _explain_closed(fault, first) or _explain_moment(fault, first, found) or OVER


def read_attempt(machine: Machine) -> int:
    return int(machine.marks.get(tags.ATTEMPT, "0"))


def _explain_closed(fault: Fault, first: Sequence[NodeReport]) -> str:
    wanted = fault.text("closed") if "closed" in FAULTS[fault.name].keys else ""
    newest = max((one.closed_step for one in first), default=-1)
    if not wanted or newest >= int(wanted):
        return ""
    there = f"the newest is of step {newest}" if newest >= 0 else "there was none"
    return f"it waits for a checkpoint of step {wanted}, and {there}"


def _explain_moment(fault: Fault, first: Sequence[NodeReport], reports: Sequence[NodeReport]) -> str:
    """Says that the fault's phase, or its step, never came; empty if it did."""
    moment = read_moment(fault)
    if moment in PHASES:
        reached = max((PHASES.index(one.phase.value) for one in reports), default=-1)
        return f"no node came as far as {moment}" if reached < PHASES.index(moment) else ""
    if not moment.isdecimal():
        return ""
    most = max((one.progress.step for one in first if one.progress), default=None)
    if most is not None and most >= int(moment):
        return ""
    reported = "no step" if most is None else f"step {most} at most"
    return f"rank 0 reported {reported}, and it waits for step {moment}" if int(moment) else ""

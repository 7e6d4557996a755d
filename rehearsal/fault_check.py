"""Finds faults that cannot strike what is rehearsed, before anything is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contract.grid import Backend
from rehearsal.fault_keys import GRID, LINE
from rehearsal.fault_marks import choose_rank
from rehearsal.faults import FAULTS, Fault
from rehearsal.machine_faults import SLOW_LINK

SPOT = "spot-"
"""How the names of faults begin that take spot nodes back, or say so."""
OF_RESERVATIONS = ("block-ends", "reservation-full")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What a request says, with its preset, that decides which faults can strike its job, and what they cost it."""

    nodes: int = 1
    """Of all roles together."""
    markets: tuple[str, ...] = ()
    health: str = ""
    reserved: bool = False
    """Whether it names a reservation."""
    checkpoint_minutes: float = 10.0
    """Real minutes between two checkpoints, before the rehearsal divides them."""


def list_fault_problems(faults: Iterable[Fault], facts: RequestFacts) -> list[str]:
    """Returns a line for every fault that cannot strike a job of this request."""
    return [f"--fault {fault.name}: {problem}" for fault in faults for problem in _list_job_problems(fault, facts)]


def list_grid_fault_problems(faults: Iterable[Fault], *, clusters: bool) -> list[str]:
    """Returns the same for grids, searches and campaigns; `clusters`: whether lines may run on clusters of our own."""
    problems = list[str]()
    for fault in faults:
        found = [*_list_name_problems(fault)]
        if "rank" in FAULTS[fault.name].keys and not clusters:
            found.append(
                "strikes nodes of jobs, and no line has the backend ec2; allowed: faults of lines and of services"
            )
        problems += [f"--fault {fault.name}: {one}" for one in found]
    return problems


def list_missing_lines(faults: Iterable[Fault], lines: int) -> list[str]:
    """Says which faults named a line that a grid of so many lines does not have."""
    meant = [(one.name, one.text("line")) for one in faults if FAULTS[one.name].keys.get("line") is LINE]
    there = f"the lines 0 to {lines - 1:,}" if lines > 1 else "line 0 alone"
    return [
        f"the fault {name} struck nothing: line is {line}, and the grid has {there}"
        for name, line in meant
        if lines and line.isdecimal() and int(line) >= lines
    ]


def names_clusters(given: Mapping[str, Any]) -> bool:
    """Whether an input, or settings, name clusters of our own anywhere."""
    return Backend.EC2.value in re.findall(r"\w+", json.dumps(given))


def _list_name_problems(fault: Fault) -> Iterator[str]:
    if "job" in fault.given:
        yield f"job is {fault.given['job']!r}, and a rehearsal names what it starts itself; allowed: without job"


def _list_job_problems(fault: Fault, facts: RequestFacts) -> Iterator[str]:
    yield from _list_name_problems(fault)
    keys = FAULTS[fault.name].keys
    if keys.get("job") is GRID or keys.get("line") is LINE:
        yield "strikes lines of a grid, and this is a job; allowed: beside --manifest"
    if "rank" in keys and (rank := choose_rank(fault, facts.nodes)).isdecimal() and int(rank) >= facts.nodes:
        last = facts.nodes - 1
        there = f"the ranks 0 to {last}" if last else "rank 0 alone"
        yield f"rank is {rank}, and the job has {there}; allowed: {f'0 to {last}' if last else '0'}, or all"
    if (
        fault.name.startswith(SPOT)
        and "rank" in keys
        and facts.markets
        and not any(SPOT[:-1] in one for one in facts.markets)
    ):
        yield f"strikes spot nodes, and the request's market is {facts.markets[0]}; allowed: beside a market of spot"
    if fault.name in OF_RESERVATIONS and not facts.reserved:
        yield "strikes reserved capacity, and the request names no reservation; allowed: beside reservation"
    if fault.name == SLOW_LINK and facts.health and facts.health != "deep":
        yield f"strikes the check of the network, and the request's health is {facts.health}; allowed: beside health deep"

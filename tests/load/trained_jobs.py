"""Many jobs of several nodes that train at the same time: Admit, Launch, the attendant, Sync, Terminate and the cleanup are the real
functions, each invocation a process of its own on one virtual clock, with a rude AWS and a share of nodes that are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import attendant.passes
from attendant.passes import SLICE
from contract.reports import Exit
from tests.builders import JOB, PLACE
from tests.fakes.events import Event, fair
from tests.fakes.reaping import PERIOD_S, Reaping
from tests.fakes.yard import ABROAD
from tests.load.side_by_side import SideBySide
from tests.load.waiting_jobs import holders
from tests.properties.jobs_world import JobsWorld

JOBS, NODES, TRAINS_S, BEGIN_WITHIN_S = 1000, 4, 1200.0, 900.0
LOSES = 0.05
"""The share of jobs that lose a node, half of them without a word of EC2."""
STOPPED = 0.02
PAUSED = 0.002
"""The share of calls before which time passes: a fault of the network, or a process that stands still."""
THROTTLED = 0.01
"""The share of a table's calls that are throttled."""
LATE_OR_LOST = 0.1
"""The share of events that are lost; as many come a minute late."""
REAPED = 6
"""Passes of the reaper at the end: it ends what an execution left that is over for ten minutes, at its second look."""
HEAL_S = 4 * 3600.0
"""Within this time all must be over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What became of them."""

    ends: dict[str, int]
    attempts: dict[int, int]
    lost: int
    """Nodes that were lost on purpose."""
    unheard: int
    """Stopped executions whose event was lost: the reaper ends what they left."""
    surprises: list[str]
    left_over: list[str]
    longest_pass_s: float
    """From a tick of the attendant's clock to the end of the last invocation that looked for it."""
    calls: dict[str, int]
    """By service."""
    took_s: float
    """Virtual seconds from the first request to the last end."""
    group_holders: int
    """Jobs that have a security group still once one more job has begun in each region."""


def trained(jobs: int, *, seed: int = 0) -> Trained:
    places = tuple(
        replace(place, security_groups=tuple(f"{place.region}-{number}" for number in range(jobs + 2)))
        for place in (PLACE, ABROAD)
    )
    world = JobsWorld(seed, timing=JOB.timing, places=places)
    try:
        return _trained(world, jobs)
    finally:
        world.close()


def _trained(world: JobsWorld, jobs: int) -> Trained:
    world._installed.enter_context(mock.patch.object(attendant.passes, "SLICE", SLICE))
    world._installed.enter_context(
        mock.patch.object(attendant.passes, "ThreadPoolExecutor", partial(SideBySide, world))
    )
    world.aws.paused, chance = PAUSED, world.chance
    world.aws.table.knobs = replace(world.aws.table.knobs, throttled=THROTTLED)
    unheard = set[str]()
    world.aws.events.weather = lambda event: _weather(world, event, unheard)
    passes, lost, began = _Passes(world), 0, world.clock.now
    for number in range(jobs):
        region = {"region": ABROAD.region} if number % 2 else {}
        at = began + BEGIN_WITHIN_S * number / jobs
        name = f"job-{number:04d}"
        world.clock.at(at, lambda name=name, region=region: world.ask(name, nodes=NODES, **region))  # type: ignore[misc]
    world.run(BEGIN_WITHIN_S)
    doomed = {run.id for run in world.runs if chance.random() < LOSES}
    stopped = {run.id for run in world.runs if chance.random() < STOPPED}
    trains = dict[tuple[str, int], float]()
    while world.going() and world.clock.now < began + HEAL_S:
        world.run(20.0)
        for run in world.going():
            if run.execution.state != "Train":
                continue
            since = trains.setdefault((run.id, run.execution.attempt), world.clock.now)
            if world.clock.now < since + TRAINS_S / 2:
                continue
            if run.id in stopped:
                world.stop(run)
            elif run.id in doomed:
                doomed.discard(run.id)
                for node in world.living(run)[:1]:
                    lost += 1
                    (world.break_down if lost % 2 else world.silence)(node)
            elif world.clock.now >= since + TRAINS_S:
                for node in world.living(run):
                    world.leave(node, Exit(code=0))
    took_s = world.clock.now - began
    world.run(900.0)
    _reap(world)
    reports = tuple(f"the report of {name} says nothing" for name in unheard)  # nobody but the cleanup writes it
    left = [line for line in world.left_over() if not line.startswith(reports)]
    left += [f"{run.id} goes on" for run in world.going()] + world.too_many() + world.together()
    return Trained(
        ends=dict(Counter(run.execution.state for run in world.runs)),
        attempts=dict(Counter(run.execution.attempt for run in world.runs)),
        lost=lost,
        unheard=len(unheard),
        surprises=world.surprises,
        left_over=left,
        longest_pass_s=passes.longest_s(),
        calls=dict(Counter(call.service for call in world.aws.calls)),
        took_s=took_s,
        group_holders=_holders(world),
    )


def _holders(world: JobsWorld) -> int:
    """A new job in a region takes its security group, and gives back what is over."""
    for number, region in enumerate((PLACE.region, ABROAD.region)):
        world.ask(f"last-{number}", nodes=1, region=region)
    world.run(300.0)
    return len(holders(world.aws))


def _reap(world: JobsWorld) -> None:
    """The reaper's passes, once all else is over."""
    reaping = Reaping(world.aws)
    for _ in range(REAPED):
        world.run(PERIOD_S)
        with reaping.beside():
            outcome = reaping.run()
        if outcome.error not in {"", "Unfinished"}:  # a pass ends so many at most, and says what waits for the next
            world.surprises.append(f"reaper: {outcome.error}: {outcome.cause}")


def _weather(world: JobsWorld, event: Event, unheard: set[str]) -> Any:
    chance = world.chance.random()
    if chance < LATE_OR_LOST:
        if event["source"] == "aws.states" and event["detail"]["status"] == "ABORTED":
            unheard.add(event["detail"]["name"])
        return ()
    return (60.0,) if chance < 2 * LATE_OR_LOST else fair(event)


class _Passes:
    """Watches the attendant's passes: which invocations one tick began, and when the last of them ended."""

    def __init__(self, world: JobsWorld) -> None:
        self._world, self._ends = world, dict[float, float]()
        serve = world.functions.invoke

        def invoke(name: str, event: Mapping[str, Any], *rest: Any) -> Any:
            clock, now = world.clock, world.clock.now
            of_a_pass = name == "attendant" and (event.get("action") == "slice" or event.get("source") == "aws.events")
            outcome = serve(name, event, *rest)
            if of_a_pass:
                began = float(event.get("began", now))
                self._ends[began] = max(self._ends.get(began, now), clock.now)
            return outcome

        world.functions.invoke = invoke  # type: ignore[method-assign]

    def longest_s(self) -> float:
        return max(end - began for began, end in self._ends.items())

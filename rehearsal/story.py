"""Tells what happens to a job, a line for each event: states, attempts, phases of nodes, faults, orders, restores, steps now and then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from contract.orders import Order
from contract.reports import NodeReport, Phase
from contract.roles import Role, name_author, name_rank, name_ranks
from contract.text import one_line

EVERY_S = 10.0
"""Seconds between two lines about steps."""
MOST_NAMED = 4
"""Nodes that are named one by one; of more, those in each phase are counted."""
NEW_LINE = "\n"
MOST_SAID = 300
"""Characters of what a node says, or of a cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What can be seen of a job at one moment."""

    states: Sequence[str]
    """Entered so far, in order."""
    reports: Mapping[int, NodeReport]
    """The newest of each rank of the newest attempt."""
    strikes: Sequence[tuple[int, int, str]] = ()
    """Attempt, rank and name of each fault that has struck a node so far."""
    ends: Mapping[int, str] = field(default_factory=dict)
    """How each attempt ended, as far as the job's report says it."""
    roles: Sequence[Role] = ()
    """Those of the job."""

    @property
    def attempt(self) -> int:
        return attempt_of(self.states)


class Story:
    """Remembers what has been told; every event is told once."""

    def __init__(self) -> None:
        self._states = self._strikes = self._attempt = 0
        self._once = set[tuple[object, ...]]()
        self._phases = ""
        self._progress: tuple[object, ...] = ()
        self._spoke_at = float("-inf")

    def tell(self, scene: Scene, now: float) -> list[str]:
        """Returns a line for each event since the scene before; `now` is of any clock that runs on."""
        lines = [*self._tell_faults(scene), *self._tell_states(scene)]
        for _, report in sorted(scene.reports.items()):
            lines += self._tell_node(report, scene.roles)
        lines += self._tell_release(scene)
        return [*lines, *self._tell_phases(scene), *self._tell_steps(scene, now)]

    def _tell_states(self, scene: Scene) -> Iterator[str]:
        new = scene.states[self._states :]
        self._states = len(scene.states)
        for attempt, why in sorted(scene.ends.items()):
            if attempt < scene.attempt and self._is_first("over", attempt):
                yield f"attempt {attempt} is over: {one_line(why.partition(NEW_LINE)[0], MOST_SAID)}"
        if scene.attempt != self._attempt:
            self._attempt, self._phases, self._progress = scene.attempt, "", ()
        for attempt, names in _split(scene.states, len(scene.states) - len(new)):
            yield f"{f'attempt {attempt}: ' if attempt > 1 else ''}{' → '.join(names)}"

    def _tell_faults(self, scene: Scene) -> Iterator[str]:
        for attempt, rank, name in scene.strikes[self._strikes :]:
            yield f"fault {name} strikes {name_rank(scene.roles, rank)} in attempt {attempt}"
        self._strikes = len(scene.strikes)

    def _tell_node(self, report: NodeReport, roles: Sequence[Role]) -> Iterator[str]:
        rank, name = report.rank, name_rank(roles, report.rank)
        order = report.order
        if order and order.error and self._is_first("order", report.attempt, order.author):
            yield _describe_order(order, "all nodes", roles)
        end = report.outcome or report.exit
        if end and end.error and not end.ordered and self._is_first("end", report.attempt, rank):
            why = end.reason.partition(NEW_LINE)[0].removeprefix(f"{name}: ")
            yield f"{name} ends with {end.error}: {one_line(why, MOST_SAID)}"
        if report.phase is not Phase.RESTORING and self._is_first("start", report.attempt):
            if report.restored_step >= 0:
                yield f"attempt {report.attempt} goes on from step {report.restored_step}"
            elif report.attempt > 1:
                yield f"attempt {report.attempt} starts from the beginning: there is no whole checkpoint"

    def _tell_release(self, scene: Scene) -> Iterator[str]:
        """Names the nodes that have nothing left to do once the job is done: an order without an error is theirs alone."""
        new = dict[int, Order]()
        for rank, one in sorted(scene.reports.items()):
            if one.order and not one.order.error and self._is_first("release", one.attempt, rank):
                new[rank] = one.order
        if new:
            names, more = name_ranks(scene.roles, [*new][:MOST_NAMED]), len(new) - MOST_NAMED
            ranks = f"{names}{f' and {more} more' if more > 0 else ''}"
            yield _describe_order(next(iter(new.values())), ranks, scene.roles)

    def _is_first(self, *event: object) -> bool:
        is_first = event not in self._once
        self._once.add(event)
        return is_first

    def _tell_phases(self, scene: Scene) -> Iterator[str]:
        phases = describe_phases(scene.reports, scene.roles)
        if phases and phases != self._phases:
            self._phases = phases
            yield phases

    def _tell_steps(self, scene: Scene, now: float) -> Iterator[str]:
        report = next((one for _, one in sorted(scene.reports.items()) if one.progress), None)
        if report is None or report.progress is None:
            return
        seen = (report.attempt, report.progress.step, report.progress.metric)
        is_early = now < self._spoke_at + EVERY_S and self._progress != () and report.phase is Phase.TRAINING
        if seen == self._progress or is_early:
            return
        self._progress, self._spoke_at = seen, now
        metric = f", metric {report.progress.metric:.4g}" if report.progress.metric is not None else ""
        closed = f", checkpoint of step {report.closed_step}" if report.closed_step >= 0 else ""
        yield f"step {report.progress.step}{metric}{closed}"


def _split(states: Sequence[str], known: int) -> Iterator[tuple[int, list[str]]]:
    """Yields the states after the first `known` ones, by attempt: each begins with its launch."""
    for attempt, places in groupby(range(known, len(states)), lambda place: attempt_of(states[: place + 1])):
        yield attempt, [states[place] for place in places]


def _describe_order(order: Order, whom: str, roles: Sequence[Role]) -> str:
    kind, reason = order.kind.value.replace("-", " "), one_line(order.reason, MOST_SAID)
    return f"order to {whom} by {name_author(roles, order.author)}: {kind}: {reason}"


def describe_phases(reports: Mapping[int, NodeReport], roles: Sequence[Role] = ()) -> str:
    """Returns what the nodes do: each of a few, of more how many do what."""
    if len(reports) > MOST_NAMED:
        counts = Counter(report.phase for report in reports.values())
        return "nodes: " + ", ".join(f"{counts[phase]} {phase.value}" for phase in Phase if counts[phase])
    return ", ".join(f"{name_rank(roles, rank)} {report.phase.value}" for rank, report in sorted(reports.items()))


def attempt_of(states: Sequence[str]) -> int:
    """Returns the number of the attempt that the states entered so far have reached."""
    return max(1, states.count("Launch"))

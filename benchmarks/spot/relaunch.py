"""How soon a new attempt is launched after the last node of the one before has told its end."""

from __future__ import annotations

import json
import math
import tempfile
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.spot.assumed import Assumed
from benchmarks.spot.replay import Replay
from benchmarks.spot.traces import Stretch, Trace
from tests.fakes.aws import CALL_S
from tests.fakes.table import fair
from tests.fakes.wire import Call

LOSSES, NODES = 30, 4
EVERY_S = 1800.0
"""Between two notices."""
MOST_S = 1.0
"""That the control plane may take at the 99th percentile, beyond its calls and the delivery of the last report."""


@dataclass(frozen=True, slots=True)
class Relaunched:
    """Seconds from the last report of an attempt's last node to the RunInstances that launched the next one, in order of time."""

    all_s: list[float]
    calls_s: list[float]
    """Of these, in calls of AWS."""
    stream_s: float
    """Of these, until the table's stream delivered the report."""

    @property
    def beyond_s(self) -> list[float]:
        """Without calls and delivery."""
        return [all_s - calls_s - self.stream_s for all_s, calls_s in zip(self.all_s, self.calls_s, strict=True)]

    @property
    def wrong(self) -> str:
        late_s = percentile(self.beyond_s, 0.99)
        return f"p99 of a relaunch is {late_s:.2f} s beyond calls and delivery, of {MOST_S}" if late_s > MOST_S else ""


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(len(values) * share) - 1]


class _Notices(Replay):
    """There is always capacity, and every half hour one node gets a notice."""

    def __init__(self, folder: Path, losses: int) -> None:
        length = (losses + 1) * EVERY_S
        super().__init__(Trace("notices", NODES, length, (Stretch(0.0, length, 0),)), Assumed(), folder)
        self._losses, self.called_at = losses, list[float]()
        self.aws.table.weather = fair
        answer = self.aws.answer

        def noted(call: Call) -> dict[str, Any]:
            self.called_at.append(self.aws.clock.now)
            return answer(call)

        self.aws.answer = noted  # type: ignore[method-assign]

    def _plan(self, _number: int, _stretch: Stretch) -> None:
        self._open(has=True)
        self._quiet_until(1)
        for place in range(1, self._losses + 1):
            self.aws.clock.at(self.begins_at + place * EVERY_S, lambda place=place: self._give(place))  # type: ignore[misc]

    def _quiet_until(self, place: int) -> None:
        self._trouble_at = self.begins_at + place * EVERY_S

    def _give(self, place: int) -> None:
        # Quiet again once the next attempt trains.
        self.aws.clock.at(self.aws.clock.now + EVERY_S / 2, lambda: self._quiet_until(place + 1))
        (rank,) = self.chance.ranks(place, NODES, 1)
        now = self.aws.clock.now
        for node in self.nodes.values():
            if node.works and node.rank == rank:
                ends_at = now + self.assumed.notice_s
                told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends_at))
                node.notices.notice = json.dumps({"action": "terminate", "time": told})
                self.aws.clock.at(ends_at, lambda node=node: self._end(node))  # type: ignore[misc]


def relaunched(losses: int = LOSSES) -> Relaunched:
    with tempfile.TemporaryDirectory() as folder:
        world = _Notices(Path(folder), losses)
        world.run()
    every, calls = list[float](), list[float]()
    for attempt in sorted(world.trainings)[1:]:
        ended_at = max(one.ended_at for one in world.nodes.values() if one.attempt == attempt - 1)
        launched_at = min(one.machine.launched_at for one in world.nodes.values() if one.attempt == attempt)
        between = bisect_left(world.called_at, launched_at) - bisect_left(world.called_at, ended_at)
        every.append(launched_at - ended_at)
        calls.append(between * CALL_S)
    return Relaunched(every, calls, next(iter(fair({}))))


def describe_relaunch(found: Relaunched | None) -> list[str]:
    """Its section; nothing where it was not measured."""
    if found is None:
        return []
    rows = []
    parts = {"all of it": found.all_s, "calls of AWS": found.calls_s, "beyond calls and delivery": found.beyond_s}
    for name, values in parts.items():
        figures = (percentile(values, share) for share in (0.5, 0.99, 1.0))
        rows.append(f"| {name} | {' | '.join(f'{one:.2f} s' for one in figures)} |")
    return [
        "\n## From the last commit to the next launch\n",
        f"`--relaunch`: {len(found.all_s)} notices to one of {NODES} nodes, with capacity at once; from the last report of the last",
        "node, which says that everything is committed, to the RunInstances that launches the next attempt. Delivery of the report by",
        f"the table's stream is {found.stream_s} s in the fake. At most {MOST_S:g} s beyond both is wanted at the 99th percentile.\n",
        "| part | median | p99 | longest |", "|---|---|---|---|", *rows,
    ]  # fmt: skip

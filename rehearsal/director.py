"""Begins and ends each fault of a scenario at its moments, while its job runs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from contract import tags
from localaws.services import ec2
from rehearsal.faults import FAULTS
from rehearsal.idle_faults import PHASES
from rehearsal.node_faults import NodeFaults
from rehearsal.scenario import Entry, ScenarioMoment
from rehearsal.state import reports
from rehearsal.yard import Yard

LOOK_S = 0.25
"""Between two looks at the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a look at a job sees, past the API."""

    attempt: int
    """The newest of which there is an instance; 0 before."""
    phase: str = ""
    """Of its rank 0; empty before its first report."""
    step: int = -1
    closed: int = -1
    """Step of its newest closed set; -1 before the first."""


def is_due(moment: ScenarioMoment, seen: Sight, happened: Collection[str]) -> bool:
    """Whether all that a moment waits for is so, but for its seconds."""
    return (
        seen.attempt >= moment.attempt
        and (not moment.phase or (seen.phase != "" and PHASES.index(seen.phase) >= PHASES.index(moment.phase)))
        and (moment.step is None or seen.step >= moment.step)
        and (moment.closed is None or seen.closed >= moment.closed)
        and (not moment.after or moment.after in happened)
    )


class Director:
    """A context: looks at the job of that name, and begins the faults of the scenario, until it ends. The faults then end too."""

    def __init__(self, yard: Yard, job: str, entries: Sequence[Entry]) -> None:
        self._yard, self._job, self._entries = yard, job, [_bound(one, job) for one in entries]
        self._since: dict[tuple[str, str], float] = {}
        """By entry and `begins` or `ends`, since when nothing but its seconds is left, on the monotonic clock."""
        self._ended: set[str] = set()
        self._begun: dict[str, tuple[float, Entry]] = {}
        """When each began, UTC epoch seconds, and the entry with its fault as it was begun."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._direct, name="director", daemon=True)

    def __enter__(self) -> Director:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> None:
        """Starts to look at the job, which need not be there yet."""
        self._thread.start()

    def end(self) -> None:
        """Ends the scenario and its faults, whether it was started or not. May be called twice."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._yard.lift([entry.fault for _, entry in self._begun.values()])

    @property
    def happened(self) -> set[str]:
        """Names of the entries that have struck a node; of those that strike none, that have begun."""
        struck = list(self._yard.nodes.happened)
        return {
            name
            for name, (_, entry) in list(self._begun.items())
            if entry.fault.name not in NodeFaults.striking or any(one is entry.fault for one in struck)
        }

    def write(self, file: Path) -> None:
        """Writes when each fault began (null for never), UTC epoch seconds, and whether it happened."""
        happened, begun = self.happened, dict(self._begun)
        told = [
            {
                "name": one.name,
                "fault": one.fault.name,
                "keys": dict(one.fault.given),
                "began_at": begun[one.name][0] if one.name in begun else None,
                "happened": one.name in happened,
            }
            for one in self._entries
        ]
        file.write_text(json.dumps(told, indent=2) + "\n")

    def missing(self) -> list[str]:
        """Says which entries did not happen, in their order, and whether their moment came."""
        happened, begun = self.happened, dict(self._begun)
        why = {True: "it began and struck nothing", False: "its moment never came"}
        return [
            f"{one.name} ({one.fault.name}) of the scenario never happened: {why[one.name in begun]}"
            for one in self._entries
            if one.name not in happened
        ]

    def _direct(self) -> None:
        while not self._over.wait(LOOK_S):
            seen, happened, now = self._read_sight(), self.happened, time.monotonic()
            for entry in self._entries:
                if entry.name not in self._begun:
                    if self._has_come((entry.name, "begins"), entry.begin, seen, happened, now):
                        self._begin(entry)
                elif (
                    entry.end
                    and entry.name not in self._ended
                    and self._has_come((entry.name, "ends"), entry.end, seen, happened, now)
                ):
                    self._end(entry)

    def _has_come(
        self, of: tuple[str, str], moment: ScenarioMoment, seen: Sight, happened: Collection[str], now: float
    ) -> bool:
        if of not in self._since and is_due(moment, seen, happened):
            self._since[of] = now
        since = self._since.get(of)
        return since is not None and (now - since) * self._yard.conditions.speed >= moment.seconds

    def _begin(self, entry: Entry) -> None:
        begun = replace(entry, fault=replace(entry.fault, since=time.monotonic()))
        self._begun[entry.name] = (time.time(), begun)
        self._yard.begin([begun.fault])

    def _end(self, entry: Entry) -> None:
        self._ended.add(entry.name)
        self._yard.lift([self._begun[entry.name][1].fault])

    def _read_sight(self) -> Sight:
        """Reads the attempt, phase and step that the job has reached."""
        mine = [one.tags for one in ec2.machines().all() if one.tags.get(tags.JOB) == self._job]
        attempt = max((int(one.get(tags.ATTEMPT, "0")) for one in mine), default=0)
        first = next((one for one in reports() if (one.job, one.attempt, one.rank) == (self._job, attempt, 0)), None)
        if first is None:
            return Sight(attempt=attempt)
        step = first.progress.step if first.progress else -1
        return Sight(attempt=attempt, phase=first.phase.value, step=step, closed=first.closed_step)


def _bound(entry: Entry, job: str) -> Entry:
    """The entry for this job alone, where its fault can be for one and names none; calls of functions belong to no job."""
    fault = entry.fault
    if "job" not in FAULTS[fault.name].keys or fault.given.get("who", "nodes") != "nodes" or "job" in fault.given:
        return entry
    return replace(entry, fault=replace(fault, given={**fault.given, "job": job}))

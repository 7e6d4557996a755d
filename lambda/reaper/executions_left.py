"""The reaper's kinds for executions that outlive what started them, in the home region: lines of grids, and rounds of searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws import executions
from aws.belongings import Page, end_each, moment
from aws.clients import BRISK
from aws.facts import Belonging, Sort
from contract import grid
from contract.execution_facts import ENDED_BY, RUNNING, read_mark
from contract.search import is_round_of, read_search_of

PROBES = 3
"""At most this many executions of a group are read for their input until one of them is ours."""


class _ExecutionsLeft:
    """Executions of one machine, each of which belongs to the execution that its own input names."""

    every_s, counted = 0.0, False
    sort: Sort
    reason: str
    """What Step Functions shows as the cause of their end."""

    def __init__(self, deployment: str, region: str, machine: str, starter: str) -> None:
        """The ARNs of their machine, and of the machine whose executions start them."""
        self._deployment, self._region, self._machine = deployment, region, machine
        self._starters = f"{starter.replace(':stateMachine:', ':execution:')}:"

    def again(self, ids: Sequence[str]) -> Page:
        """Reads each by its ARN. The time is the first answer's: a clock that lags only delays an end."""
        things, at = list[Belonging](), None
        for arn in ids:
            answer = executions.described(arn, BRISK)
            if answer is None:
                continue
            at = at or moment(answer)
            if answer["status"] == RUNNING and (of := self._read_starter(answer)):
                things.append(self._thing(arn, answer["startDate"].timestamp(), of))
        return Page(tuple(things), at or moment({}))

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda arn: executions.stop(arn, ENDED_BY, self.reason))

    def _read_starter(self, answer: Mapping[str, Any]) -> str:
        """Returns the ARN of the execution that started it; empty where none of ours did."""
        raise NotImplementedError

    def _thing(self, arn: str, started_at: float, of: str) -> Belonging:
        return Belonging(
            id=arn,
            sort=self.sort,
            region=self._region,
            state=RUNNING,
            born_at=started_at,
            deployment=self._deployment,
            protected=False,
            execution=of,
            job=of.rpartition(":")[2],
            owner="",
        )


class LinesLeft(_ExecutionsLeft):
    """Executions of the Train machine that are lines of grids. The names of a grid's lines differ in a number only, so the input of one
    stands for the group while scanning; just before an end, each execution's own input decides."""

    name, sort, reason = "line-executions", Sort.LINE, "The grid of this job is over."

    def __init__(self, deployment: str, region: str, machine: str, starter: str) -> None:
        super().__init__(deployment, region, machine, starter)
        self._known: dict[str, str] = {}
        """Group to the grid's execution; empty text for a group of which none that was read is a grid's."""
        self._probes: Counter[str] = Counter()

    def pages(self) -> Iterator[Page]:
        prefix, now = grid.training_prefix(self._deployment), moment({})
        things = list[Belonging]()
        for one in executions.listed_running(self._machine, BRISK):
            if not one.name.startswith(prefix):
                continue
            group, _, number = one.name.rpartition("-")
            if not number.isdecimal():
                continue
            if not self._known.get(group) and self._probes[group] < PROBES:
                self._probes[group] += 1
                if (answer := executions.described(one.arn, BRISK)) is not None:
                    now, self._known[group] = moment(answer), self._read_starter(answer)
            if of := self._known.get(group):
                things.append(self._thing(one.arn, one.started_at, of))
        if things:
            yield Page(tuple(things), now)

    def _read_starter(self, answer: Mapping[str, Any]) -> str:
        mark = read_mark(str(answer.get("input") or ""))
        if mark is None or not mark.execution.startswith(self._starters):
            return ""
        return mark.execution if grid.is_name_of(str(answer["name"]), self._deployment, mark) else ""


class RoundsLeft(_ExecutionsLeft):
    """Executions of the Grid machine that are rounds of searches: a search has one at a time, so each is read."""

    name, sort, reason = "round-executions", Sort.ROUND, "The search of this round is over."

    def pages(self) -> Iterator[Page]:
        things, now = list[Belonging](), moment({})
        for one in executions.listed_running(self._machine, BRISK):
            if not is_round_of(one.name, one.name.rpartition("-r")[0]):
                continue
            if (answer := executions.described(one.arn, BRISK)) is None:
                continue
            now = moment(answer)
            if of := self._read_starter(answer):
                things.append(self._thing(one.arn, one.started_at, of))
        if things:
            yield Page(tuple(things), now)

    def _read_starter(self, answer: Mapping[str, Any]) -> str:
        starter = read_search_of(str(answer["name"]), answer.get("input"))
        return starter if starter.startswith(self._starters) else ""

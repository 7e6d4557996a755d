"""The account of Plan's tests as searches meet it: their settled inputs, their rounds, and the executions behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import pytest

import grid_plan.planning
import searches.store
from contract import names
from contract.codec import encode
from contract.environments import GridCleanupEnvironment
from contract.grid import GridPrefix, Line, LineOutcome, Record
from contract.search import STARTED_BY, Search, SearchPrefix, name_round
from contract.timing import Timing
from contract.timings import CollectTiming
from searches.checking import CheckedSearch, check
from searches.request import SearchRequest, read, write_line
from searches.store import SearchStore
from tests.fakes.executions import Execution
from tests.fakes.functions import OneByOne, quiet
from tests.fakes.queue import URL
from tests.functions.grid_plan.account import ENVIRONMENT as PLAN
from tests.functions.grid_plan.account import Account, account
from tools.refusals.grids.yard import ACCOUNT, BUCKET, HOME
from tools.refusals.searches.yard import LEAST, execution

TOPIC = f"arn:aws:sns:{HOME}:{ACCOUNT}:yard-topic"
SEARCH = f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{names.search_machine('yard')}"
WHOLE = {one.name: getattr(PLAN, one.name) for one in fields(PLAN)}
ENVIRONMENT = GridCleanupEnvironment(**WHOLE, timing=Timing().of(CollectTiming), topic=TOPIC, messages=URL)


class Searches:
    """Searches of the account: each is settled as its first Ask would, and its rounds are written as their grids would."""

    def __init__(self, aws: Account) -> None:
        self.aws, self.env = aws, ENVIRONMENT
        self.store = SearchStore(BUCKET)

    def check(self, raw: object, name: str = "tune-7") -> CheckedSearch:
        """As Ask checks the input of a new execution, the input having been JSON."""
        return check(json.loads(json.dumps(raw)), execution(name), self.env, self.store)

    def problems(self, raw: object, name: str = "tune-7") -> list[str]:
        return self.check(raw, name).problems

    def settle(self, name: str = "tune-7", **given: Any) -> Search:
        """A search that runs; `given` are fields over the smallest one."""
        checked = self.check(LEAST | given, name)
        assert checked.problems == []
        self.begin(name, SEARCH)
        return self.store.settle(checked.search)

    def begin(self, name: str, machine: str, given: str = "{}") -> Execution:
        begun = self.aws.states.executions.begin(name, machine)
        begun.input = given
        return begun

    def end(self, name: str, status: str = "ABORTED", machine: str = SEARCH) -> Execution:
        """The execution ends, and nothing hears of it."""
        found = self.aws.states.executions.known[f"{machine.replace(':stateMachine:', ':execution:')}:{name}"]
        found.status, found.ended_at = status, self.aws.clock.now
        return found

    def ask(
        self,
        search: Search,
        questions: Sequence[Mapping[str, Any]],
        number: int = 1,
        first: int = 0,
        *,
        starts: bool = True,
    ) -> str:
        """A round with these parameters, whose grid runs if it `starts`; `first` is its first trial's number. Returns the grid."""
        wanted = read(search.given)[0]
        lines = [write_line(wanted, first + place, one) for place, one in enumerate(questions)]
        self.store.ensure_questions(search.id, number, lines)
        grid = name_round(search.id, number)
        if starts:
            self.begin(grid, ENVIRONMENT.machine, json.dumps(input_of(search, number)))
        return grid

    def plan(self, grid: str, lines: int, most_usd: float | None = 1.75) -> None:
        """Plan wrote the grid."""
        every = [line_of(index, grid, most_usd) for index in range(lines)]
        self.aws.s3.write(BUCKET, GridPrefix(grid).lines(0), b"\n".join(map(encode, every)) + b"\n")
        self.aws.s3.write(BUCKET, GridPrefix(grid).description, b"{}")

    def count(self, grid: str, records: Sequence[Record]) -> None:
        """Collect, or the grid's cleanup, wrote results and report."""
        body = b"".join(encode(one) + b"\n" for one in records)
        self.aws.s3.write(BUCKET, GridPrefix(grid).results_jsonl, body)
        self.aws.s3.write(BUCKET, GridPrefix(grid).report, b"{}")

    def train(
        self,
        search: Search,
        values: Sequence[float | None],
        number: int = 1,
        first: int = 0,
        *,
        status: str = "SUCCEEDED",
        **changes: Any,
    ) -> str:
        """A whole round, with a record for each value and `changes` of all of them; None is a trial that failed."""
        questions = [{"lr": 0.01 + (first + place) / 1000} for place in range(len(values))]
        grid = self.ask(search, questions, number, first)
        self.plan(grid, len(values))
        self.count(grid, [record_of(index, value, grid, **changes) for index, value in enumerate(values)])
        self.end(grid, status, ENVIRONMENT.machine)
        return grid

    def text(self, key: str) -> str:
        body = self.aws.s3.read(BUCKET, key)
        assert body is not None, key
        return body.decode()


def input_of(search: Search, number: int) -> dict[str, str]:
    """What the grid of a round was started with."""
    return {STARTED_BY: search.execution, "manifest": f"s3://{BUCKET}/{SearchPrefix(search.id).questions(number)}"}


def line_of(index: int, grid: str, most_usd: float | None) -> Line:
    """A line as Plan writes it, as far as searches read it."""
    request = {"TrainingJobName": f"yard-{grid}-{index}"}
    return Line(
        index=index, line=index + 1, region=HOME, why="", slot=index, request=request, source={}, most_usd=most_usd
    )


def record_of(index: int, value: float | None, grid: str = "tune-7-r1", **changes: Any) -> Record:
    """What came of a trial; None for a value is a trial that failed."""
    record = Record(
        index=index,
        line=index + 1,
        region=HOME,
        training=f"yard-{grid}-{index}",
        outcome=LineOutcome.FAILED if value is None else LineOutcome.COMPLETED,
        reason="out of memory" if value is None else "",
        seconds=600.0,
        cost_usd=0.5,
        artifact="" if value is None else f"s3://bytes/grids/{grid}/{index:08d}/model.tar.gz",
        metrics={} if value is None else {"accuracy": value},
        log="https://console.aws.amazon.com/log",
    )
    return replace(record, **changes)


def request_of(**given: Any) -> SearchRequest:
    """The smallest search with these fields, with which nothing is wrong."""
    wanted, _, problems = read(LEAST | given)
    assert problems == []
    return wanted


@contextmanager
def searched(patch: pytest.MonkeyPatch, **limits: Any) -> Iterator[Searches]:
    """A new account, which every client of the functions talks to meanwhile."""
    # A message may be delivered while a call is under way: whatever it does comes from the same thread.
    for module in (grid_plan.planning, searches.store):
        patch.setattr(module, "ThreadPoolExecutor", OneByOne)
    with account(patch, **limits) as aws, quiet("search", "cleanup"):
        for name, value in ENVIRONMENT.write().items():
            if limits and name.endswith("_LIMITS"):
                continue
            patch.setenv(name, value)
        yield Searches(aws)

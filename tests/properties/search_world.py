"""A search on the fake AWS, step by step as its machine would take them: steps are killed at any call, come twice, and are begun again;
its grids are planned by Plan itself, and their trainings end as chance has it."""

from __future__ import annotations

import csv
import io
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import client
from contract.environments import GridCleanupEnvironment
from contract.errors import InvalidRequest, SearchFailed, StillTraining
from contract.grid import Grid, GridPrefix, Line, LineOutcome, Record
from contract.metric_values import write_expression
from contract.search import SearchPrefix
from contract.timing import Timing
from contract.timings import CollectTiming
from grids import results
from planner.handler import handler as plan
from search.handler import handler
from searches.store import SearchStore
from tests.fakes.clock import Killed
from tests.fakes.executions import Execution
from tests.fakes.faults import Faults, Kind
from tests.fakes.queue import URL
from tests.fakes.wire import Call
from tests.functions.grid_plan.account import ENVIRONMENT, Account
from tools.refusals.grids.yard import ACCOUNT, BUCKET, HOME

SEARCH_MACHINE = f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:yard-search"
TOPIC = f"arn:aws:sns:{HOME}:{ACCOUNT}:yard-notify"
ENV = GridCleanupEnvironment(
    **{name: getattr(ENVIRONMENT, name) for name in ENVIRONMENT.__dataclass_fields__},
    topic=TOPIC,
    timing=Timing().of(CollectTiming),
    messages=URL,
)
REQUEST: dict[str, Any] = {
    "template": {
        "image": "images:v1",
        "instance_type": "ml.g5.xlarge",
        "data": "s3://data-eu/train/",
        "max_hours": 1,
        "metrics": {"score": write_expression("score")},
    },
    "search": {
        "lr": {"float": [1e-5, 1e-1], "log": True},
        "depth": {"int": [2, 8]},
        "act": {"choice": ["relu", "gelu"]},
    },
    "objective": {"metric": "score", "direction": "maximize"},
    "trials": 24,
    "parallel": 4,
}
TRIES = 40
"""The most tries of one step: beyond them the machine would give up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often what goes wrong, from 0 to 1."""

    killed: float = 0.1
    """Of the tries of a step: the process ends at some call."""
    twice: float = 0.2
    """Of the steps: they come a second time after their answer."""
    again: float = 0.1
    """Of the steps: a person begins again there, with the variables of then."""
    lost: float = 0.02
    """Of all calls: done, and never answered."""
    throttled: float = 0.05
    failed: float = 0.15
    """Of the trials, as `silent` and `refused`."""
    silent: float = 0.1
    """They complete without the metric."""
    refused: float = 0.05
    unpriced: float = 0.2
    """Of the records: they do not say what it cost."""


CALM = Weather(killed=0, twice=0, again=0, lost=0, throttled=0)


class RandomFaults(Faults):
    """Throttles and lost answers by chance."""

    def __init__(self, weather: Weather, chance: random.Random) -> None:
        super().__init__()
        self._weather, self._chance = weather, chance

    def take(self, call: Call) -> Kind | None:
        drawn = self._chance.random()
        if drawn < self._weather.lost:
            return Kind.LOST
        if call.service in ("s3", "stepfunctions") and drawn < self._weather.lost + self._weather.throttled:
            return Kind.THROTTLED
        return super().take(call)


class MortalAccount(Account):
    """An account whose caller is killed when `left` calls have been made; None for never."""

    left: int | None = None

    def answer(self, call: Call) -> dict[str, Any]:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Killed(f"before {call.name}")
        return super().answer(call)


@dataclass
class SearchWorld:
    """`run` drives a search to its end."""

    seed: int = 0
    weather: Weather = CALM
    name: str = "find"
    given: Mapping[str, Any] = field(default_factory=lambda: REQUEST)
    fates: int = 0
    """Chance of the trials' fates, which their parameters alone decide."""
    account: MortalAccount = field(default_factory=MortalAccount)
    trained: Counter[str] = field(default_factory=Counter)
    """Each training that ever ran, by grid and line."""
    cost_usd: float = 0.0
    """What all of them really cost."""
    held: str = ""
    """A grid that trains on until somebody stops it."""
    killed_at: dict[str, int] = field(default_factory=dict)
    """Action to the call before which its first process ends."""
    visited: list[str] = field(default_factory=list)
    problem: dict[str, str] | None = None

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.account.faults = RandomFaults(self.weather, self.chance)
        executions = self.account.states.executions
        executions.machines |= {ENV.machine, SEARCH_MACHINE}
        executions.began = self._note
        executions.stopped = self._settle
        self._begun: list[Execution] = []
        self.execution = executions.begin(self.name, SEARCH_MACHINE)
        self.store = SearchStore(BUCKET)

    # What a test asks

    def run(self, steps: int = 10**9) -> str:
        """Returns the last state: done, failed, or aborted where a person stops it after so many steps."""
        self._variables: dict[str, Any] = {"round": 1, "problem": None, "why": ""}
        state = "ask"
        while state not in ("done", "failed"):
            if len(self.visited) == steps:
                self.account.states.executions.end(self.execution, "ABORTED", None, "no longer needed")
                return "aborted"
            self.visited.append(state)
            before = dict(self._variables)
            state = self._step(state)
            if self.chance.random() < self.weather.again:
                self._variables, state = before, self.visited[-1]
        status = "SUCCEEDED" if state == "done" else "FAILED"
        self.account.states.executions.end(self.execution, status, *(self.problem or {}).values())
        return state

    def questions(self) -> list[list[dict[str, Any]]]:
        """Returns the parameters of each round."""
        count, found = 1, []
        while (body := self.account.s3.read(BUCKET, SearchPrefix(self.name).questions(count))) is not None:
            found.append([json.loads(line)["hyperparameters"] for line in body.splitlines()])
            count += 1
        return found

    def rows(self) -> list[dict[str, str]]:
        """Returns the rows of trials.csv."""
        return list(csv.DictReader(io.StringIO(self._read(SearchPrefix(self.name).trials))))

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._read(SearchPrefix(self.name).report))
        return found

    def _read(self, key: str) -> str:
        body = self.account.s3.read(BUCKET, key)
        assert body is not None
        return body.decode()

    # The machine

    def _step(self, state: str) -> str:
        """Takes one state; returns the next one."""
        if state == "train":
            return self._train()
        event = {"action": state, "execution": self._describe(), "request": self.given, **self._variables}
        try:
            answer = self._invoke(json.loads(json.dumps(event)))
            if self.chance.random() < self.weather.twice:
                assert self._invoke(json.loads(json.dumps(event))) == answer
        except InvalidRequest as problem:
            self.problem = {"error": "InvalidRequest", "cause": str(problem)}
            return "failed"
        except SearchFailed as problem:
            if state == "report":
                self.problem = {"error": "SearchFailed", "cause": str(problem)}
                return "failed"
            self._variables |= {"problem": {"error": "SearchFailed", "cause": str(problem)}, "why": ""}
            return "report"
        if state == "report":
            self.problem = self._variables["problem"]
            return "failed" if self.problem else "done"
        self._variables |= {name: answer.get(name) for name in ("round", "why", "problem", "grid", "input")}
        return str(answer["next"])

    def _invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Invokes the function as the state's retries do."""
        for _ in range(TRIES):
            killed = self.chance.random() < self.weather.killed
            left = self.chance.randrange(60) if killed else None
            self.account.left = self.killed_at.pop(event["action"], left)
            try:
                return handler(event, None)
            except StillTraining:
                self.account.clock.run(30.0)
            except (Killed, ClientError, BotoCoreError):
                self.account.clock.run(2.0)
            finally:
                self.account.left = None
            self._work()
        raise AssertionError(f"{event['action']} did not end in {TRIES} tries")

    def _train(self) -> str:
        """Starts the grid; waits for its end, or loses sight of it."""
        arguments = {
            "stateMachineArn": ENV.machine,
            "name": self._variables["grid"],
            "input": json.dumps(self._variables["input"], sort_keys=True),
        }
        for _ in range(self.chance.choice((1, 2))):
            try:
                client("stepfunctions").start_execution(**arguments)
            except (ClientError, BotoCoreError) as problem:
                self._variables["problem"] = {"error": "States.TaskFailed", "cause": str(problem)}
        if self._variables["grid"] != self.held and self.chance.random() >= self.weather.again:
            self._work()
        return "tell"

    def _describe(self) -> dict[str, str]:
        return {"arn": self.execution.arn, "name": self.name, "started_at": "2027-01-15T08:00:00.000Z"}

    # Its grids

    def _note(self, execution: Execution) -> None:
        if execution.machine == ENV.machine:
            self._begun.append(execution)

    def _settle(self, execution: Execution) -> None:
        """The grid's own cleanup counts what there is, some minutes later."""

        def report() -> None:
            self.account.s3.write(BUCKET, GridPrefix(execution.name).report, b'{"problem": {}}')

        self.account.clock.at(self.account.clock.now + 300, report)

    def _work(self) -> None:
        """Carries out the grids that have begun: Plan itself, then records as the trainings' fates have it."""
        faults, self.account.faults = self.account.faults, Faults()
        try:
            while self._begun:
                execution = self._begun.pop(0)
                if execution.name != self.held:
                    self._carry_out(execution)
        finally:
            self.account.faults = faults

    def _carry_out(self, execution: Execution) -> None:
        executions = self.account.states.executions
        who = {"arn": execution.arn, "name": execution.name, "started_at": "2027-01-15T08:00:00.000Z"}
        try:
            plan({"request": json.loads(execution.input), "execution": who}, None)
        except InvalidRequest as problem:
            executions.end(execution, "FAILED", "InvalidRequest", str(problem))
            return
        grid = self.store.grid(execution.name)
        assert grid is not None
        for line in self.store.lines(grid.id, range(grid.lines)):
            self.store.record(grid, self._end(grid, line))
        results.write(self.store, grid)
        self.store.put(GridPrefix(grid.id).report, b'{"problem": null}')
        executions.end(execution, "SUCCEEDED")

    def _end(self, grid: Grid, line: Line) -> Record:
        """Trains a line. What becomes of it depends on its parameters alone."""
        self.trained[f"{grid.id}/{line.index}"] += 1
        own = line.source["hyperparameters"]
        drawn = random.Random(f"{self.fates} {json.dumps(own, sort_keys=True)}")
        fate, cost = drawn.random(), (line.most_usd or 0.0) * drawn.random()
        record = Record(
            index=line.index,
            line=line.line,
            region=line.region,
            training=line.training,
            outcome=LineOutcome.COMPLETED,
            reason="",
            cost_usd=cost,
            metrics={"score": score(own)},
        )
        rough = self.weather
        if fate < rough.refused:
            return replace(
                record,
                outcome=LineOutcome.REFUSED,
                reason=f"no such image for {line.training}",
                cost_usd=0.0,
                metrics={},
            )
        self.cost_usd += cost
        if drawn.random() < rough.unpriced:
            record = replace(record, cost_usd=None)
        if fate < rough.refused + rough.failed:
            return replace(record, outcome=LineOutcome.FAILED, reason=f"AlgorithmError in {line.training}", metrics={})
        if fate < rough.refused + rough.failed + rough.silent:
            return replace(record, metrics={})
        return record


def score(parameters: Mapping[str, Any]) -> float:
    """Returns what a training reports."""
    return float(
        1 - abs(parameters["depth"] - 5) / 10 - 3 * abs(parameters["lr"] - 0.01) - 0.2 * (parameters["act"] == "relu")
    )


@contextmanager
def world(patch: pytest.MonkeyPatch, **given: Any) -> Iterator[SearchWorld]:
    """A new account with a search in it, which every client talks to meanwhile."""
    for name, value in ENV.write().items():
        patch.setenv(name, value)
    account = given.pop("account", None) or MortalAccount()
    patch.setattr(time, "sleep", account.clock.sleep)
    patch.setattr(time, "time", account.clock.time)
    with account.connected():
        yield SearchWorld(account=account, **given)

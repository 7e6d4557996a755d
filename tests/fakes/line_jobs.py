"""Executions of the Train machine that are lines of grids: admitted or refused, trained, stopped, and their reports, which come late."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from contract import keys
from contract.errors import InvalidRequest, TrainingFailed
from tests.fakes.aws import Aws
from tests.fakes.executions import MACHINE, Execution

REFUSED = "The request was refused: nodes: 99 is too large; allowed: 1 to 16"
FAILED = "rank 0 exited with code 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLife:
    """What befalls a job. Times in seconds from its start."""

    admitted_s: float = 5.0
    ends_s: float = 120.0
    cleared_s: float = 60.0
    """From a stop until no instance of it runs, and its report says so."""
    error: str = ""
    """The error with which it ends; empty where it ends well. InvalidRequest comes in the place of its admission."""
    metric: float | None = 0.5
    usd: float = 1.25


@dataclass
class LineJobs:
    """All of a deployment; attached to its Step Functions."""

    aws: Aws
    bucket: str
    life: Callable[[str], JobLife] = lambda _: JobLife()
    running: set[str] = field(default_factory=set)
    """Names of jobs of which instances run."""
    started: list[str] = field(default_factory=list)
    """Names in the order in which executions began."""

    def __post_init__(self) -> None:
        states = self.aws.states.executions
        states.began, states.stopped = self._begin, self._stop

    def _begin(self, execution: Execution) -> None:
        if execution.machine != MACHINE:
            return
        self.started.append(execution.name)
        life = self.life(execution.name)
        self._later(life.admitted_s, lambda: self._admit(execution, life))

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self.aws.clock.at(self.aws.clock.now + seconds, action)

    def _admit(self, execution: Execution, life: JobLife) -> None:
        if execution.status != "RUNNING":
            return
        if life.error == InvalidRequest.__name__:
            self.aws.states.executions.end(execution, "FAILED", life.error, REFUSED)
            return
        self.aws.s3.write(self.bucket, keys.JobPrefix(execution.name).description, b"{}")
        self.running.add(execution.name)
        self._later(life.ends_s, lambda: self._end(execution, life))

    def _end(self, execution: Execution, life: JobLife) -> None:
        """The machine's own end: Terminate has ended every instance, and written the report."""
        if execution.status != "RUNNING":
            return
        self.running.discard(execution.name)
        cost = {"usd_at_most": life.usd, "billed_s": life.ends_s}
        if life.error:
            self._report(execution, life.error, cost)
            self.aws.states.executions.end(execution, "FAILED", life.error, FAILED)
            return
        output = {
            "job": execution.name,
            "region": "us-east-1",
            "progress": {"step": 10, "metric": life.metric},
            "cost": cost,
            "artifacts": {
                "artifacts": 1,
                "bytes": 9,
                "list": f"s3://{self.bucket}/jobs/{execution.name}/attempts/1/artifacts.json",
            },
        }
        execution.output = json.dumps(output)
        self.aws.states.executions.end(execution, "SUCCEEDED")

    def _stop(self, execution: Execution) -> None:
        """A stop ends the execution at once; its instances, and its report, follow."""
        if execution.machine == MACHINE and execution.name in self.running:
            self._later(self.life(execution.name).cleared_s, lambda: self._clear(execution))

    def _clear(self, execution: Execution) -> None:
        self.running.discard(execution.name)
        self._report(execution, execution.error or "Aborted", {"usd_at_most": 0.5, "billed_s": 60.0})

    def _report(self, execution: Execution, error: str, cost: dict[str, float]) -> None:
        launches = [{"region": "us-east-1", "zone": "us-east-1a", "instances": ["i-1"]}]
        body: dict[str, object] = {
            "job": execution.name,
            "error": error,
            "cause": "",
            "cost": cost,
            "launches": launches,
        }
        body["ended_at"] = self.aws.clock.now
        self.aws.s3.write(self.bucket, keys.JobPrefix(execution.name).result, json.dumps(body).encode())


FAILS = JobLife(error=TrainingFailed.__name__)
IS_REFUSED = JobLife(error=InvalidRequest.__name__)

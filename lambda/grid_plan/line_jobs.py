"""Judges lines that become jobs as Admit would, all of them before anything starts.

What only a job's own Admit can know is left to it: spot prices, which order its places; the commit of a git host; and whether STS gives
the sessions that it needs. What a place has of capacity shows its launch.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from aws.executions import name_arn
from contract.codec import decode
from contract.environments import GridEnvironment, JobChecksEnvironment
from contract.execution_facts import MARK
from contract.grid import training_name
from contract.job_settings import JobSettings
from contract.jobs import Market
from grid_plan.cluster_lines import ClusterSpec
from grid_plan.training_arguments import GridRun
from job_checks.access import check_data, is_foreign_data
from job_checks.facts import Execution, RequestFacts
from job_checks.judge import list_problems, price_request
from job_checks.questions import RequestQuestions, list_questions
from job_requests.presets import ARCHIVE
from job_requests.request import JobRequest

OWN = ("data", "environment", "owner", "tags")
"""Fields that differ from line to line, and of which a job's place does not depend: data is judged by itself."""
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""As `map`, or as that of a pool of threads."""


class FactsSource(Protocol):
    """Answers about requests, by AWS or without it."""

    knows_jobs: bool
    """Whether it answers about the job from which another one begins; otherwise any will do."""

    def look_up(self, request: JobRequest, questions: RequestQuestions, /) -> RequestFacts: ...

    def look_up_data(self, locations: Iterable[str], /) -> RequestFacts: ...


@dataclass(frozen=True, slots=True)
class LineJob:
    """The request that a line becomes, as far as it is right."""

    request: JobRequest
    shape: bytes
    """Equal for lines of which Admit would say the same, but for their data; 16 bytes, because a manifest may have 100,000."""

    @classmethod
    def of(cls, spec: ClusterSpec, request: JobRequest) -> LineJob:
        given = {name: one for name, one in spec.fields.items() if name not in OWN}
        variables = sorted(request.environment)  # some names do not go with a role
        shape = json.dumps([given, variables, bool(spec.hyperparameters)], sort_keys=True)
        return cls(request, hashlib.sha256(shape.encode()).digest()[:16])


class LineJobs:
    """The jobs of a grid's lines, each different one of which is judged once."""

    def __init__(self, env: JobChecksEnvironment, machine: str, run: GridRun, source: FactsSource) -> None:
        """`machine` is the ARN of the Train machine."""
        name = training_name(env.deployment, run.execution, run.started_at, 0)
        self._execution = Execution(arn=name_arn(machine, name), name=name, started_at=time.time())
        self._env, self._source = env, source
        self._facts: dict[str, RequestFacts] = {}
        """By what was asked."""
        self._against: dict[bytes, list[str]] = {}
        """By the shape of a job."""

    def learn(self, jobs: Sequence[LineJob], each: Map = map) -> None:
        """Judges every different job that is new, once everything that they name is looked up. Raises AWS's own errors."""
        new = {one.shape: self._take_place(one.request) for one in jobs if one.shape not in self._against}
        questions = {shape: self._ask(request) for shape, request in new.items()}
        unknown = {repr(one): (new[shape], one) for shape, one in questions.items() if repr(one) not in self._facts}
        self._facts |= dict(zip(unknown, each(lambda one: self._source.look_up(*one), unknown.values()), strict=True))
        for shape, request in new.items():
            facts = self._facts[repr(questions[shape])]
            self._against[shape] = list_problems(price_request(request, self._execution, facts, self._env))
        locations = self._readable(dict.fromkeys(location for one in jobs for location in one.request.data))
        for _ in each(lambda one: self._source.look_up_data([one]), locations):
            pass

    def list_problems(self, job: LineJob) -> list[str]:
        """Returns what Admit would say against a job that was learned."""
        if not job.request.data:
            return self._against[job.shape]
        facts = self._source.look_up_data(self._readable(job.request.data))
        return [*self._against[job.shape], *check_data(job.request, facts, self._env)]

    def _readable(self, locations: Iterable[str]) -> list[str]:
        """Returns those about which the deployment may ask."""
        return [one for one in locations if not is_foreign_data(one, self._env)]

    def _ask(self, request: JobRequest) -> RequestQuestions:
        """Returns what to ask AWS about a request: prices only where a cap needs them."""
        questions = list_questions(request, self._execution, self._env)
        markets = (Market.ON_DEMAND,) if request.max_cost_usd is not None and questions.markets else ()
        return replace(questions, markets=markets)

    def _take_place(self, request: JobRequest) -> JobRequest:
        """Returns the part of a request that other lines have too: without its data, and without the mark of its line."""
        left_out = {"data": [], MARK: None} | ({} if self._source.knows_jobs else {"resume_from": None})
        return request.model_copy(update=left_out)


def load_checks(env: GridEnvironment) -> JobChecksEnvironment | None:
    """Reads the settings of jobs from the file in the function's archive; None for a function that has none."""
    if not env.jobs:
        return None
    return describe_checks(env, decode(JobSettings, (ARCHIVE / env.jobs).read_bytes()))


def describe_checks(env: GridEnvironment, settings: JobSettings) -> JobChecksEnvironment:
    """Returns what Admit's checks are told, of what a grid's function is told and of the settings of jobs."""
    partition = env.train_machine.split(":")[1]
    return JobChecksEnvironment(
        deployment=env.deployment,
        bucket=env.bucket,
        table=env.table,
        home_region=env.home_region,
        repositories=env.repositories,
        data_buckets=env.data_buckets,
        limits=env.job_limits,
        instance_profile=f"arn:{partition}:iam::{env.account}:instance-profile/{env.deployment}",
        **settings.write(),
    )

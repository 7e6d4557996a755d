"""Reads what there is of an execution: its status, its history, what its nodes report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws import executions
from aws.clients import BRISK, client
from aws.facts import GONE, Status
from aws.heard import heard
from aws.s3 import HomeBucket
from aws.state import State
from aws.table import HeldUp
from contract import keys, names
from contract.aws_errors import code_of
from contract.codec import Garbled
from contract.grid import GridPrefix
from contract.links import Console
from contract.reports import NodeReport
from contract.roles import Role, name_rank
from contract.search import SearchPrefix
from pages.words import count
from trainyard.deployment import Deployment
from trainyard.stops import DENIED, CannotProceed, describe_denial
from trainyard.story import Story, Try, parse_object, tell

if TYPE_CHECKING:
    from types_boto3_stepfunctions.client import SFNClient

LATELY = 20
"""Executions of each machine that a list shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An execution, as it is now."""

    kind: str
    """`job`, `grid` or `search`."""
    name: str
    arn: str
    status: Status
    given: Mapping[str, Any]
    """Its input."""
    output: Mapping[str, Any]

    @property
    def page(self) -> str:
        """Key of its page in the home bucket."""
        return {
            "job": keys.JobPrefix(self.name).page,
            "grid": GridPrefix(self.name).page,
            "search": SearchPrefix(self.name).page,
        }[self.kind]

    @property
    def report(self) -> str:
        """Key of its report.json."""
        return {
            "job": keys.JobPrefix(self.name).result,
            "grid": GridPrefix(self.name).report,
            "search": SearchPrefix(self.name).report,
        }[self.kind]

    def links(self, deployment: Deployment) -> dict[str, str]:
        """Returns addresses of the console: the execution, its page and, of a job, its log."""
        console = Console(deployment.partition, deployment.region)
        found = {"execution": console.execution(self.arn), "page": console.object(deployment.home_bucket, self.page)}
        if self.kind == "job":
            found["log"] = console.streams(deployment.log_group, f"{self.name}/")
        return found


def find(deployment: Deployment, name: str, kinds: tuple[str, ...] = ()) -> Watched:
    """Returns the one execution of this name, of any machine or of these kinds. Raises CannotProceed where there is none, or several."""
    wanted = kinds or tuple(deployment.machines)
    found = [one for kind in wanted if (one := read_execution(deployment, kind, name)) is not None]
    if not found:
        raise CannotProceed(
            f"NAME: {deployment.name} has no {' or '.join(wanted)} called {name}; allowed: a name that `trainyard status` lists "
            "(Step Functions forgets an execution after 90 days)"
        )
    if len(found) > 1:
        kind = " and ".join(f"a {one.kind}" for one in found)
        raise CannotProceed(f"NAME: {name} is {kind}; allowed: --kind with one of them")
    return found[0]


def read_execution(deployment: Deployment, kind: str, name: str) -> Watched | None:
    """Returns the execution of this name; None where the machine has none."""
    if kind not in deployment.machines:
        return None
    arn = executions.name_arn(deployment.machine(kind), name)
    try:
        answer = executions.described(arn, BRISK)
    except ClientError as problem:
        if code_of(problem) in {"InvalidArn", "InvalidName", "ValidationException"}:
            return None
        raise
    if answer is None:
        return None
    ended = answer.get("stopDate")
    return Watched(
        kind=kind,
        name=name,
        arn=arn,
        status=Status(
            name=answer["status"],
            started_at=answer["startDate"].timestamp(),
            ended_at=ended.timestamp() if ended else None,
            error=answer.get("error") or "",
            cause=answer.get("cause") or "",
        ),
        given=parse_object(answer.get("input")),
        output=parse_object(answer.get("output")),
    )


def read_story(arn: str) -> Story:
    """Reads the whole history of a job's execution."""
    states: SFNClient = client("stepfunctions", None, BRISK)
    pages = states.get_paginator("get_execution_history").paginate(
        executionArn=arn, PaginationConfig={"PageSize": 1000}
    )
    return tell(event for page in pages for event in page["events"])


def read_last_state(arn: str) -> str:
    """Returns the state that the execution entered last; empty where none of its newest events says it."""
    states: SFNClient = client("stepfunctions", None, BRISK)
    newest = states.get_execution_history(executionArn=arn, reverseOrder=True, maxResults=10)["events"]
    entered = {
        one["id"]: one["stateEnteredEventDetails"]["name"] for one in newest if "stateEnteredEventDetails" in one
    }
    return entered[max(entered)] if entered else ""


class NodeReports:
    """What the nodes of a job report, where the caller may read it: people's policy denies the table of state, which holds more."""

    def __init__(self, deployment: Deployment, job: str) -> None:
        self._deployment, self._job = deployment, job
        self._roles: tuple[Role, ...] | None = None
        self.denied = (
            "" if deployment.node_role else f"the stacks have no output {names.NODE_ROLE_ID}: deploy this version"
        )
        """Why they cannot be read; empty where they can."""

    def read(self, attempt: Try | None) -> dict[int, NodeReport]:
        """Returns the newest report of each rank of the attempt; empty where there is none, where it may not be read, and once the
        attempt has ended: the last reports of nodes that are lost say that they train."""
        if attempt is None or attempt.ended or not attempt.instances or self.denied:
            return {}
        try:
            seen, _ = State(self._deployment.table).reports(self._deployment.node_role, attempt.instances)
        except ClientError as problem:
            if code_of(problem) not in DENIED:
                raise
            self.denied = f"AWS denies you {describe_denial(problem)}"
            return {}
        except HeldUp:  # the table is busy: the next look may find them
            return {}
        found = heard(seen, job=self._job, attempt=attempt.number, ids=attempt.instances)
        if found and self._roles is None:
            self._roles = read_roles(self._deployment, self._job)
        return {rank: one.report for rank, one in sorted(found.items())}

    @property
    def roles(self) -> tuple[Role, ...]:
        """The job's roles, once there is a report; empty where it has none."""
        return self._roles or ()


def read_roles(deployment: Deployment, job: str) -> tuple[Role, ...]:
    """Returns the roles of a job, by which people know its nodes. They are words alone: empty also where its description cannot be read."""
    try:
        found = HomeBucket(deployment.home_bucket, deployment.region).job(job)
    except (ClientError, Garbled):
        return ()
    return () if found is None else found.roles


def word_rank(deployment: Deployment, job: str, rank: int | None) -> str:
    """Words of which node of a job there is nothing, and that the job has no such node where that is so."""
    if rank is None:
        return ""
    found = HomeBucket(deployment.home_bucket, deployment.region).job(job)
    if found is None or rank < found.nodes:
        return f" of {name_rank(found.roles if found else (), rank)}"
    return f" of rank {rank} (the job has {count(found.nodes, 'node')}, and the first is rank 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An execution as a list shows it."""

    kind: str
    name: str
    arn: str
    status: str
    started_at: float
    ended_at: float | None


def list_lately(deployment: Deployment, wanted: str | None = None) -> list[Listed]:
    """Returns what runs, and what ended last, of every machine or of one kind's, the newest first. Raises CannotProceed where that one is
    not deployed."""
    states: SFNClient = client("stepfunctions", None, BRISK)
    found = dict[str, Listed]()
    machines = deployment.machines if wanted is None else {wanted: deployment.machine(wanted)}
    for kind, machine in machines.items():
        pager = states.get_paginator("list_executions")
        running = pager.paginate(stateMachineArn=machine, statusFilter="RUNNING")
        lately = pager.paginate(stateMachineArn=machine, PaginationConfig={"MaxItems": LATELY})
        for one in (one for pages in (running, lately) for page in pages for one in page["executions"]):
            ended = one.get("stopDate")
            found[one["executionArn"]] = Listed(
                kind=kind,
                name=one["name"],
                arn=one["executionArn"],
                status=one["status"],
                started_at=one["startDate"].timestamp(),
                ended_at=ended.timestamp() if ended else None,
            )
    return sorted(found.values(), key=lambda one: -one.started_at)


__all__ = [
    "GONE",
    "Listed",
    "NodeReports",
    "Watched",
    "find",
    "list_lately",
    "read_execution",
    "read_last_state",
    "read_story",
]

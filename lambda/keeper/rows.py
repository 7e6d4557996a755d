"""Makes the rows of the catalogue's tables from facts: no call of AWS, and no clock."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contract.execution_facts import Evidence, describe_execution
from contract.grid import Backend, Grid, Line, Record, training_prefix
from contract.jobs import Job

JOB, LINE, TRIAL = "job", "line", "trial"
"""Kinds of runs."""
OF_A_CAMPAIGN = re.compile(r"(.+)-[0-9a-f]{12}(-r[1-9][0-9]*)?")
"""The name of an execution that a campaign started, and of a round of such a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A row of the table `runs`."""

    name: str
    kind: str
    campaign: str
    """The one that may have started it: the table has it where it has such a campaign."""
    region: str
    type: str
    image: str
    outcome: str
    metrics: Mapping[str, float]
    seconds: float | None
    cost_usd: float | None
    ended_at: float
    """UTC epoch seconds."""


def find_campaign(name: str) -> str:
    """Returns the campaign that may have started the execution of this name; empty for none. The name of a person may look so."""
    found = OF_A_CAMPAIGN.fullmatch(name)
    return found[1] if found else ""


def find_grid(name: str, deployment: str) -> str:
    """Returns what the names of all lines of a grid begin with, for the name of such a line; empty for another name. A person's execution
    may have such a name too: the mark in its input tells."""
    found = re.fullmatch(rf"({re.escape(training_prefix(deployment))}.*?[0-9a-f]{{12}})-[0-9]+", name)
    return found[1] if found else ""


def describe_job(job: Job, answer: Mapping[str, Any], report: Mapping[str, Any] | None, *, now: float) -> RunRow | None:
    """Returns the row of a job by the answer of DescribeExecution; None while its report, which has its cost, may still come."""
    line = Line(
        index=0,
        line=0,
        region="",
        why="",
        slot=0,
        request={"name": job.id, "stateMachineArn": str(answer["stateMachineArn"])},
        source={},
        backend=Backend.EC2,
    )
    facts = describe_execution(line, answer, Evidence(is_admitted=True, report=report), now=now)
    if facts.outcome is None or facts.ended_at is None:
        return None
    launched, kind = _newest_launch(report)
    region = facts.region or launched
    return RunRow(
        name=job.id,
        kind=JOB,
        campaign=find_campaign(job.id),
        region=region,
        type=kind,
        image=_address(job, region),
        outcome=facts.outcome.value,
        metrics=facts.metrics,
        seconds=facts.seconds,
        cost_usd=facts.cost_usd,
        ended_at=facts.ended_at,
    )


def describe_line(grid: Grid, line: Line, record: Record, kind: str, *, ended_at: float) -> RunRow:
    """Returns the row of a grid's line. `ended_at` is when the grid ended, for a line that never had a training."""
    given = _read_given(line)
    types = given.get("instance_types")
    return RunRow(
        name=f"{grid.id}/{record.index}",
        kind=kind,
        campaign=find_campaign(grid.id),
        region=record.region,
        type=str(
            _member(given, "ResourceConfig").get("InstanceType")
            or (types[0] if isinstance(types, list) and len(types) == 1 else "")
        ),
        image=str(_member(given, "AlgorithmSpecification").get("TrainingImage") or given.get("image") or ""),
        outcome=record.outcome.value,
        metrics=record.metrics,
        seconds=record.seconds,
        cost_usd=record.cost_usd,
        ended_at=ended_at if record.ended_at is None else record.ended_at,
    )


def _read_given(line: Line) -> Mapping[str, Any]:
    """Returns what names a line's type and image: of one on Kubernetes, the line itself."""
    match line.backend:
        case Backend.SAGEMAKER:
            return line.request
        case Backend.KUBERNETES:
            return {"instance_types": [line.source.get("instance_type", "")], "image": line.source.get("image", "")}
    return _read(line.request.get("input"))


def kind_of(search: str) -> str:
    """Returns the kind of a grid's lines. `search` is the ARN of the search whose round the grid is; empty for none."""
    return TRIAL if search else LINE


def _address(job: Job, region: str) -> str:
    if job.container is None:
        return ""
    return job.container.address(region) if region in job.container.repositories else job.container.digest


def _read(text: object) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _member(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = given.get(name)
    return found if isinstance(found, dict) else {}


def _newest_launch(report: Mapping[str, Any] | None) -> tuple[str, str]:
    """Returns region and type of the newest launch that had instances; empty texts where a report names none."""
    launches = (report or {}).get("launches")
    known = [one for one in launches if isinstance(one, dict)] if isinstance(launches, list) else []
    found = [
        (str(one.get("region") or ""), str(one.get("instance_type") or "")) for one in known if one.get("instances")
    ]
    return found[-1] if found else ("", "")

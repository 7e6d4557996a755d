"""Terminate's function: ends the attempt's instances until none runs or can appear, then writes the job's report, and says whether the
attempt brought its job further."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.checkpoints import ClosedSet, find_closed_sets
from aws.clients import IN_PASSING
from aws.errors import Raced
from aws.s3 import Bucket, HomeBucket
from aws.state import State
from contract.codec import Garbled
from contract.environments import TerminatorEnvironment
from contract.errors import StillRunning
from contract.intents import Intent, ran_in
from contract.jobs import Job
from ending.costs import describe_cost
from ending.instances import Ended, Ending
from ending.report import build_report
from terminator.policy import has_progressed, is_overtaken, newest_step

logger = Logger(service="terminator")
AGAIN_S = (0.5, 1.0, 2.0)
"""Pauses before further looks at what was ended. DescribeInstances may show a state of about a second ago: without these looks a new
attempt would wait for the next try of Terminate, which comes after `terminate_again_s`."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Raises StillRunning, and no other error, as long as an instance of the attempt runs or may appear."""
    env = TerminatorEnvironment.read()
    job, attempt = str(event["job"]), int(event["attempt"])
    home = HomeBucket(env.bucket)
    state = State(env.table)
    ending = Ending(
        state=state,
        home=home,
        deployment=env.deployment,
        profile=env.instance_profile,
        regions=env.regions,
        visibility_s=env.timing.visibility_s,
        again_s=AGAIN_S,
    )
    seen = _read_result_tag(home, job)
    ended = ending.end(job, attempt)
    try:
        state.note_end(job, attempt, ended.at, event.get("problem"))
        admitted = _read_job(state, job)
        cost = describe_cost(state, admitted, ended)
        unhealthy = state.unhealthy(job)
    except (ClientError, BotoCoreError) as problem:
        raise StillRunning(f"nothing of job {job} runs, but the table does not answer: {problem}") from problem

    def replace_report(before: object, tag: str) -> dict[str, Any] | None:
        if is_overtaken(before, attempt, meanwhile=seen is not None and tag != seen):
            return None
        return build_report(
            job, attempt, event.get("problem"), ended.intents, ended.kept, before, unhealthy, at=ended.at
        ) | {"cost": cost}

    try:
        home.tell_result(job, replace_report)
    except (ClientError, BotoCoreError, Raced) as problem:
        raise StillRunning(f"nothing of job {job} runs, but its report could not be written: {problem}") from problem
    further = _describe_progress(admitted, attempt, ended, int(event.get("step", -1))) if event.get("problem") else {}
    return {"terminated": ended.instances, "cost": cost, **further}


def _read_job(state: State, name: str) -> Job | None:
    """Returns the job; None where its document has been changed: instances end all the same."""
    try:
        return state.job(name)
    except Garbled:
        return None


def _describe_progress(job: Job | None, attempt: int, ended: Ended, before: int) -> dict[str, Any]:
    """Returns whether the attempt closed a newer checkpoint than those before it, and the highest step of any."""
    closed = _list_closed_sets(job, attempt, ended.intents) if job else []
    return {"progressed": has_progressed(closed, before), "step": newest_step(closed, before)}


def _list_closed_sets(job: Job, attempt: int, intents: Iterable[Intent]) -> list[ClosedSet]:
    """Returns the newest sets that the attempt has closed. Where S3 does not answer, none: Terminate does not wait to know that the attempt
    brought the job further."""
    regions = ran_in(one for one in intents if one.attempt == attempt)
    found = list[ClosedSet]()
    for place in (job.places[region] for region in sorted(regions & job.places.keys())):
        try:
            found += find_closed_sets(Bucket(place.bucket, place.region, IN_PASSING), job.id, attempt).closed
        except (ClientError, BotoCoreError) as problem:
            logger.warning("could not list checkpoints", job=job.id, attempt=attempt, problem=str(problem))
    return found


def _read_result_tag(home: HomeBucket, job: str) -> str | None:
    """Returns the tag of the report that was there when this Terminate began; None where S3 does not answer: instances end all the same."""
    try:
        return home.result_tag(job)
    except (ClientError, BotoCoreError):
        return None

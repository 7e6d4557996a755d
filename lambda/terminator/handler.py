"""Terminate's function: ends the attempt's instances until none runs or can appear, then writes the job's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.errors import Raced
from aws.s3 import HomeBucket
from aws.state import State
from contract.environments import TerminatorEnvironment
from contract.errors import StillRunning
from ending.instances import Ending
from ending.report import report
from terminator.policy import overtaken


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Raises StillRunning, and no other error, as long as an instance of the attempt runs or may appear."""
    env = TerminatorEnvironment.read()
    job, attempt = str(event["job"]), int(event["attempt"])
    home = HomeBucket(env.bucket)
    ending = Ending(
        state=State(env.table),
        home=home,
        deployment=env.deployment,
        profile=env.instance_profile,
        regions=env.regions,
        visibility_s=env.timing.visibility_s,
    )
    seen = _seen(home, job)
    ended = ending.end(job, attempt)

    def told(before: object, tag: str) -> dict[str, Any] | None:
        if overtaken(before, attempt, meanwhile=seen is not None and tag != seen):
            return None
        return report(job, attempt, event.get("problem"), ended.intents, ended.kept, before)

    try:
        home.tell_result(job, told)
    except (ClientError, BotoCoreError, Raced) as problem:
        raise StillRunning(f"nothing of job {job} runs, but its report could not be written: {problem}") from problem
    return {"terminated": ended.instances}


def _seen(home: HomeBucket, job: str) -> str | None:
    """The tag of the report that was there when this Terminate began; None where S3 does not answer: instances end all the same."""
    try:
        return home.result_tag(job)
    except (ClientError, BotoCoreError):
        return None

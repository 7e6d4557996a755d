"""Terminate's function: closes the attempt, ends by tag and by remembered ids what runs, until a second look finds nothing
and nothing more can appear; then the job's report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.ec2 import Ec2
from aws.facts import Instance
from aws.s3 import JobStore, as_json
from contract import keys
from contract.environments import TerminatorEnvironment
from contract.errors import StillRunning
from contract.intents import Intent
from terminator.policy import may_appear, remembered, to_end, told

logger = Logger(service="terminator")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Raises StillRunning, and nothing else, for as long as something of the attempt runs or may run: what AWS does not
    answer now it may answer when the machine asks again."""
    env = TerminatorEnvironment.read()
    try:
        return _terminate(event, env, JobStore(env.bucket))
    except (ClientError, BotoCoreError) as problem:
        raise StillRunning(f"whether instances of job {event['job']} run is not known: {problem}") from problem


def _terminate(event: Mapping[str, Any], env: TerminatorEnvironment, store: JobStore) -> dict[str, Any]:
    job, attempt = str(event["job"]), int(event["attempt"])
    store.close(job, attempt)  # before the intents are read: a launch that did not see it is seen here
    intents = [held.intent for number in range(1, attempt + 1) for held in store.intents(job, number)]
    ended, shown, left = list[str](), set[str](), list[str]()
    for region in sorted({*env.regions, *(step.rung.region for intent in intents for step in intent.steps)}):
        try:
            found, after, refused = _end(Ec2(region), env, job, attempt, intents)
        except (ClientError, BotoCoreError) as problem:  # the other regions' instances end all the same
            left.append(f"- {region} could not be asked: {problem}")
            continue
        ended += [one.id for one in found]
        shown |= {one.id for one in after}
        left += told(to_end(after, attempt), refused)
    left += may_appear(intents, shown, now=time.time(), visibility_s=env.timing.visibility_s)
    logger.info("terminated", job=job, attempt=attempt, instances=ended, left=left)
    if left:
        raise StillRunning("\n".join([f"of job {job}, attempt {attempt}, something runs or may appear:", *left]))
    store.put(keys.JobPrefix(job).result, as_json(_report(event, intents)))
    return {"terminated": ended}


def _end(
    ec2: Ec2, env: TerminatorEnvironment, job: str, attempt: int, intents: list[Intent]
) -> tuple[list[Instance], list[Instance], dict[str, str]]:
    """Ends what runs in a region; returns what that was, what EC2 shows of the job afterwards, and the refusals by id."""
    shown = _look(ec2, env, job, intents)
    found = to_end(shown, attempt)
    if not found:
        return [], shown, {}
    refused = ec2.terminate([one.id for one in found])
    return found, _look(ec2, env, job, intents), refused


def _look(ec2: Ec2, env: TerminatorEnvironment, job: str, intents: list[Intent]) -> list[Instance]:
    ids = sorted(remembered(i for i in intents if any(step.rung.region == ec2.region for step in i.steps)))
    return list({one.id: one for one in [*ec2.of_job(env.deployment, job), *ec2.by_id(ids)]}.values())


def _report(event: Mapping[str, Any], intents: list[Intent]) -> dict[str, Any]:
    """What the job came to so far; the newest attempt's word stands."""
    problem = event.get("problem")
    return {
        "job": event["job"],
        "attempts": event["attempt"],
        "error": problem["error"] if problem else None,
        "cause": problem["cause"] if problem else None,
        "launches": [
            {
                "attempt": intent.attempt,
                "walk": intent.walk,
                "zone": step.rung.zone,
                "instance_type": step.rung.instance_type,
                "answer": step.answer.code or step.answer.outcome.value,
                "instances": list(step.answer.instances),
            }
            for intent in intents
            for step in intent.steps
            if step.answer
        ],
    }

"""Terminate's function: by tag and by remembered ids, until a second look finds nothing; then the job's report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

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
    env = TerminatorEnvironment.read()
    store, job, attempt = JobStore(env.bucket), str(event["job"]), int(event["attempt"])
    intents = [held.intent for number in range(1, attempt + 1) for held in store.intents(job, number)]
    if may_appear(intents):
        time.sleep(env.timing.visibility_s)
    regions = sorted({*env.regions, *(step.rung.region for intent in intents for step in intent.steps)})
    terminated = [one.id for region in regions for one in _end(Ec2(region), env, job, intents)]
    store.put(keys.JobPrefix(job).result, as_json(_report(event, intents)))
    return {"terminated": terminated}


def _end(ec2: Ec2, env: TerminatorEnvironment, job: str, intents: list[Intent]) -> list[Instance]:
    """Ends what runs in a region; returns what it ended. Raises StillRunning when something does not begin to end."""
    found = _look(ec2, env, job, intents)
    refused = ec2.terminate([one.id for one in found])
    if not found:
        return []
    left = _look(ec2, env, job, intents)
    logger.info(
        "terminated", job=job, region=ec2.region, instances=[one.id for one in found], left=[one.id for one in left]
    )
    if left:
        raise StillRunning(f"{len(left)} instances of job {job} do not begin to shut down:\n{told(left, refused)}")
    return found


def _look(ec2: Ec2, env: TerminatorEnvironment, job: str, intents: list[Intent]) -> list[Instance]:
    ids = sorted(remembered(i for i in intents if any(step.rung.region == ec2.region for step in i.steps)))
    every = {one.id: one for one in [*ec2.of_job(env.deployment, job), *ec2.by_id(ids)]}
    return to_end(every.values())


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

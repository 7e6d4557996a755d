"""Terminate's function: ends the attempt's instances until nothing more can appear; then the job's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.s3 import JobStore, as_json
from contract import keys
from contract.environments import TerminatorEnvironment
from contract.errors import StillRunning
from terminator.ending import Ending
from terminator.policy import report


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Raises StillRunning, and nothing else, for as long as something of the attempt runs or may run."""
    env = TerminatorEnvironment.read()
    job, attempt = str(event["job"]), int(event["attempt"])
    store = JobStore(env.bucket)
    ending = Ending(store=store, deployment=env.deployment, regions=env.regions, visibility_s=env.timing.visibility_s)
    ended = ending.end(job, attempt)
    key = keys.JobPrefix(job).result
    try:
        before = store.result(job)
        store.put(key, as_json(report(job, attempt, event.get("problem"), ended.intents, ended.kept, before)))
    except (ClientError, BotoCoreError) as problem:
        raise StillRunning(f"nothing of job {job} runs, but its report could not be written: {problem}") from problem
    return {"terminated": ended.instances}

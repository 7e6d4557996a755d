"""Launch's function: reads the job, walks its ladder, names the master."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from aws.clients import BRISK, PATIENT
from aws.ec2 import Ec2
from aws.patience import patient
from aws.state import State
from contract import keys
from contract.environments import LauncherEnvironment
from contract.errors import InvalidRequest
from contract.jobs import Job
from launcher.policy import network, shown
from launcher.requests import user_data
from launcher.walk import Walker

logger = Logger(service="launcher")
SCRIPT = Path(__file__).with_name("user_data.sh")


@patient
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    env = LauncherEnvironment.read()
    state = State(env.table)
    job = state.job(event["job"])
    if job is None:
        raise InvalidRequest(f"job {event['job']} is not in the table {env.table}")
    walker = Walker(
        state=state,
        ec2=cache(lambda region: Ec2(region, BRISK if len(job.places) > 1 else PATIENT)),
        holder=context.aws_request_id,
        profile=env.instance_profile,
        user_data=_user_data(env, job),
        left=lambda: context.get_remaining_time_in_millis() / 1000,
        now=time.time,
        sleep=time.sleep,
    )
    intent, step = walker.launch(job, event["attempt"])
    assert step.answer is not None
    logger.info("launched", job=job.id, attempt=intent.attempt, instances=step.answer.instances, zone=step.rung.zone)
    return {
        "region": step.rung.region,
        "instances": list(step.answer.instances),
        "master_address": step.answer.master_address,
        "network": network(job, step),
        "rungs": shown(intent),
    }


def _user_data(env: LauncherEnvironment, job: Job) -> str:
    """Every attempt runs the agent that the job was admitted with, whatever was deployed since."""
    if not job.agent:
        raise InvalidRequest(
            f"job {job.id} was admitted before jobs named their node agent; start it again as a new job"
        )
    return user_data(
        SCRIPT.read_text(),
        {
            "TRAINYARD_AGENT": f"s3://{env.bucket}/{keys.agent(job.agent)}",
            "TRAINYARD_AGENT_SHA256": job.agent,
            "TRAINYARD_HOME_REGION": env.home_region,
            "TRAINYARD_HOME_BUCKET": env.bucket,
            "TRAINYARD_TABLE": env.table,
            "TRAINYARD_NODE_ROLE": env.node_role,
            "TRAINYARD_POWER_OFF_S": str(round(env.timing.power_off_unknown_s)),
        },
    )

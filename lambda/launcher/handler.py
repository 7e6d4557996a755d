"""The launcher's function: walks the ladder of a job for Launch, and in turn for the jobs that wait for capacity."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from aws.clients import BRISK, PATIENT
from aws.ec2 import Ec2
from aws.empty_places import EmptyPlaces
from aws.patience import patient
from aws.s3 import HomeBucket
from aws.state import State
from aws.waits import CapacityWaits
from contract import keys, links, money, workbench
from contract.environments import LauncherEnvironment
from contract.errors import CapacityUnavailable, InvalidRequest
from contract.intents import Intent, Step
from contract.jobs import Job
from launcher import waits
from launcher.arguments import LaunchMarks, build_user_data
from launcher.halves import list_halves
from launcher.pace import LaunchPace
from launcher.policy import describe_network, list_rungs
from launcher.turn import Tries
from launcher.waiter import Waiter
from launcher.walk import Walker

logger = Logger(service="launcher")
SCRIPT = Path(__file__).with_name("user_data.sh")


@patient
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Launches for the state Launch, which names a job; begins the wait of "Wait for capacity", which has a token too; tries for the jobs
    that wait where the clock calls, which names nothing."""
    env = LauncherEnvironment.read()
    state = State(env.table)
    if "job" not in event:
        return dict(_tries(env, state, context).take_turn())
    job = state.job(event["job"])
    if job is None:
        raise InvalidRequest(f"job {event['job']} is not in the table {env.table}")
    if "token" in event:
        return _wait(env, state, job, event, context)
    try:
        intent, step = _walker(env, state, job, context).launch(job, event["attempt"])
    except CapacityUnavailable as problem:
        raise waits.after_patience(job, _walks(state, job, event["attempt"]), problem, now=time.time()) from problem
    return _output(job, intent, step)


def _wait(
    env: LauncherEnvironment, state: State, job: Job, event: Mapping[str, Any], context: LambdaContext
) -> dict[str, Any]:
    """Keeps the token of a state that waits for capacity; the clock's invocations do the rest."""
    walks = _walks(state, job, event["attempt"])
    if not walks:
        raise CapacityUnavailable(
            f"the table has no launch of attempt {event['attempt']}, and so no limit for its wait"
        )
    if not walks[-1].launched:  # this call may come late: what runs keeps its security group
        _walker(env, state, job, context).give_back(job, event["attempt"])
    before = list_halves(job, event["attempt"], lambda attempt: _walks(state, job, attempt))
    wait = waits.begin_wait(
        job, event["attempt"], event["token"], walks, halves=len(before), now=time.time(), chance=random.random()
    )
    tries = _tries(env, state, context)
    tries.waits.keep(wait)
    tries.write_document(wait, walks, waits.WAITS)
    return {}


def _tries(env: LauncherEnvironment, state: State, context: LambdaContext) -> Tries:
    def walker(job: Job, waiter: Waiter) -> Walker:
        return _walker(env, state, job, context, waiter)

    return Tries(
        state=state,
        waits=CapacityWaits(env.table),
        home=HomeBucket(env.bucket),
        holder=context.aws_request_id,
        heartbeat_s=env.timing.wait_heartbeat_s,
        walker=walker,
        before_call=LaunchPace(env.timing.launch_pace_s, now=time.time, sleep=time.sleep).wait,
        output=_output,
        left=lambda: context.get_remaining_time_in_millis() / 1000,
        now=time.time,
    )


def _walker(
    env: LauncherEnvironment, state: State, job: Job, context: LambdaContext, waiter: Waiter | None = None
) -> Walker:
    return Walker(
        state=state,
        empty_places=EmptyPlaces(env.table),
        ec2=cache(lambda region: Ec2(region, BRISK if len(job.places) > 1 else PATIENT)),
        holder=context.aws_request_id,
        marks=LaunchMarks(profile=env.instance_profile, tags=env.tags),
        user_data=_user_data(env, job),
        left=lambda: context.get_remaining_time_in_millis() / 1000,
        now=time.time,
        sleep=time.sleep,
        waiter=waiter,
    )


def _walks(state: State, job: Job, attempt: int) -> list[Intent]:
    return [held.intent for held in state.intents(job.id, attempt)]


def _output(job: Job, intent: Intent, step: Step) -> dict[str, Any]:
    """Returns the output of Launch, and of "Wait for capacity"."""
    assert step.answer is not None
    launched = money.launched_as(job, intent, step.rung)
    logger.info("launched", job=job.id, attempt=intent.attempt, instances=step.answer.instances, zone=step.rung.zone)
    return {
        "region": step.rung.region,
        "artifacts": links.of_artifacts(job, step.rung.region),
        "instances": list(step.answer.instances),
        "master_address": step.answer.master_address,
        "network": describe_network(job, step),
        **({"open": workbench.tunnel(step.rung.region, step.answer.instances[0])} if job.workbench else {}),
        "rungs": list_rungs(intent),
        "deadline": launched.deadline,
        "late_error": launched.late_error,
        "cost": money.describe_launch_cost(job, intent, step.rung),
        "wait_left_s": round(waits.wait_left_s(job, intent.waited_s)),
    }


def _user_data(env: LauncherEnvironment, job: Job) -> str:
    """Every attempt runs the agent that the job was admitted with, whatever was deployed since."""
    if not job.agent:
        raise InvalidRequest(
            f"job {job.id} was admitted before jobs named their node agent; start it again as a new job"
        )
    return build_user_data(
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

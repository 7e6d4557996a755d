"""The drain's actions: CloudFormation's custom resource, the pass that a destroy repeats, and the answer at its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError

from aws import executions
from aws.cloudformation import REQUEST, send
from aws.state import State
from contract import names
from contract.aws_errors import code_of
from contract.environments import DrainEnvironment
from drain.passes import DrainPass
from drain.policy import NotDrained, explain_closed

logger = Logger(service="drain")
NOT_MADE = "not-made"
"""The end of the id of a resource whose Create failed, which CloudFormation then deletes. A resource that never answered has an id
that CloudFormation made up."""


def handler(event: Mapping[str, Any], context: LambdaContext) -> None:
    """Does what the event's `action` names, which may come twice. An error in CloudFormation's request is answered at once."""
    env = DrainEnvironment.read()
    match event.get("action"):
        case "drain":
            _begin_pass(env, event["since"], context).drain()
        case "answer":
            send(event["request"], _physical_id(env), _word_problem(event["problem"]))
        case _:
            _serve_cloudformation(event, env, context)


def _serve_cloudformation(event: Mapping[str, Any], env: DrainEnvironment, context: LambdaContext) -> None:
    """Create and Update open admission again that a destroy closed. Delete closes it, and is answered when the drain machine is
    done. The Delete of a resource whose Create failed drains nothing: the rest of the deployment may be healthy."""
    problem, kind = None, event["RequestType"]
    logger.info("CloudFormation sent a request", kind=kind)
    try:
        if kind != "Delete":
            State(env.table).open_admission(explain_closed(env.deployment))
        elif event["PhysicalResourceId"] == _physical_id(env) and _begin_drain(event, env, context):
            return
    except Exception as error:
        logger.exception("the request failed", request=kind)
        problem = str(error) if isinstance(error, NotDrained) else f"{type(error).__name__}: {error}"
    physical = _physical_id(env) if kind == "Create" and problem is None else event.get("PhysicalResourceId")
    send(event, physical or f"{_physical_id(env)}-{NOT_MADE}", problem)


def _begin_drain(event: Mapping[str, Any], env: DrainEnvironment, context: LambdaContext) -> bool:
    """Closes admission and starts the drain machine. False where that machine does not exist, so that nothing waits for it."""
    state, since = State(env.table), time.time()
    if state.exists():
        state.close_admission(explain_closed(env.deployment))
    machine = env.machine.rpartition(":")[0] + ":" + names.drain_machine(env.deployment)
    given = {"request": {name: event[name] for name in REQUEST}, "since": since}
    try:
        executions.start(machine, f"drain-{event['RequestId']}", given)
    except ClientError as problem:
        if code_of(problem) != "StateMachineDoesNotExist":
            raise
        _begin_pass(env, since, context).drain()  # the stack was never complete, so there is usually nothing to drain
        return False
    return True


def _begin_pass(env: DrainEnvironment, since: float, context: LambdaContext) -> DrainPass:
    return DrainPass(env=env, since=since, left=lambda: context.get_remaining_time_in_millis() / 1000)


def _physical_id(env: DrainEnvironment) -> str:
    """Returns the resource's id. It is constant, so that an update never replaces, and so never deletes, the resource."""
    return names.drain_machine(env.deployment)


def _word_problem(problem: Mapping[str, str] | None) -> str | None:
    """Returns the problem in words for the person who reads the stack's events."""
    if problem is None:
        return None
    return problem["cause"] if problem["error"] == NotDrained.__name__ else f"{problem['error']}: {problem['cause']}"

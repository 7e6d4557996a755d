"""The function of own images: handles CloudFormation's custom resource, a deploy's look, and the answer at its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws import executions
from aws.cloudformation import REQUEST, send
from aws.s3 import Bucket
from contract import keys, names
from contract.environments import OwnImagesEnvironment
from contract.errors import BuildFailed
from own_images.policy import execution, judge, missing, order

logger = Logger(service="own-images")


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Handles every action; each may be requested twice. Answers CloudFormation at once if its request fails here."""
    env = OwnImagesEnvironment.read()
    match event.get("action"):
        case "build":
            _look(env, event["request"]["RequestId"], event["image"], event["since"])
        case "answer":
            send(event["request"], _physical(env), _reason(event["problem"]))
        case _:
            _asked(env, event)


def _asked(env: OwnImagesEnvironment, event: Mapping[str, Any]) -> None:
    """Create and Update wait in a machine. A Delete does nothing, because the images go with their repositories."""
    logger.info("asked", request=event["RequestType"])
    problem = None
    try:
        if event["RequestType"] != "Delete":
            machine = env.build_machine.rpartition(":")[0] + ":" + names.image_machine(env.deployment)
            image = {name: event["ResourceProperties"][name] for name in ("Tag", "Bucket", "Key")}
            given = {"request": {name: event[name] for name in REQUEST}, "image": image, "since": time.time()}
            executions.start(machine, f"images-{event['RequestId']}", given)
            return
    except Exception as error:
        logger.exception("the request failed", request=event["RequestType"])
        problem = f"{type(error).__name__}: {error}"
    send(event, _physical(env), problem)


def _look(env: OwnImagesEnvironment, request: str, image: Mapping[str, str], since: float) -> None:
    """Starts the build if it does not exist. Raises StillBuilding or BuildFailed."""
    tag = image["Tag"]
    name = execution(tag, request)
    status = executions.status(env.build_machine.replace(":stateMachine:", ":execution:") + ":" + name)
    if missing(status):
        home, context = Bucket(env.bucket), keys.own_context(tag)
        source = Bucket(image["Bucket"]).head(image["Key"])
        if source is None:
            raise BuildFailed(f"s3://{image['Bucket']}/{image['Key']} is gone: deploy again, which uploads it")
        home.copy(source, context)
        executions.start(env.build_machine, name, order(tag, f"s3://{env.bucket}/{context}"))
        logger.info("build started", execution=name)
    patience = env.timing.image_patience_s
    judge(tag, status, now=time.time(), since=since, patience_s=patience)


def _physical(env: OwnImagesEnvironment) -> str:
    """Returns a constant, so that an update replaces nothing and therefore deletes nothing."""
    return names.image_machine(env.deployment)


def _reason(problem: Mapping[str, str] | None) -> str | None:
    """Returns the reason in words for the person who reads the stack's events."""
    if problem is None:
        return None
    return problem["cause"] if problem["error"] == BuildFailed.__name__ else f"{problem['error']}: {problem['cause']}"

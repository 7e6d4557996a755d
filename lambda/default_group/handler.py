"""The function that closes the default security group: CloudFormation calls it once the network exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws.cloudformation import send
from aws.groups import close
from contract.environments import DefaultGroupEnvironment

logger = Logger(service="default_group")


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Answers CloudFormation at once, even after an error. May be called twice.

    A deletion changes nothing: the group goes with its network, and opening it again would be of no use.
    """
    env = DefaultGroupEnvironment.read()
    group = event["ResourceProperties"]["Group"]
    if event["RequestType"] == "Delete":
        send(event, event["PhysicalResourceId"], None)
        return
    problem = None
    try:
        logger.info("closed", group=group, rules=close(env.region, group))
    except Exception as error:
        logger.exception("the group could not be closed", group=group)
        problem = f"{type(error).__name__}: {error}"
    send(event, group, problem)

"""The service roles' function: CloudFormation asks it once, before anything needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.cloudformation import send
from aws.iam import ensure_service_role
from contract.environments import ServiceRolesEnvironment
from service_roles.policy import refusals

logger = Logger(service="service_roles")


def handler(event: Mapping[str, Any], _context: object) -> None:
    """May be called twice. Whatever goes wrong, CloudFormation hears of it at once."""
    env = ServiceRolesEnvironment.read()
    try:
        problem = None if event["RequestType"] == "Delete" else _missing(event["ResourceProperties"]["Roles"])
    except Exception as error:
        logger.exception("the request failed", request=event["RequestType"])
        problem = f"{type(error).__name__}: {error}"
    # Constant: an update replaces nothing. The roles are the account's, and outlive the deployment.
    send(event, f"{env.deployment}-service-roles", problem)


def _missing(roles: Mapping[str, str]) -> str | None:
    """`roles`: service to the name of its role."""
    failed = {}
    for service, role in roles.items():
        try:
            made = ensure_service_role(service, role)
            logger.info("stands", role=role, made=made)
        except (ClientError, BotoCoreError) as problem:
            failed[service] = str(problem)
    return refusals(failed)

"""The region check's function: CloudFormation calls it for every change of the settings' regions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import BRISK
from aws.cloudformation import rolls_back, send
from aws.ssm import parameter
from aws.state import State
from contract import names
from contract.environments import RegionCheckEnvironment
from region_check.policy import forgotten, join_reasons, refusals

logger = Logger(service="region_check")
AT_ONCE = 8
"""How many regions are asked in parallel."""


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Answers CloudFormation, even after an error. May be called twice."""
    env = RegionCheckEnvironment.read()
    try:
        problem = _against(event, env)
    except Exception as error:
        logger.exception("the check failed", request=event["RequestType"])
        problem = f"{type(error).__name__}: {error}"
    send(event, _physical(env), problem)


def _against(event: Mapping[str, Any], env: RegionCheckEnvironment) -> str | None:
    """Says why the settings' regions are rejected; None where they are not. A deletion or a rollback is never rejected."""
    if event["RequestType"] == "Delete" or (event["RequestType"] == "Update" and rolls_back(event["StackId"])):
        return None
    before = event.get("OldResourceProperties", {}).get("Regions", [])
    settings = event["ResourceProperties"]["Regions"]
    gone = forgotten(settings, before, State(env.table).launched_regions())
    against = join_reasons(refusals(env.deployment, _exists(env.deployment, gone)))
    logger.info("checked", request=event["RequestType"], settings=settings, forgotten=gone, against=against)
    return against


def _exists(deployment: str, regions: Iterable[str]) -> dict[str, bool | str]:
    """Says for each region whether its stack exists (by the stack's parameter), or why that is unknown."""

    def ask(region: str) -> bool | str:
        try:
            return parameter(names.region_parameter(deployment, region), region, BRISK) is not None
        except (ClientError, BotoCoreError) as problem:
            return str(problem)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        regions = list(regions)
        return dict(zip(regions, pool.map(ask, regions), strict=True))


def _physical(env: RegionCheckEnvironment) -> str:
    """Returns a constant, so that an update replaces nothing."""
    return f"{env.deployment}-regions"

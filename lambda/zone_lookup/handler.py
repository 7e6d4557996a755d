"""The zone look-up's function: CloudFormation calls it before it makes a region's subnets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws.cloudformation import send
from aws.ec2 import Ec2
from contract import names
from contract.environments import ZoneLookupEnvironment
from zone_lookup.policy import NoAnswer, chosen, identity, kept, remembered

logger = Logger(service="zone_lookup")


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Answers CloudFormation at once, even after an error. May be called twice."""
    env = ZoneLookupEnvironment.read()
    before = event.get("PhysicalResourceId") or identity(())
    if event["RequestType"] == "Delete":
        send(event, before, None)
        return
    try:
        zones = _zones(env.region, int(event["ResourceProperties"]["Count"]), remembered(before))
    except NoAnswer as refusal:
        send(event, before, str(refusal))
    except Exception as error:
        logger.exception("the look-up failed", request=event["RequestType"])
        send(event, before, f"{type(error).__name__}: {error}")
    else:
        attributes = {names.zone_attribute(number): zone for number, zone in enumerate(zones, start=1)}
        send(event, identity(zones), None, attributes)


def _zones(region: str, count: int, before: tuple[str, ...]) -> tuple[str, ...]:
    zones = kept(count, before)
    if zones is None:
        found = Ec2(region).zones()
        zones = chosen(region, count, before, found)
        logger.info("looked", found=found, zones=zones)
    return zones

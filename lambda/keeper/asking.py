"""Asks AWS for prices and capacity, region by region; one that does not answer is logged, and keeps what it had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import prices, reservations, training_prices
from aws.clients import BRISK, IN_PASSING, client
from aws.ec2 import Ec2
from contract.catalogue_environments import KeeperEnvironment
from keeper.market import BLOCK, RESERVATION, SAGEMAKER, CapacityRow, MarketFacts

logger = Logger(service="keeper")
AT_ONCE = 8
USED = frozenset({"active", "scheduled", "pending", "payment-pending", "assessing", "unsupported"})
"""States of reservations that are, or will be."""


def ask_market(env: KeeperEnvironment, types: Sequence[str]) -> MarketFacts:
    """Asks for each type where it could train, and for the reservations with our tag. Never raises for what AWS does not answer."""
    prices.forget()
    of_ec2 = [kind for kind in types if not kind.startswith(SAGEMAKER)]
    of_sagemaker = [kind for kind in types if kind.startswith(SAGEMAKER)]
    wanted = [(region, kind) for region in env.training for kind in of_ec2]
    wanted += [(region, kind) for region in env.regions for kind in of_sagemaker]
    _prepare(env)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(wanted, pool.map(_price, wanted), strict=True))
        spot = dict(zip(env.training, pool.map(lambda one: _spot(one, of_ec2), env.training), strict=True))
        held = dict(zip(env.training, pool.map(lambda one: _held(one, env.deployment), env.training), strict=True))
    if silent := sorted({f"{region} {kind}" for (region, kind), usd in found.items() if usd is None}):
        logger.info("the Price List has no price, or did not answer", places=silent)
    return MarketFacts(
        on_demand={place: usd for place, usd in found.items() if usd is not None},
        spot={region: one for region, one in spot.items() if one is not None},
        capacity={region: one for region, one in held.items() if one is not None},
    )


def _prepare(env: KeeperEnvironment) -> None:
    """Makes the clients one after another, because boto3's session cannot make them in parallel."""
    client("pricing", prices.ANSWERS_IN, BRISK)
    for region in env.training:
        client("ec2", region, IN_PASSING)
        client("ec2", region, BRISK)


def _price(place: tuple[str, str]) -> float | None:
    region, kind = place
    asked = training_prices if kind.startswith(SAGEMAKER) else prices
    return asked.on_demand_usd(region, kind)


def _spot(region: str, types: Sequence[str]) -> Mapping[str, float] | None:
    """Returns the price in the cheapest zone; None where EC2 did not answer."""
    if not types:
        return {}
    found = Ec2(region, BRISK).spot_prices(types)
    if found is None:
        logger.warning("a region tells no spot prices", region=region)
        return None
    cheapest = dict[str, float]()
    for (kind, _zone), usd in found.items():
        cheapest[kind] = min(usd, cheapest.get(kind, usd))
    return cheapest


def _held(region: str, deployment: str) -> Mapping[str, CapacityRow] | None:
    try:
        found = reservations.tagged(region, deployment, BRISK)
    except (ClientError, BotoCoreError) as problem:
        logger.warning("a region tells no reservations", region=region, problem=str(problem))
        return None
    return {
        one.id: CapacityRow(
            region=region,
            type=one.instance_type,
            kind=BLOCK if one.block else RESERVATION,
            free=free,
            begins=one.begins_at or None,
            ends=one.ends_at,
        )
        for one, free in found
        if one.state in USED
    }

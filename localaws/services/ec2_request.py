"""Reads what a request of RunInstances asks for: market, reservation, tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_spot(request: Mapping[str, Any]) -> bool:
    return bool((request.get("InstanceMarketOptions") or {}).get("MarketType") == "spot")


def target(request: Mapping[str, Any]) -> str:
    """Id of the reservation that a launch names; empty for none."""
    wanted = (request.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    return str(wanted.get("CapacityReservationId", ""))


def tags_for(request: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Returns a launch's tags for one kind of new resource (`instance`, `volume`, `network-interface`)."""
    found = (one["Tags"] for one in request.get("TagSpecifications", []) if one["ResourceType"] == kind)
    return {tag["Key"]: tag.get("Value", "") for tag in next(found, [])}

"""The spot market of the model of EC2: what a request may ask for, prices, and interruptions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from localaws.model import Refused
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_state import Ec2State

TAKEN = "Server.SpotInstanceTermination"
HOUR_USD = 0.03
"""The dearest hour of one vCPU. A made-up price: what matters is that places differ, and that prices move."""
MOVES_EVERY_S = 1800.0


def check_market(request: Mapping[str, Any]) -> None:
    """Raises Refused for options that contradict each other."""
    options = request.get("InstanceMarketOptions") or {}
    spot = options.get("SpotOptions") or {}
    if spot and options.get("MarketType") != "spot":
        raise Refused("InvalidParameterCombination", "SpotOptions require the market type 'spot'.")
    if spot.get("InstanceInterruptionBehavior", "terminate") != "terminate" and (
        spot.get("SpotInstanceType") != "persistent"
    ):
        raise Refused(
            "InvalidParameterCombination", "Interruption behavior other than terminate requires a persistent request."
        )


def check_quota(ec2: Ec2State, wanted: int, used: int) -> None:
    """Spot has a quota of its own."""
    if ec2.spot_vcpu_quota is not None and used + wanted > ec2.spot_vcpu_quota:
        raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")


def price(kind: str, zone: str, vcpus: int, now: float) -> float:
    """USD an hour: another one in each zone, which moves now and then, and is the same for whoever asks in the same half hour."""
    digest = hashlib.sha256(f"{kind} {zone} {int(now // MOVES_EVERY_S)}".encode()).digest()
    return round(vcpus * HOUR_USD * (0.3 + 0.7 * digest[0] / 255), 4)


def price_history(ec2: Ec2State, params: Mapping[str, Any]) -> dict[str, Any]:
    """DescribeSpotPriceHistory from now on: the newest price of each type and zone. `ec2.spot_prices` may hold others."""
    entries = []
    for name in params.get("InstanceTypes", []):
        kind = ec2.catalogue.kind(name)
        if kind is None:
            raise Refused("InvalidParameterValue", f"Invalid value '{name}' for instanceType.")
        for zone in ec2.zone_names():
            if ec2.catalogue.offers(name, zone):
                usual = ec2.spot_prices.get((name, zone), price(name, zone, kind.vcpus, ec2.now))
                usd = usual * ec2.spot_factor(name, zone)
                entries.append(
                    {
                        "InstanceType": name,
                        "AvailabilityZone": zone,
                        "ProductDescription": "Linux/UNIX",
                        "SpotPrice": f"{usd:.6f}",
                        "Timestamp": datetime.fromtimestamp(ec2.now, UTC),
                    }
                )
    return {"SpotPriceHistory": entries}


def recommend(machine: Machine) -> None:
    """AWS expects to take the instance back, and says so in its metadata; it may do so soon, late or never."""
    if not machine.is_spot:
        raise ValueError(f"{machine.id} is no spot instance")
    machine.rebalance = {"noticeTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}


def interrupt(ec2: Ec2State, machine: Machine, *, notice_s: float | None) -> None:
    """Ends the instance as AWS does that takes it back: `notice_s` seconds after its notice, or at once and without one, as notices are a
    best effort."""
    if not machine.is_spot:
        raise ValueError(f"{machine.id} is no spot instance")
    why = "Instance terminated due to spot interruption"
    if notice_s is None:
        ec2.end(machine, TAKEN, why)
        return
    at = ec2.now + notice_s
    machine.spot_action = {"action": "terminate", "time": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"}
    ec2.at(at, lambda: ec2.end(machine, TAKEN, why))

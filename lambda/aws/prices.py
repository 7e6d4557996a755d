"""Every call of the Price List about EC2: hours of instances, and months of volumes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import BRISK, client
from contract.volumes import LEAST_IOPS, LEAST_THROUGHPUT

ANSWERS_IN = "us-east-1"
"""The Price List has endpoints in three regions of the world, this among them; it knows the prices of all regions."""
LINUX_SHARED = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "licenseModel": "No License required",
}
NO_PRICE = (ClientError, BotoCoreError, ValueError, LookupError, TypeError, AttributeError)
"""The Price List does not answer, or not in the form that is known."""
MONTH_HOURS = 30 * 24
"""EBS bills a month of 30 days by the second (EBS's pricing page, examples)."""
UNITS = {
    "gb-mo": ("gib", 1.0),
    "gb-month": ("gib", 1.0),
    "iops-mo": ("iops", 1.0),
    "gibps-mo": ("mibs", 1 / 1024),
    "mibps-mo": ("mibs", 1.0),
}
"""Units of the list's rates for volumes to what they are of. It says GB-Mo, IOPS-Mo and GiBps-mo of gp3, and of other volumes and in bills
also GB-month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePrices:
    """What gp3 volumes of a region cost a month, US dollars."""

    gib: float
    iops: float
    """Of each beyond those that every volume has."""
    mibs: float
    """Of each MiB/s beyond those that every volume has."""

    def hourly_usd(self, *, gb: int, iops: int, throughput: int) -> float:
        more = max(0, iops - LEAST_IOPS) * self.iops + max(0, throughput - LEAST_THROUGHPUT) * self.mibs
        return (gb * self.gib + more) / MONTH_HOURS


def on_demand_usd(region: str, instance_type: str) -> float | None:
    """An hour of the type, Linux on shared hardware. None where the Price List does not say, or does not answer."""
    try:
        return _hour(region, instance_type)
    except NO_PRICE:
        return None


def volume_prices(region: str) -> VolumePrices | None:
    """None where the Price List does not say, or does not answer."""
    try:
        return _volumes(region)
    except NO_PRICE:
        return None


def forget() -> None:
    """Asks anew from now on."""
    _hour.cache_clear()
    _volumes.cache_clear()


@cache  # answers alone: what is raised is asked again
def _hour(region: str, instance_type: str) -> float:
    rates = _rates(LINUX_SHARED | {"regionCode": region, "instanceType": instance_type})
    if price := max((_usd(rate) for rate in rates if rate["unit"] == "Hrs"), default=0.0):
        return price
    raise LookupError(instance_type)


@cache
def _volumes(region: str) -> VolumePrices:
    found: dict[str, float] = {}
    for rate in _rates({"regionCode": region, "volumeApiName": "gp3"}):
        named, share = UNITS.get(rate["unit"].lower(), ("", 0.0))
        found[named] = max(found.get(named, 0.0), _usd(rate) * share)
    return VolumePrices(gib=found["gib"], iops=found["iops"], mibs=found["mibs"])


def _rates(wanted: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The on-demand rates of every product that fits. There may be more than the one that is meant, such as a Capacity Block's hours at no
    price, so callers take the dearest: a cost is never more than is said."""
    pricing: Any = client("pricing", ANSWERS_IN, BRISK)
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2",
        Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
    )
    for page in pages:
        for product in page["PriceList"]:
            for term in json.loads(product)["terms"].get("OnDemand", {}).values():
                yield from term["priceDimensions"].values()


def _usd(rate: Mapping[str, Any]) -> float:
    return float(rate["pricePerUnit"]["USD"])

"""Every Price List call of the functions."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import BRISK, client

ANSWERS_IN = "us-east-1"
"""The Price List has endpoints in three regions of the world, this among them; it knows the prices of all regions."""
LINUX_SHARED = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "licenseModel": "No License required",
}


@cache
def on_demand_usd(region: str, instance_type: str) -> float | None:
    """An hour of the type, Linux on shared hardware. None where the Price List does not say, or does not answer."""
    wanted = LINUX_SHARED | {"regionCode": region, "instanceType": instance_type}
    pricing: Any = client("pricing", ANSWERS_IN, BRISK)
    try:
        answer = pricing.get_products(
            ServiceCode="AmazonEC2",
            Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
            MaxResults=10,
        )
        return next(filter(None, map(_hourly, answer["PriceList"])), None)
    except (ClientError, BotoCoreError, ValueError, LookupError, TypeError, AttributeError):
        return None  # what a thing cost is a courtesy of the message, and no reason to send none


def _hourly(product: str) -> float | None:
    for term in json.loads(product)["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if dimension["unit"] == "Hrs" and (price := float(dimension["pricePerUnit"]["USD"])):
                return price
    return None

"""Prices of SageMaker trainings, as the Price List has them."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import BRISK, client
from aws.prices import ANSWERS_IN

OTHERS = ("spot", "warmpool", "plan")
"""In the usage type of what is bought otherwise than on demand."""


def on_demand_usd(region: str, instance_type: str) -> float | None:
    """An hour of one instance that trains. None where the Price List does not say, or does not answer.

    Spot costs no more than this, and SageMaker publishes no spot prices.
    """
    wanted = {"regionCode": region, "instanceName": instance_type, "component": "Training"}
    pricing: Any = client("pricing", ANSWERS_IN, BRISK)
    try:
        answer = pricing.get_products(
            ServiceCode="AmazonSageMaker",
            Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
            MaxResults=20,
        )
        # The dearest: a plan's bound has to hold whatever else the list has under these names.
        return max(filter(None, map(_hourly, answer["PriceList"])), default=None)
    except (ClientError, BotoCoreError, ValueError, LookupError, TypeError, AttributeError):
        return None  # a price that is not known is an answer of its own: a plan with a cap is refused


def _hourly(text: str) -> float | None:
    product = json.loads(text)
    usage = str(product.get("product", {}).get("attributes", {}).get("usagetype", "")).lower()
    if any(other in usage for other in OTHERS):
        return None
    prices = [
        float(dimension["pricePerUnit"]["USD"])
        for term in product["terms"].get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
        if dimension["unit"].lower() in ("hrs", "hours", "hour")
    ]
    return max(prices, default=None)

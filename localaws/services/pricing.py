"""The Price List, which moto lacks: on-demand prices of a few types; other types have no price."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from localaws.recorder import Answer

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

PRICES = {
    "t3.medium": 0.048,
    "t3.large": 0.096,
    "m7i-flex.large": 0.115,
    "g4dn.xlarge": 0.658,
    "g5.xlarge": 1.258,
    "p4d.24xlarge": 40.96,
}
VOLUMES = {"GB-Mo": 0.0952, "IOPS-Mo": 0.006, "GiBps-mo": 48.64}
"""Of gp3, dollars a month."""
TRAININGS = {
    "ml.m5.large": 0.138,
    "ml.c5.xlarge": 0.233,
    "ml.g4dn.xlarge": 0.921,
    "ml.g5.xlarge": 1.761,
    "ml.p4d.24xlarge": 47.1,
}
"""Instances and trainings in dollars per hour, of the order of the prices in eu-central-1, equal in every region."""


def install(aws: LocalAws) -> None:
    aws.recorder.interceptors.append(_answer)


def _answer(call: Call, environ: Environ) -> Answer | None:
    if call.name != "pricing:GetProducts":
        return None
    body = environ["wsgi.input"].read(call.size)
    environ["wsgi.input"] = io.BytesIO(body)
    wanted = {one["Field"]: one["Value"] for one in json.loads(body).get("Filters", [])}
    price = PRICES.get(wanted.get("instanceType", "")) or TRAININGS.get(wanted.get("instanceName", ""))
    rates = VOLUMES if wanted.get("volumeApiName") == "gp3" else {} if price is None else {"Hrs": price}
    products = [json.dumps(_product(wanted, *one)) for one in rates.items()]
    document = {"FormatVersion": "aws_v1", "PriceList": products}
    return Answer(200, json.dumps(document).encode(), {"Content-Type": "application/x-amz-json-1.1"})


def _product(wanted: dict[str, str], unit: str, price: float) -> dict[str, Any]:
    rate = {"unit": unit, "pricePerUnit": {"USD": f"{price:.10f}"}, "beginRange": "0", "endRange": "Inf"}
    return {
        "product": {"productFamily": "Compute Instance", "sku": "REHEARSAL", "attributes": wanted},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {"REHEARSAL.ONE": {"priceDimensions": {"REHEARSAL.ONE.HOUR": rate}}}},
    }

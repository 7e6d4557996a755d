"""Services by which people hear of things: a topic's messages, sums of metrics, and prices."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Refused
from tests.fakes.wire import Call


@dataclass
class Topics:
    """SNS: what was published, oldest first."""

    messages: list[tuple[str, str]] = field(default_factory=list)
    """Subject and text."""
    attributes: list[dict[str, str]] = field(default_factory=list)
    """Those of each message."""

    def answer(self, call: Call) -> dict[str, Any]:
        """A subject is at most 100 characters of printable ASCII, a message at most 256 KiB."""
        if call.operation != "Publish":
            raise Refused("InvalidAction", f"The fake has no {call.name}")
        subject, message = call.params.get("Subject", ""), call.params["Message"]
        if len(subject) > 100 or any(not " " <= one <= "~" for one in subject):
            raise Refused("InvalidParameter", "Invalid parameter: Subject")
        if not message or len(message.encode()) > 256 * 1024:
            raise Refused("InvalidParameter", "Invalid parameter: Message too long")
        told = {name: one["StringValue"] for name, one in call.params.get("MessageAttributes", {}).items()}
        if not all(told.values()):
            raise Refused("InvalidParameterValue", "The message attribute must contain a non-empty value")
        self.messages.append((subject, message))
        self.attributes.append(told)
        return {"MessageId": f"message-{len(self.messages)}"}


@dataclass
class Figures:
    """CloudWatch: sums by metric, each as one value of the last hour."""

    sums: dict[str, float] = field(default_factory=dict)

    def answer(self, call: Call) -> dict[str, Any]:
        if call.operation != "GetMetricData":
            raise Refused("InvalidAction", f"The fake has no {call.name}")
        results = []
        for query in call.params["MetricDataQueries"]:
            value = self.sums.get(query["MetricStat"]["Metric"]["MetricName"])
            results.append({"Id": query["Id"], "StatusCode": "Complete", "Values": [] if value is None else [value]})
        return {"MetricDataResults": results}


@dataclass
class Prices:
    """The Price List: on-demand dollars an hour by type. It answers in three regions only."""

    hourly: dict[str, float] = field(default_factory=dict)
    """Of EC2."""
    volumes: tuple[float, float, float] | None = (0.08, 0.005, 40.96)
    """Of gp3 a month: a GB, an IOPS, a GiB/s; as in us-east-1. None: the list has none."""
    trainings: dict[str, float] = field(default_factory=dict)
    """Of SageMaker's trainings in us-east-1."""
    factors: dict[str, float] = field(default_factory=dict)
    """What trainings cost in a region beside us-east-1."""

    def answer(self, call: Call) -> dict[str, Any]:
        assert call.region in {"us-east-1", "eu-central-1", "ap-south-1"}, "no endpoint there"
        wanted = {one["Field"]: one["Value"] for one in call.params["Filters"]}
        found = dict[str, float]()
        if call.params["ServiceCode"] == "AmazonEC2":
            if wanted.get("volumeApiName") == "gp3":
                units = zip(("GB-Mo", "IOPS-Mo", "GiBps-mo"), self.volumes or (), strict=False)
                products = [json.dumps(_product("EBS:gp3", price, unit)) for unit, price in units]
                return {"FormatVersion": "aws_v1", "PriceList": products}
            if wanted["instanceType"] in self.hourly:
                found = {"BoxUsage:g5.xlarge": self.hourly[wanted["instanceType"]]}
        elif wanted["component"] == "Training" and wanted["instanceName"] in self.trainings:
            found = {"Train:ml.x": self.trainings[wanted["instanceName"]] * self.factors[wanted["regionCode"]]}
            found["Spot:ml.x"] = 99.0
        return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(_product(*one)) for one in found.items()]}


def _product(usage: str, price: float, unit: str = "Hrs") -> dict[str, Any]:
    dimension = {"unit": unit, "pricePerUnit": {"USD": f"{price:.10f}"}}
    return {
        "product": {"attributes": {"usagetype": f"EUC1-{usage}"}},
        "terms": {"OnDemand": {"T": {"priceDimensions": {"D": dimension}}}},
    }

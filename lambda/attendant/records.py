"""Reads the records of the table's stream."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from contract import items, names
from contract.codec import Garbled, decode
from contract.reports import NodeReport

logger = Logger(service="attendant")


def report_in(record: Mapping[str, Any]) -> NodeReport | None:
    """The report in a record, in which bytes are written in base64. None where no job can have the name that it says, which DynamoDB may
    refuse as a key, and where another instance wrote it: IAM binds the key to the instance, and the code of a job writes the rest."""
    try:
        image = record["dynamodb"]["NewImage"]
        packed = image[items.DOCUMENT].get("B")
        item = {items.DOCUMENT: {"B": base64.b64decode(packed)}} if packed else image
        report = decode(NodeReport, items.unpacked(item, items.MOST_REPORT))
        writer = record["dynamodb"]["Keys"][items.PARTITION]["S"].partition(":")[2]
        if names.JOB_PATTERN.fullmatch(report.job) and report.instance == writer:
            return report
    except (Garbled, KeyError, TypeError, ValueError, AttributeError):
        pass
    logger.warning("a record of the stream that is not a report", keys=record.get("dynamodb", {}).get("Keys"))
    return None

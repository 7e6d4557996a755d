"""Reads the records of the table's stream."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from contract import items
from contract.codec import Garbled, decode
from contract.reports import NodeReport

logger = Logger(service="attendant")


def report_in(record: Mapping[str, Any]) -> NodeReport | None:
    """The report in a record, in which bytes are written in base64."""
    try:
        image = record["dynamodb"]["NewImage"]
        packed = image[items.DOCUMENT].get("B")
        item = {items.DOCUMENT: {"B": base64.b64decode(packed)}} if packed else image
        return decode(NodeReport, items.unpacked(item, items.MOST_REPORT))
    except (Garbled, KeyError, TypeError, ValueError, AttributeError):
        logger.warning("a record of the stream that is not a report", keys=record.get("dynamodb", {}).get("Keys"))
        return None

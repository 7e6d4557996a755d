"""Reads the records of the table's stream."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from contract import items, names
from contract.codec import Garbled, decode
from contract.reports import NodeReport

logger = Logger(service="attendant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Who wrote an urgent report, and of which job it says that it is. Of the report itself nothing is kept: one node may write a hundred
    of the longest in a second, which together fill the memory."""

    job: str
    instance: str


def read_hints(records: Iterable[Mapping[str, Any]]) -> list[Hint]:
    """Returns the hint of the newest report of each node, each hint once. Older reports are not even read: one node may write a hundred
    of the longest in a second, and name another job in each."""
    newest = {_writer(record): record for record in records}
    return list(dict.fromkeys(hint for record in newest.values() if (hint := read_hint(record)) is not None))


def _writer(record: Mapping[str, Any]) -> str:
    return str(record.get("dynamodb", {}).get("Keys"))


def read_hint(record: Mapping[str, Any]) -> Hint | None:
    """Returns the hint of the report in a record, whose bytes are base64. None where no job can have the name in the report, which
    DynamoDB may refuse as a key, and where another instance wrote it: IAM binds the key to the instance, and the code of a job writes the
    rest."""
    try:
        image = record["dynamodb"]["NewImage"]
        packed = image[items.DOCUMENT].get("B")
        item = {items.DOCUMENT: {"B": base64.b64decode(packed)}} if packed else image
        report = decode(NodeReport, items.unpacked(item, items.MOST_REPORT))
        writer = record["dynamodb"]["Keys"][items.PARTITION]["S"].partition(":")[2]
        if names.JOB_PATTERN.fullmatch(report.job) and report.instance == writer:
            return Hint(job=report.job, instance=report.instance)
    except (Garbled, KeyError, TypeError, ValueError, AttributeError):
        pass
    logger.warning("a record of the stream is not a report", item=record.get("dynamodb", {}).get("Keys"))
    return None

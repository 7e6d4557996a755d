"""Every call to CloudFormation: answers custom resources, for which it waits an hour, and asks for a stack's status."""

from __future__ import annotations

import json
import time
import urllib.request
from bisect import bisect
from collections.abc import Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from aws.clients import client

if TYPE_CHECKING:
    from types_boto3_cloudformation.client import CloudFormationClient

logger = Logger(service="cloudformation")
LARGEST = 4096
"""Bytes of an answer that CloudFormation takes."""
TRIES = 3
PAUSE_S = 2.0
TIMEOUT_S = 20.0
MORE = " ... (the log of the function has the rest)"
REQUEST = ("ResponseURL", "StackId", "RequestId", "LogicalResourceId")
"""What of CloudFormation's request an answer needs."""


def send(event: Mapping[str, str], physical: str, problem: str | None, data: Mapping[str, str] | None = None) -> None:
    """SUCCESS with `data` as the resource's attributes, or FAILED with `problem` as the reason. Raises what went wrong when the
    third try fails too."""
    body = write_answer(event, physical, problem, data)
    for number in range(1, TRIES + 1):
        try:
            _put(event["ResponseURL"], body)
            return
        except (OSError, HTTPException) as error:  # urllib's own errors are OSErrors
            logger.warning("CloudFormation could not be answered", attempt=number, error=str(error))
            if number == TRIES:
                raise
            time.sleep(PAUSE_S * number)


def write_answer(
    event: Mapping[str, str], physical: str, problem: str | None, data: Mapping[str, str] | None = None
) -> bytes:
    """Writes the answer, and cuts a reason that is too long."""
    reason = problem or ""
    answer = {
        "Status": "SUCCESS" if problem is None else "FAILED",
        "PhysicalResourceId": physical,
        **{name: event[name] for name in REQUEST if name != "ResponseURL"},
        **({"Data": data} if data else {}),
    }

    def cut(length: int) -> bytes:
        return json.dumps(answer | {"Reason": reason[:length] + MORE}).encode()

    whole = json.dumps(answer | {"Reason": reason}).encode()
    if len(whole) <= LARGEST:
        return whole
    return cut(bisect(range(len(reason)), LARGEST, key=lambda length: len(cut(length))) - 1)


def rolls_back(stack: str) -> bool:
    """Whether the stack, by its ARN, is rolled back. A custom resource's event does not tell that from an update."""
    cloudformation: CloudFormationClient = client("cloudformation")
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return "ROLLBACK" in found["StackStatus"]


def _put(url: str, body: bytes) -> None:
    """The address is signed for an empty Content-Type; urllib would add one of its own."""
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        answer.read()

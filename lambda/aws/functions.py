"""The Lambda calls of the functions: invocations, with an answer and without."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws.clients import client

MOST_WORDS = 1000
"""Bytes that are kept of what Lambda says of a function that failed."""


class FunctionFailed(Exception):
    """A function ended with an error; the message is what Lambda says of it."""


def invoke_later(function: str, event: Mapping[str, Any]) -> None:
    """Has Lambda invoke the function with `event` as soon as it can, without waiting for an answer."""
    client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode())


def invoke(function: str, event: Mapping[str, Any]) -> Any:
    """Returns the function's answer to `event`. Raises FunctionFailed."""
    answer = client("lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
    said = answer["Payload"].read()
    if "FunctionError" in answer:
        raise FunctionFailed(f"{function}: {said[:MOST_WORDS].decode(errors='replace')}")
    return json.loads(said)

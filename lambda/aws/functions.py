"""The one Lambda call of the functions: an asynchronous invocation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws.clients import client


def invoke_later(function: str, event: Mapping[str, Any]) -> None:
    """Has Lambda invoke the function with `event` as soon as it can, without waiting for an answer."""
    client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode())

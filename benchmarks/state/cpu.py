"""What a call of the attendant and an item of an answer take of a whole processor: its real handler and real boto3 clients, which sign,
work out endpoints and make their headers; what the fake behind them takes is measured and left out. TLS and sockets are not in it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import boto3
from botocore.config import Config

from localaws.services.dynamodb_state import Knobs
from tests.builders import NOW
from tests.fakes import wire
from tests.fakes.fleet import Fleet

TLS_S = 0.0005
"""Added to each call for TLS and the socket of a connection that is open; an assumption."""
ROUNDS = 5


@dataclass
class _Meter:
    """Seconds of this thread within the fake."""

    inside: float = 0.0

    def answer(self, request: Any, event_name: str, **more: Any) -> Any:
        began = time.thread_time()
        try:
            return wire._answer(request, event_name, **more)
        finally:
            self.inside += time.thread_time() - began


def measured() -> tuple[float, float]:
    """Seconds of a whole processor a call, TLS included, and an item."""
    (few, few_calls, few_items), (many, many_calls, many_items) = _round([4] * 50), _round([512] * 2)
    # Two equations: seconds = calls * a + items * b.
    base = few_calls * many_items - many_calls * few_items
    call = (few * many_items - many * few_items) / base
    item = (few_calls * many - many_calls * few) / base
    return max(call, 0.0) + TLS_S, max(item, 0.0)


def _round(nodes: list[int]) -> tuple[float, int, int]:
    """Seconds, calls and items of passes over jobs of so many nodes, the first pass left out."""
    fleet, meter = Fleet(nodes, now=NOW), _Meter()
    fleet.aws.table.knobs = Knobs.plain()

    @cache
    def client(service: str, region: str | None = None, config: Config | None = None) -> Any:
        session: Any = boto3.session.Session(
            aws_access_key_id="AKIAFAKE", aws_secret_access_key="fake", region_name=wire.HOME
        )
        session.events.register("before-send", meter.answer)
        return session.client(service, region_name=region or wire.HOME, config=config)

    with (
        mock.patch.object(
            wire, "client", lambda service, region_name=None, config=None: client(service, region_name, config)
        ),
        fleet.functions.installed(),
    ):
        tick = {"source": "aws.events"}
        fleet.functions.invoke("attendant", tick)
        calls, meter.inside = len(fleet.aws.calls), 0.0
        began = time.thread_time()
        for _ in range(ROUNDS):
            assert not fleet.functions.invoke("attendant", tick).error
        took = time.thread_time() - began - meter.inside
    return took, len(fleet.aws.calls) - calls, ROUNDS * (2 * sum(nodes) + 2 * len(nodes))

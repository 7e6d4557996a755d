"""An attempt's order as the functions read it: nodes may write it, so it may be anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aws.facts import Given
from aws.s3 import JobStore
from contract.codec import encode
from contract.orders import Order, OrderKind

ORDER = Order(kind=OrderKind.STOP, error="Interrupted", reason="A spot notice came.", by=1, author="rank 1")


def stored(monkeypatch: pytest.MonkeyPatch, body: bytes | None) -> Given | None:
    monkeypatch.setattr(JobStore, "__init__", lambda *_: None)
    monkeypatch.setattr(JobStore, "get_aged", lambda *_: None if body is None else (body, 7.0))
    return JobStore("yard-home").order("job-1", 1)


def test_an_order_is_read_with_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored(monkeypatch, encode(ORDER)) == Given(order=ORDER, age_s=7.0)


@pytest.mark.parametrize(
    "body", [None, b"", b"\xff", b"[" * 100_000, b"{}", encode(replace(ORDER, by=1)).replace(b'"stop"', b'"dance"')]
)
def test_what_nobody_can_read_is_no_order_and_keeps_no_job_from_being_judged(
    monkeypatch: pytest.MonkeyPatch, body: bytes | None
) -> None:
    assert stored(monkeypatch, body) is None

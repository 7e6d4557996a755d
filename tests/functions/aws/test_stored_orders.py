"""An attempt's order and reports as the functions read them: nodes may write them, so they may be anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from aws.bodies import MOST_WRITTEN
from aws.facts import Given
from aws.s3 import JobStore
from contract.codec import encode
from contract.keys import JobPrefix
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


class Endless:
    """A body that nobody reads to its end."""

    def __init__(self) -> None:
        self.read_bytes, self.closed = 0, False

    def read(self, most: int | None = None) -> bytes:
        assert most is not None, "all of it was asked for"
        self.read_bytes += most
        return b"[" * most

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    "key", [JobPrefix("job-1").report(1, 0), JobPrefix("job-1").urgent(1, 0), JobPrefix("job-1").order(1)]
)
def test_of_what_nodes_write_no_more_is_read_than_is_honest(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    bodies: list[Endless] = []

    def get_object(**_: str) -> dict[str, Any]:
        bodies.append(Endless())
        headers = {"HTTPHeaders": {"date": "Fri, 15 Jan 2027 08:00:00 GMT"}}
        return {"Body": bodies[-1], "ETag": "e", "LastModified": datetime.now(UTC), "ResponseMetadata": headers}

    monkeypatch.setattr("aws.s3.client", lambda *_: SimpleNamespace(get_object=get_object))
    store = JobStore("yard-home")
    assert store.get(key) is not None
    assert store.get_aged(key) is not None
    assert [(one.read_bytes, one.closed) for one in bodies] == [(MOST_WRITTEN, True)] * 2

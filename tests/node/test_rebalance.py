"""A rebalance recommendation: only a job that asked for it leaves its nodes, and only once it has something to go on from."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agent.table import NodeItems
from contract.jobs import Job
from contract.orders import Order, OrderKind
from contract.timing import Timing
from tests.builders import JOB
from tests.node.table import NAME, ROLE, NodeTable
from tests.node.watching import Notices, watch

LEAVES = replace(JOB, leave_on_rebalance=True)
RECOMMENDED = json.dumps({"noticeTime": "2027-01-15T08:00:00Z"})
NOTICE = json.dumps({"action": "terminate", "time": "2027-01-15T08:02:00Z"})


class Node:
    def __init__(self, job: Job = LEAVES, *, saved: bool = True, notice: str | None = None) -> None:
        self.metadata, self.told, self.saved = Notices(notice), list[Order](), saved
        self.watch = watch(
            NodeItems(NodeTable(), NAME, ROLE, "i-0"), self.metadata, 1,
            on_order=self.told.append, job=job, saved=lambda: self.saved,
        )  # fmt: skip

    def asks(self) -> Order | None:
        """The order that the node wants for all, after one more look."""
        self.watch.read_order()
        return self.told[0] if self.told else None


def test_a_recommendation_makes_all_ranks_save_and_leave_without_hurry() -> None:
    node = Node()
    node.metadata.recommendation = RECOMMENDED
    order = node.asks()
    assert order is not None
    assert (order.kind, order.error, order.author) == (OrderKind.CHECKPOINT_AND_STOP, "Interrupted", "rank 1")
    assert order.by >= JOB.admitted_at + JOB.timing.save_allowance_s


def test_a_job_that_did_not_ask_for_it_stays_and_does_not_even_look() -> None:
    node = Node(JOB)
    node.metadata.recommendation = RECOMMENDED
    assert node.asks() is None
    assert node.metadata.asked == 0


def test_an_attempt_without_a_checkpoint_stays_because_it_would_only_begin_again() -> None:
    """The recommendation may be there from the first second on, in the next attempt too."""
    node = Node(saved=False)
    node.metadata.recommendation = RECOMMENDED
    assert node.asks() is None
    node.saved = True
    assert node.asks() is not None


def test_without_a_recommendation_nothing_follows() -> None:
    assert Node().asks() is None


def test_a_notice_comes_before_a_recommendation_because_it_is_in_a_hurry() -> None:
    node = Node(notice=NOTICE)
    node.metadata.recommendation = RECOMMENDED
    order = node.asks()
    assert order is not None
    assert "spot interruption notice" in order.reason


@pytest.mark.parametrize("body", ["", "{}", "not JSON", "null"])
def test_whatever_stands_there_is_a_recommendation(body: str) -> None:
    """Its time is in the past, and nothing is decided on it."""
    node = Node()
    node.metadata.recommendation = body
    assert node.asks() is not None


def test_metadata_that_does_not_answer_recommends_nothing() -> None:
    node = Node()

    def away() -> str:
        raise OSError("timed out")

    node.metadata.rebalance_recommendation = away  # type: ignore[method-assign]
    assert node.asks() is None


def test_a_notice_reaches_all_nodes_within_ten_seconds() -> None:
    """The longest way: the node looks just before the notice, and the others just before they are told. Between lie the report, the
    table's stream (Lambda asks it four times a second) and the attendant's look, for which 2 s are allowed."""
    assert Timing().orders_every_s <= 5
    assert 2 * Timing().orders_every_s + 2 <= 10

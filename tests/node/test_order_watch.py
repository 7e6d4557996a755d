"""When a node obeys: the attempt's order at once, its own order of the deadline at once, that of a spot notice once all know it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from botocore.exceptions import ReadTimeoutError

from agent.orders import deadline_order, rebalance_order, spot_order, word_order
from agent.table import NodeItems
from contract import items
from contract.codec import encode
from contract.orders import Order, OrderKind
from tests.builders import JOB, WITH_ROLES
from tests.node.fakes import refusal
from tests.node.table import NAME, ROLE, NodeTable
from tests.node.watching import Notices, watch

NOTICE = json.dumps({"action": "terminate", "time": "2027-01-15T08:02:00Z"})
ORDER = Order(kind=OrderKind.STOP, error="TrainingFailed", reason="rank 1 failed", by=0, author="attendant")
LOOK_S = JOB.timing.orders_every_s
LATE = JOB.deadline - 60.0


def instance(rank: int) -> str:
    return f"i-{rank:017x}"


class Node:
    """One of the nodes of an attempt; `told` is what its reports asked for or said it obeys, in order."""

    def __init__(
        self, notice: str | None = None, rank: int = 0, *, table: NodeTable | None = None, now: float = JOB.admitted_at
    ) -> None:
        self.table, self.metadata, self.rank, self.passed = table or NodeTable(), Notices(notice), rank, 0.0
        self.told, self.notes = list[Order](), list[str]()
        self.items = NodeItems(self.table, NAME, ROLE, instance(rank))
        self.watch = watch(
            self.items, self.metadata, rank,
            on_order=self._hear, note=self.notes.append, now=now, monotonic=lambda: self.passed,
        )  # fmt: skip

    def _hear(self, order: Order) -> None:
        assert not self.watch.came.is_set()
        self.told.append(order)

    def read_order(self, after: float = 0.0) -> Order | None:
        self.passed += after
        return self.watch.read_order()

    def give(self, order: Order) -> None:
        self.table.give(items.node_order(ROLE, instance(self.rank)), encode(order))


def test_no_order_is_none() -> None:
    assert Node().read_order() is None


def test_an_order_for_another_node_is_none() -> None:
    node = Node()
    other = Node(rank=1, table=node.table)
    other.give(ORDER)
    assert node.read_order() is None


def test_the_attempts_order_is_obeyed_at_once() -> None:
    node = Node()
    node.give(ORDER)
    assert node.read_order() == ORDER
    assert (node.told, node.watch.came.is_set()) == ([ORDER], True)


@pytest.mark.parametrize("document", [b"", b'{"kind": "dance"}', b"\xff" * 5, b"null"])
def test_an_order_that_cannot_be_understood_is_left_aside(document: bytes) -> None:
    node = Node()
    # As bytes, which zlib cannot read, or as text.
    value = {"doc": {"S": document.decode()} if document.isascii() else {"B": document}}
    key = items.node_order(ROLE, instance(0))
    node.table.answer(
        "PutItem", {"TableName": NAME, "Item": {"pk": {"S": key.partition}, "sk": {"S": key.sort}, **value}}
    )
    assert node.read_order() is None
    assert "it cannot read" in node.notes[0]
    node.give(ORDER)
    assert node.read_order() == ORDER


@pytest.mark.parametrize(
    "problem", [refusal("ThrottlingException"), refusal("InternalServerError"), ReadTimeoutError(endpoint_url="x")]
)
def test_dynamodb_that_is_away_is_no_order(problem: Exception) -> None:
    node = Node()
    node.table.fault = lambda _call, _sort: problem
    assert node.read_order() is None
    assert "the agent cannot read its orders" in node.notes[0]


# A spot notice


def test_a_node_with_a_notice_tells_it_and_does_not_obey_before_everybody_knows() -> None:
    node = Node(NOTICE)
    assert [node.read_order(), node.read_order(LOOK_S), node.read_order(LOOK_S - 0.01)] == [None] * 3
    (asked,) = node.told
    assert (asked.error, asked.author, asked.by) == ("Interrupted", "rank 0", 1_800_000_120)
    assert not node.watch.came.is_set()


def test_a_node_with_a_notice_obeys_once_its_copy_has_come() -> None:
    node = Node(NOTICE)
    node.read_order()
    node.give(node.told[0])
    assert node.read_order(0.1) == node.told[0]
    assert len(node.told) == 1  # the report says it already


def test_a_node_with_a_notice_obeys_without_a_copy_once_it_has_waited() -> None:
    node = Node(NOTICE)
    node.read_order()
    assert node.read_order(2 * LOOK_S) == node.told[0]
    assert len(node.told) == 1


def test_a_notice_is_told_and_obeyed_though_dynamodb_does_not_answer() -> None:
    node = Node(NOTICE)
    node.table.fault = lambda _call, _sort: refusal("ThrottlingException")
    assert node.read_order() is None
    assert len(node.told) == 1
    assert node.read_order(2 * LOOK_S) == node.told[0]


def test_a_copy_that_comes_after_the_node_has_obeyed_changes_nothing() -> None:
    node = Node(NOTICE)
    node.read_order()
    own = node.read_order(2 * LOOK_S)
    node.give(ORDER)
    assert node.read_order(LOOK_S) == own
    assert len(node.told) == 1


def test_the_attempts_order_wins_over_the_nodes_own_also_while_that_waits() -> None:
    node = Node(NOTICE)
    node.read_order()
    node.give(ORDER)
    assert node.read_order(2 * LOOK_S) == ORDER
    assert node.told[1:] == [ORDER]


def test_a_notice_that_is_taken_back_while_its_order_waits_still_counts() -> None:
    node = Node(NOTICE)
    node.read_order()
    node.metadata.notice = None
    assert node.read_order(2 * LOOK_S) == node.told[0]


def test_of_two_nodes_with_notices_both_obey_the_one_order_that_they_are_given() -> None:
    first = Node(NOTICE)
    nodes = [first, Node(NOTICE, 1, table=first.table)]
    assert [node.read_order() for node in nodes] == [None, None]
    chosen = nodes[1].told[0]
    nodes[1].give(chosen)
    assert nodes[1].read_order(LOOK_S) == chosen
    nodes[0].give(chosen)
    assert nodes[0].read_order(LOOK_S) == chosen
    assert [node.told[-1].author for node in nodes] == ["rank 1", "rank 1"]


# A command that has ended with an error


def test_a_node_whose_trainer_broke_sees_the_order_that_a_peer_obeyed_in_the_last_second() -> None:
    node = Node()
    node.table.knobs.lag_s = 1.0
    node.give(ORDER)
    assert node.read_order() is None
    assert node.watch.read_order(stopped=True) == ORDER


def test_a_node_with_a_notice_whose_trainer_broke_waits_for_nobody() -> None:
    node = Node(NOTICE)
    order = node.watch.read_order(stopped=True)
    assert order is not None
    assert (order.error, node.told) == ("Interrupted", [order])


def test_a_node_without_notice_or_order_whose_trainer_broke_was_not_ordered() -> None:
    node = Node()
    assert node.watch.read_order(stopped=True) is None
    assert node.told == []


# The deadline


def test_a_deadline_is_obeyed_at_once_and_told() -> None:
    node = Node(now=LATE)
    order = node.read_order()
    assert order is not None
    assert (order.error, node.told) == ("DeadlineReached", [order])


@pytest.mark.parametrize("ahead_s", [400.0, 86400.0, 10 * 365 * 86400.0])
def test_a_node_whose_own_clock_is_ahead_does_not_end_the_job_before_its_deadline(ahead_s: float) -> None:
    node = Node(now=JOB.deadline + ahead_s)
    node.table.aws.now = lambda: JOB.admitted_at + 60
    node.items.order()  # the first report is sent before the first look, and tells AWS's time
    assert node.read_order() is None
    assert node.told == []


def test_a_node_whose_own_clock_is_behind_stops_ahead_of_the_deadline() -> None:
    node = Node(now=JOB.admitted_at - 86400.0)
    node.table.aws.now = lambda: LATE
    node.items.order()
    order = node.read_order()
    assert order is not None
    assert order.error == "DeadlineReached"


def test_a_deadline_is_obeyed_though_dynamodb_does_not_answer() -> None:
    node = Node(now=LATE)
    node.table.fault = lambda _call, _sort: refusal("ThrottlingException")
    assert node.read_order() is not None


def test_a_node_acts_on_its_own_ahead_of_its_deadline() -> None:
    notice = JOB.timing.deadline_notice_s
    assert deadline_order(JOB, 1, JOB.deadline - notice - 1) is None
    order = deadline_order(JOB, 1, JOB.deadline - notice)
    assert order is not None
    assert (order.error, order.by, order.author) == ("DeadlineReached", JOB.deadline, "rank 1")


def test_what_a_node_of_a_role_asks_for_names_it() -> None:
    assert "of rank 3 (ps 0) got" in spot_order("{}", 3, 1000.0, WITH_ROLES.roles).reason
    assert "of rank 3 got" in spot_order("{}", 3, 1000.0).reason
    order = rebalance_order(WITH_ROLES, 1, 1000.0)
    assert (order.author, "the node of rank 1 (worker 0): it" in order.reason) == ("rank 1", True)
    assert word_order(WITH_ROLES, order).startswith("rank 1 (worker 0): EC2 recommends")
    assert word_order(JOB, replace(order, author="attendant")).startswith("attendant: ")


def test_a_short_job_keeps_half_of_its_time_for_training() -> None:
    short = replace(JOB, deadline=int(JOB.admitted_at) + 60)
    assert deadline_order(short, 0, JOB.admitted_at + 29) is None
    assert deadline_order(short, 0, JOB.admitted_at + 30) is not None


def test_a_notice_that_says_nothing_is_still_one() -> None:
    for text in ("", "{}", '{"time": 5}', '{"time": "soon"}', "[]"):
        assert spot_order(text, 0, 1000.0).by == 1120

"""A node's two items in the table of state: dated by AWS's clock, never replaced by an older report, and small."""

from __future__ import annotations

from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from agent.fitting import MOST, document_of
from agent.table import RECENT, AwsTime, NodeItems, Untold
from contract import items
from contract.codec import compact, decode, encode
from contract.keys import BytesPrefix, CommitKind
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase, Progress
from localaws.services.dynamodb_values import checked
from tests.builders import NOW
from tests.node.fakes import refusal
from tests.node.table import NAME, ROLE, NodeTable

INSTANCE = "i-0123456789abcdef0"
ORDER = Order(kind=OrderKind.STOP, error="Interrupted", reason="spot", by=0, author="attendant")
JOB = "a" * 80
KEYS = BytesPrefix(JOB)
STEADY = NodeReport(
    job=JOB,
    attempt=12,
    rank=511,
    instance=INSTANCE,
    phase=Phase.TRAINING,
    sent_at=NOW + 0.123,
    sequence=123_456,
    phase_s=123_456.789,
    progress=Progress(step=123_456_789, world_size=4096, metric=0.12345678901234568, import_s=12.345),
    checkpoint=KEYS.commit(CommitKind.CHECKPOINTS, 12, 123_456_789, 511),
    checkpoint_step=123_456_789,
    artifacts=KEYS.commit(CommitKind.ARTIFACTS, 12, 123_456_789, 511),
    restored_step=123_456_700,
    timeline=dict.fromkeys(("booted", "prepared", "addressed", "started", "first_step"), NOW + 0.123),
)
"""As long as a report becomes while all is well."""


class Node:
    """A node whose monotonic clock began some time, `passed` seconds ago; AWS's is `part` of a second into one then."""

    def __init__(self, part: float = 0.7) -> None:
        self.passed, self.part = 0.0, part
        self.table = NodeTable()
        self.table.aws.now = self.aws_now
        self.items = NodeItems(self.table, NAME, ROLE, INSTANCE, monotonic=lambda: 5000.0 + self.passed)

    def aws_now(self) -> float:
        return NOW + self.part + self.passed

    def send(self, version: int = 1, *, urgent: bool = False, document: bytes = b"{}") -> None:
        self.items.put_report(document, version=version, urgent=urgent, expires=NOW + 0.5)

    def give(self, document: bytes) -> None:
        self.table.give(items.node_order(ROLE, INSTANCE), document)

    @property
    def item(self) -> dict[str, Any]:
        (found,) = self.table.items(NAME)
        return found

    @property
    def at(self) -> float:
        return float(self.item["at"]["N"])


@pytest.fixture
def node() -> Node:
    return Node()


# The time of a report


def test_a_report_is_not_dated_before_an_answer_has_told_the_time(node: Node) -> None:
    node.send()
    node.send(2)
    assert node.table.calls == [("get", "order"), ("put", "report"), ("put", "report")]


@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.999])
def test_a_report_is_dated_at_most_a_second_early_and_never_late(part: float) -> None:
    node = Node(part)
    node.send()
    assert node.aws_now() - 1.0 < node.at <= node.aws_now()


def test_many_answers_tell_the_time_better_than_one(node: Node) -> None:
    for _ in range(20):
        node.passed += 5.05
        node.items.order()
    node.send()
    assert node.aws_now() - 0.1 < node.at <= node.aws_now()


def test_an_answer_that_was_long_on_its_way_dates_no_report_late_and_makes_no_better_one_worse(node: Node) -> None:
    def slow(_call: str, _sort: str) -> None:
        node.passed += 40.0

    node.items.order()
    before = node.passed
    node.table.lost = slow
    node.items.order()
    assert node.passed == before + 40.0
    node.table.lost = lambda _call, _sort: None
    node.send()
    assert node.aws_now() - 1.0 < node.at <= node.aws_now()


def test_a_drift_of_the_monotonic_clock_counts_for_ten_minutes_and_no_longer() -> None:
    """It gains a second an hour on AWS's. A day later the first answer would date reports 24 s late."""
    passed = 0.0
    clock = AwsTime(lambda: passed * (1 + 1 / 3600))
    for _ in range(86_400 // 5):
        passed += 5.0
        clock.hear({"ResponseMetadata": {"HTTPHeaders": {"date": formatdate(NOW + passed, usegmt=True)}}})
    assert RECENT * 5.0 == 600.0
    assert clock.now() - (NOW + passed) < 0.2


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException"])
def test_a_refusal_tells_the_time_as_well(node: Node, code: str) -> None:
    node.table.fault = lambda call, _sort: refusal(code) if call == "get" else None
    node.send()
    assert node.aws_now() - 1.0 < node.at <= node.aws_now()


def test_a_node_that_hears_nothing_of_aws_sends_nothing(node: Node) -> None:
    node.table.fault = lambda _call, _sort: EndpointConnectionError(endpoint_url="x")
    with pytest.raises(EndpointConnectionError):
        node.send()
    assert node.table.items(NAME) == []


@pytest.mark.parametrize("headers", [{}, {"date": ""}, {"date": "soon"}, {"date": None}])
def test_an_answer_without_a_date_tells_nothing(headers: dict[str, Any]) -> None:
    clock = AwsTime(lambda: 1.0)
    clock.hear({"ResponseMetadata": {"HTTPHeaders": headers}})
    clock.hear({})
    with pytest.raises(Untold):
        clock.now()


# Which report stays


def test_a_report_that_was_long_on_its_way_replaces_none_that_was_sent_after_it(node: Node) -> None:
    node.send(2, document=b'"second"')
    node.send(1, document=b'"first"', urgent=True)
    assert (items.unpacked(node.item), "urgent" in node.item) == (b'"second"', False)


def test_a_report_whose_answer_was_lost_has_arrived_when_it_meets_itself(node: Node) -> None:
    node.table.lost = lambda call, _sort: ReadTimeoutError(endpoint_url="x") if call == "put" else None
    with pytest.raises(ReadTimeoutError):
        node.send(1, urgent=True)
    node.table.lost = lambda _call, _sort: None
    node.send(1, urgent=True)  # as botocore does
    assert len(node.table.written) == 1


@pytest.mark.parametrize("code", ["ThrottlingException", "TransactionConflictException", "ValidationException"])
def test_other_refusals_are_told(node: Node, code: str) -> None:
    node.table.fault = lambda call, _sort: refusal(code) if call == "put" else None
    with pytest.raises(ClientError, match=code):
        node.send()


def test_a_later_regular_report_replaces_an_urgent_one(node: Node) -> None:
    node.send(1, urgent=True)
    assert node.item["urgent"] == {"N": "1"}
    node.send(2)
    assert "urgent" not in node.item


def test_a_report_is_under_the_instances_own_userid_and_expires(node: Node) -> None:
    node.send(7)
    assert node.item["pk"] == {"S": f"{ROLE}:{INSTANCE}"}
    assert (node.item["version"], node.item["expires"]) == ({"N": "7"}, {"N": str(round(NOW + 0.5))})


# The order


def test_no_order_is_none(node: Node) -> None:
    assert node.items.order() is None


@pytest.mark.parametrize("reason", ["spot", "long " * 1000], ids=["as text", "compressed"])
def test_an_order_is_read_as_it_was_written(node: Node, reason: str) -> None:
    order = replace(ORDER, reason=reason)
    node.give(encode(order))
    assert decode(Order, node.items.order() or b"") == order


def test_the_usual_look_is_the_cheap_one_and_may_miss_the_order_of_the_last_second(node: Node) -> None:
    node.table.knobs.lag_s = 1.0
    node.give(encode(ORDER))
    assert node.items.order() is None
    assert node.items.order(certain=True) == encode(ORDER)
    node.passed += 1.1
    assert node.items.order() == encode(ORDER)
    assert node.table.total().read == 0.5 + 1.0 + 0.5


@pytest.mark.parametrize("document", [{}, {"doc": {"B": b"no zlib"}}, {"doc": {"N": "5"}}])
def test_an_item_that_holds_no_document_is_an_empty_one(document: dict[str, Any]) -> None:
    assert items.unpacked(document) == b""


def test_a_document_that_unpacks_to_any_length_is_cut_off() -> None:
    endless = items.packed(b" " * (items.MOST_READ + 1000))
    assert len(items.unpacked({"doc": endless})) == items.MOST_READ


# Its size


def test_a_steady_report_is_one_write_unit(node: Node) -> None:
    node.send(STEADY.sequence, document=document_of(STEADY, 512))
    _, size = checked(node.item)
    assert size <= 1024
    assert [one.written for (call, _), one in node.table.spent.items() if call == "PutItem"] == [1.0]
    assert decode(NodeReport, items.unpacked(node.item)) == STEADY


def test_a_compact_document_reads_as_the_long_one() -> None:
    ended = replace(STEADY, outcome=Exit(code=0, ordered=False), exit=Exit(code=3, tail=("a", "")), order=ORDER)
    for report in (STEADY, ended, replace(STEADY, progress=None, timeline={}, checkpoint_step=0, restored_step=0)):
        assert decode(NodeReport, compact(report)) == report
        assert len(compact(report)) < len(encode(report))


WIDEST = {"four bytes": "\N{PARTY POPPER}", "escaped": "\x00", "quotes": '"'}


@pytest.mark.parametrize("letter", WIDEST.values(), ids=WIDEST.keys())
def test_the_longest_report_arrives_with_its_newest_lines(node: Node, letter: str) -> None:
    lines = tuple(f"{n:02d}{letter * 998}" for n in range(50))
    ending = Exit(code=1, error="TrainingFailed", reason=f"begin {letter * 50_000} end", tail=lines)
    order = replace(ORDER, reason=ending.reason)
    report = replace(STEADY, outcome=ending, exit=ending, order=order, note=ending.reason)
    document = document_of(report, 1)
    assert len(document) <= MOST
    node.send(1, document=document, urgent=True)
    arrived = decode(NodeReport, items.unpacked(node.item))
    assert arrived.exit is not None
    assert arrived.exit == arrived.outcome
    kept = len(arrived.exit.tail)
    assert kept >= 5
    assert arrived.exit.tail == lines[-kept:]
    assert arrived.exit.reason.startswith("begin ")
    assert arrived.exit.reason.endswith(" end")
    assert (arrived.progress, arrived.timeline) == (STEADY.progress, STEADY.timeline)


def test_a_report_that_fits_is_not_cut() -> None:
    ending = Exit(code=1, reason="long " * 2000, tail=tuple("x" * 1000 for _ in range(50)))
    report = replace(STEADY, outcome=ending, exit=ending)
    assert decode(NodeReport, document_of(report, 1)) == report

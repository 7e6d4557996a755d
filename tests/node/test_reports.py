"""The node's reports: sent at every tick, urgent until they have arrived, and no more of them than before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import ReadTimeoutError

from agent.reports import AGAIN_S, Reporter
from agent.table import NodeItems
from contract import items
from contract.codec import decode
from contract.jobs import Job
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase
from tests.builders import JOB, NOW
from tests.node.fakes import refusal
from tests.node.table import NAME, ROLE, NodeTable
from tests.node.watching import Notices, watch

INSTANCE = "i-0123456789abcdef0"
ORDER = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="spot", by=0, author="rank 0")
FAILED = Exit(code=1, error="TrainingFailed", reason="rank 0: the command exited with code 1")
FIRST = NodeReport(job=JOB.id, attempt=1, rank=0, instance=INSTANCE, phase=Phase.RESTORING, sent_at=NOW)


class Over(BaseException):
    """The time that a test gives a thread's loop."""


class Waits(threading.Event):
    """Time passes in waits only, and only so much of it."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.left, self.waits = seconds, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        if not self.is_set():
            self.waits.append(timeout)
            self.left -= timeout
        if self.left <= 0:
            raise Over
        return self.is_set()


class Node:
    """A node whose wishes for reports are served one tick after the other."""

    def __init__(self, job: Job = JOB) -> None:
        self.table, self.notes = NodeTable(), list[str]()
        self.items = NodeItems(self.table, NAME, ROLE, INSTANCE)
        self.reporter = Reporter(
            self.items, FIRST, nodes=job.nodes, every_s=job.timing.report_every_s, expires=NOW,
            progress=lambda: None, note=self.notes.append, now=lambda: NOW,
        )  # fmt: skip

    def live(self, seconds: float) -> list[float]:
        """The pauses between the reports of so many seconds."""
        waits = Waits(seconds)
        if self.reporter._wake.is_set():
            waits.set()
        self.reporter._wake = waits
        with pytest.raises(Over):
            self.reporter._run()
        return waits.waits

    @property
    def urgent(self) -> list[bool]:
        """Of each report that arrived, whether it was urgent."""
        return [items.URGENT in item for item in self.table.written]

    @property
    def newest(self) -> NodeReport:
        return decode(NodeReport, items.unpacked(self.table.items(NAME)[0]))


@pytest.fixture
def node() -> Node:
    return Node()


def failing(times: int, code: str = "ThrottlingException") -> Iterator[Exception]:
    return (refusal(code, "PutItem") for _ in range(times))


def test_a_report_is_sent_at_every_tick_though_nothing_has_changed(node: Node) -> None:
    assert node.live(95.0) == [30.0] * 4
    assert node.urgent == [False] * 3


def test_an_error_is_urgent_once_and_the_reports_after_it_are_not(node: Node) -> None:
    node.reporter.outcome(FAILED)
    node.live(65.0)
    assert node.urgent == [True, False, False]
    assert node.newest.outcome == FAILED


def test_a_report_says_how_long_ago_its_first_order_came(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("agent.reports.time.monotonic", lambda: now[0])
    told = list[float]()
    for order in (None, ORDER, replace(ORDER, author="attendant")):
        if order is not None:
            node.reporter.change(order=order)
        now[0] += 5.0
        node.reporter.send()
        told.append(node.newest.ordered_s)
    assert told == [0.0, 5.0, 10.0]


def test_an_exit_that_was_ordered_wakes_nobody(node: Node) -> None:
    node.reporter.outcome(Exit(code=1, error="Interrupted", ordered=True))
    node.live(35.0)
    assert node.urgent == [False, False]


def test_an_urgent_report_that_does_not_arrive_is_sent_again_soon_and_stays_urgent(node: Node) -> None:
    troubles = failing(3)
    node.table.fault = lambda call, _sort: next(troubles, None) if call == "put" else None
    node.reporter.outcome(FAILED)
    waits = node.live(50.0)
    assert waits == [AGAIN_S] * 3 + [30.0] * 2
    assert node.urgent == [True, False]
    assert len(node.notes) == 3


def test_a_regular_report_that_does_not_arrive_waits_for_its_next_turn(node: Node) -> None:
    troubles = failing(1)
    node.table.fault = lambda call, _sort: next(troubles, None) if call == "put" else None
    assert node.live(65.0) == [30.0] * 3
    assert node.urgent == [False]


def test_an_urgent_report_whose_answer_was_lost_is_followed_by_another(node: Node) -> None:
    losses = iter([ReadTimeoutError(endpoint_url="x")])
    node.table.lost = lambda call, _sort: next(losses, None) if call == "put" else None
    node.reporter.outcome(FAILED)
    node.live(10.0)
    assert node.urgent == [True, True]
    assert [int(item["version"]["N"]) for item in node.table.written] == [1, 2]


def test_what_becomes_urgent_while_a_report_is_on_its_way_is_sent_after_it(node: Node) -> None:
    hurries = iter([node.reporter.hurry])

    def hurry(call: str, _sort: str) -> None:
        if call == "put":
            next(hurries, lambda: None)()

    node.table.fault = hurry  # type: ignore[assignment]
    node.live(35.0)
    assert node.urgent == [False, True]


def test_the_last_report_is_urgent_until_it_arrives(node: Node) -> None:
    troubles, pauses = failing(2), list[float]()
    node.table.fault = lambda call, _sort: next(troubles, None) if call == "put" else None
    assert node.reporter.end(FAILED, tries=5, sleep=pauses.append)
    assert node.urgent == [True]
    assert (node.newest.phase, node.newest.exit) == (Phase.ENDED, FAILED)
    assert pauses == [1.0, 2.0]


class Overtaken:
    """Replaces the lock of sending: the first thread that wants it waits until the node has ended."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._lock, self._ends = threading.RLock(), [end]

    def __enter__(self) -> None:
        if self._ends:
            ends = threading.Thread(target=self._ends.pop())
            ends.start()
            ends.join()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_no_report_follows_the_last_one_where_the_node_ends_as_a_regular_one_is_due(node: Node) -> None:
    node.reporter._sending = Overtaken(lambda: node.reporter.end(FAILED, tries=1, sleep=print))  # type: ignore[assignment]
    node.reporter.enter(Phase.SAVING)
    node.reporter._run()
    assert node.urgent == [True]


def test_a_last_report_that_never_arrives_is_given_up(node: Node) -> None:
    node.table.fault = lambda call, _sort: refusal("AccessDeniedException") if call == "put" else None
    pauses = list[float]()
    assert not node.reporter.end(FAILED, tries=3, sleep=pauses.append)
    assert (len(pauses), node.table.written) == (3, [])


def test_a_report_of_before_cannot_replace_the_last_one(node: Node) -> None:
    """Botocore gave a try up that is still on its way when the next report has arrived."""
    late: list[dict[str, object]] = []
    real = node.table.put_item

    def held_up(**request: object) -> dict[str, object]:
        if late:
            return real(**request)
        late.append(request)
        raise ReadTimeoutError(endpoint_url="x")

    node.table.put_item = held_up  # type: ignore[method-assign]
    node.live(35.0)
    assert node.reporter.end(FAILED, tries=1, sleep=lambda _: None)
    with pytest.raises(Exception, match="ConditionalCheckFailed"):
        real(**late[0])
    assert node.newest.exit == FAILED


def test_an_hour_of_a_node_is_900_looks_for_its_order_and_120_reports() -> None:
    """As many as before, in the same pace; one more read tells the time, unless a look did."""
    node = Node()
    node.reporter.send()
    node.live(3600.0)
    orders = watch(node.items, Notices())
    orders._done = Waits(3600.0)
    with pytest.raises(Over):
        orders._run()
    assert (len(node.table.list_calls("put")), len(node.table.list_calls("get"))) == (120, 900 + 1)
    spent = node.table.total()
    assert (spent.written, spent.read) == (120.0, (900 + 1) / 2)

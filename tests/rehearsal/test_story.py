"""What happens to a rehearsed job is told as events, each once: no line for a look at which nothing happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase, Progress
from rehearsal.story import EVERY_S, MOST_NAMED, Scene, Story, attempt_of, describe_phases
from tests.builders import WITH_ROLES

BOOTED = NodeReport(job="j", attempt=1, rank=0, instance="i-1", phase=Phase.PREPARING, sent_at=0.0)
TRAINS = replace(BOOTED, phase=Phase.TRAINING, progress=Progress(step=10, metric=0.5))
FIRST = ["Admit", "Plan only?", "Launch", "Train"]
SECOND = [*FIRST, "Terminate", "Decide", "Pause", "Launch", "Train"]
NOTICE = Order(
    kind=OrderKind.CHECKPOINT_AND_STOP,
    error="Interrupted",
    reason="the node of rank 0 got a spot interruption notice",
    by=0,
    author="rank 0",
)


def scene(*reports: NodeReport, states: list[str] | None = None) -> Scene:
    return Scene(states=FIRST if states is None else states, reports={one.rank: one for one in reports})


def begun(*reports: NodeReport) -> Story:
    """A story that has told all of a first scene."""
    story = Story()
    story.tell(scene(*reports), 0.0)
    return story


def test_ranks_of_a_job_with_roles_have_their_names() -> None:
    story = Story()
    ends = replace(
        TRAINS, outcome=Exit(code=1, error="TrainingFailed", reason="rank 0 (chief 0): the command exited with code 1")
    )
    asked = replace(TRAINS, rank=3, order=NOTICE)
    told = story.tell(
        Scene(states=FIRST, reports={0: ends, 3: asked}, strikes=[(1, 3, "node-lost")], roles=WITH_ROLES.roles),
        0.0,
    )
    assert "fault node-lost strikes rank 3 (ps 0) in attempt 1" in told
    assert "rank 0 (chief 0) ends with TrainingFailed: the command exited with code 1" in told
    assert any(one.startswith("order to all nodes by rank 0 (chief 0): ") for one in told)
    assert "rank 0 (chief 0) training, rank 3 (ps 0) training" in told


def test_states_are_told_as_they_are_entered_and_never_twice() -> None:
    story = Story()
    assert story.tell(scene(states=["Admit"]), 0.0) == ["Admit"]
    assert story.tell(scene(states=FIRST), 1.0) == ["Plan only? → Launch → Train"]
    assert story.tell(scene(states=FIRST), 2.0) == []


def test_a_second_attempt_is_named_with_the_end_of_the_first() -> None:
    story = begun(TRAINS)
    ends = {1: "NodeLost: rank 1 is gone.\nIts nodes said: ...", 2: "NodeLost: not yet over"}
    lines = story.tell(Scene(states=SECOND, reports={}, ends=ends), 1.0)
    assert lines == [
        "attempt 1 is over: NodeLost: rank 1 is gone.",
        "Terminate → Decide → Pause",
        "attempt 2: Launch → Train",
    ]
    assert story.tell(Scene(states=SECOND, reports={}, ends=ends), 2.0) == []


def test_an_attempt_says_from_which_step_it_goes_on_once_it_has_restored() -> None:
    story = begun(TRAINS)
    restores = replace(BOOTED, attempt=2, phase=Phase.RESTORING)
    assert not any("goes on" in line for line in story.tell(scene(restores, states=SECOND), 1.0))
    restored = replace(restores, phase=Phase.PREPARING, restored_step=210)
    assert "attempt 2 goes on from step 210" in story.tell(scene(restored, states=SECOND), 2.0)
    assert story.tell(scene(restored, states=SECOND), 3.0) == []


def test_an_attempt_without_a_checkpoint_says_that_it_starts_from_the_beginning() -> None:
    lines = begun(TRAINS).tell(scene(replace(BOOTED, attempt=2), states=SECOND), 1.0)
    assert "attempt 2 starts from the beginning: there is no whole checkpoint" in lines


def test_a_first_attempt_that_restores_nothing_says_nothing_of_it() -> None:
    assert begun().tell(scene(BOOTED), 1.0) == ["rank 0 preparing"]


def test_nodes_that_are_released_are_named_together_and_each_once() -> None:
    release = Order(kind=OrderKind.STOP, error="", reason="the job is done", by=0, author="attendant")
    nodes = [replace(TRAINS, rank=rank, order=release) for rank in range(8)]
    story = begun(TRAINS)
    (line,) = (one for one in story.tell(scene(TRAINS, nodes[1]), 1.0) if "order" in one)
    assert line == "order to rank 1 by attendant: stop: the job is done"
    (line,) = (one for one in story.tell(scene(TRAINS, *nodes[1:3]), 2.0) if "order" in one)
    assert line == "order to rank 2 by attendant: stop: the job is done"
    (line,) = (one for one in story.tell(scene(TRAINS, *nodes[1:]), 3.0) if "order" in one)
    assert line == "order to ranks 3, 4, 5, 6 and 1 more by attendant: stop: the job is done"
    assert not any("order" in one for one in story.tell(scene(TRAINS, *nodes[1:]), 4.0))


def test_an_order_is_told_once_for_all_nodes() -> None:
    story = begun(TRAINS)
    (line,) = story.tell(scene(replace(TRAINS, order=NOTICE)), 1.0)
    assert line == (
        "order to all nodes by rank 0: checkpoint and stop: the node of rank 0 got a spot interruption notice"
    )
    assert not any("order" in one for one in story.tell(scene(replace(TRAINS, order=NOTICE, rank=1)), 2.0))


def test_a_fault_that_strikes_is_told_before_what_follows_from_it() -> None:
    struck = replace(scene(replace(TRAINS, order=NOTICE)), strikes=[(1, 0, "spot-notice")])
    lines = begun(TRAINS).tell(struck, 1.0)
    assert lines[0] == "fault spot-notice strikes rank 0 in attempt 1"
    assert len(lines) == 2


def test_an_own_error_is_told_once_and_one_by_an_order_is_not() -> None:
    story = begun(TRAINS)
    failed = replace(TRAINS, outcome=Exit(code=1, error="TrainingFailed", reason="rank 0: the command exited\nmore"))
    assert story.tell(scene(failed), 1.0) == ["rank 0 ends with TrainingFailed: the command exited"]
    assert story.tell(scene(replace(failed, exit=failed.outcome)), 2.0) == []
    obeyed = replace(TRAINS, outcome=Exit(code=143, error="Interrupted", ordered=True))
    assert begun(TRAINS).tell(scene(obeyed), 1.0) == []


def test_steps_are_told_now_and_then_and_at_the_end() -> None:
    story = begun(BOOTED)
    assert story.tell(scene(TRAINS), 1.0)[-1] == "step 10, metric 0.5"
    later = replace(TRAINS, progress=Progress(step=20, metric=0.75), closed_step=16)
    assert story.tell(scene(later), 2.0) == []
    assert story.tell(scene(later), 1.0 + EVERY_S) == ["step 20, metric 0.75, checkpoint of step 16"]
    assert story.tell(scene(later), 2.0 + 2 * EVERY_S) == []
    saves = replace(later, phase=Phase.SAVING, progress=Progress(step=24))
    assert story.tell(scene(saves), 3.0 + 2 * EVERY_S) == ["rank 0 saving", "step 24, checkpoint of step 16"]


@pytest.mark.parametrize("evil", ["\x1b[2Jwell", "a\nb", "x\u202ey", "long" * 500])
def test_what_a_node_says_is_one_short_line_that_steers_nothing(evil: str) -> None:
    order = replace(NOTICE, reason=evil)
    for line in begun(TRAINS).tell(scene(replace(TRAINS, order=order)), 1.0):
        assert line.isprintable()
        assert len(line) < 500


def test_many_nodes_are_counted_by_phase() -> None:
    reports = {rank: replace(BOOTED, rank=rank) for rank in range(MOST_NAMED + 1)}
    assert describe_phases(reports) == f"nodes: {MOST_NAMED + 1} preparing"
    assert describe_phases({}) == ""


def test_an_attempt_is_counted_by_its_launches() -> None:
    assert (attempt_of([]), attempt_of(FIRST), attempt_of(SECOND)) == (1, 1, 2)

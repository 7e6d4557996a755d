"""The curve of a job is kept at each pass, after everything else, and nothing waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.points import read_point
from aws.state import State
from contract import items
from contract.curves import Curve, Point
from contract.reports import Exit, Phase, Progress
from tests.builders import NODE_ROLE, NOW
from tests.fakes import state
from tests.fakes.faults import Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome
from tests.functions.attendant.attempts import TRAINING, heard


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([2] * 3, now=NOW)
    with made.functions.installed():
        yield made


def tick(fleet: Fleet, *mishaps: Mishap) -> Outcome:
    return fleet.functions.invoke("attendant", {"source": "aws.events"}, mishaps)


def hear(fleet: Fleet, job: str, rank: int = 0, **changes: Any) -> None:
    instance = fleet.instances[job][rank]
    state.report(fleet.aws, replace(WORKING, job=job, rank=rank, instance=instance, **changes))


def steps(job: str) -> list[tuple[int, float | None]]:
    return [(one.step, one.metric) for one in State(state.TABLE).curve(job).points]


def calls_of_curves(fleet: Fleet) -> list[str]:
    keys = [(call.operation, call.params.get("Key") or call.params.get("Item") or {}) for call in fleet.aws.calls]
    return [operation for operation, key in keys if key.get("pk", {}).get("S", "").startswith(items.CURVES)]


def test_each_pass_adds_what_rank_0_reports_to_the_curve_of_each_job(fleet: Fleet) -> None:
    first, second, *_ = (job.id for job in fleet.jobs)
    hear(fleet, first, progress=Progress(step=10, metric=0.5))
    hear(fleet, second, progress=Progress(step=7))
    tick(fleet)
    hear(fleet, first, progress=Progress(step=20, metric=0.25))
    tick(fleet)
    assert steps(first) == [(10, 0.5), (20, 0.25)]
    assert steps(second) == [(7, None)]


def test_a_curve_costs_a_pass_one_read_a_job_and_one_write_where_it_says_something_new(fleet: Fleet) -> None:
    tick(fleet)
    assert sorted(calls_of_curves(fleet)) == ["GetItem"] * 3 + ["PutItem"] * 3
    fleet.aws.calls.clear()
    tick(fleet)
    assert calls_of_curves(fleet) == ["GetItem"] * 3


def test_other_ranks_add_nothing(fleet: Fleet) -> None:
    job = fleet.jobs[0].id
    tick(fleet)
    hear(fleet, job, 1, progress=Progress(step=900, metric=9.0))
    tick(fleet)
    assert steps(job) == [(1, 0.5)]


def test_an_urgent_look_keeps_no_curve(fleet: Fleet) -> None:
    job = fleet.jobs[0].id
    hear(fleet, job, phase=Phase.SAVING, outcome=Exit(code=1, error="TrainingFailed"), progress=Progress(step=5))
    key = items.node_report(NODE_ROLE, fleet.instances[job][0])
    record = {
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "Keys": {items.PARTITION: {"S": key.partition}, items.SORT: {"S": key.sort}},
            "NewImage": state.stored_item(fleet.aws, key),
        },
    }
    fleet.aws.calls.clear()
    fleet.functions.invoke("attendant", {"Records": [record]})
    assert calls_of_curves(fleet) == []


def test_a_curve_is_kept_after_the_last_look_of_the_pass(fleet: Fleet) -> None:
    tick(fleet)
    names = [call.name for call in fleet.aws.calls]
    beats = [place for place, name in enumerate(names) if name == "stepfunctions:SendTaskHeartbeat"]
    curves = [
        place
        for place, call in enumerate(fleet.aws.calls)
        if (call.params.get("Key") or call.params.get("Item") or {}).get("pk", {}).get("S", "").startswith(items.CURVES)
    ]
    assert len(beats) == 3
    assert max(beats) < min(curves)


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.DENIED, Kind.UNREACHABLE])
def test_a_curve_that_cannot_be_kept_fails_no_pass(fleet: Fleet, kind: Kind) -> None:
    tick(fleet)
    for job in fleet.jobs:
        hear(fleet, job.id, progress=Progress(step=2))
    fleet.aws.calls.clear()
    outcome = tick(fleet, Mishap("dynamodb:PutItem", nth=2, times=100, fault=kind))
    assert (outcome.error, outcome.value) == ("", {"heartbeat": 3})
    assert len([call for call in fleet.aws.calls if call.name == "stepfunctions:SendTaskHeartbeat"]) == 3


def test_after_three_failures_no_more_curves_are_kept_in_a_pass() -> None:
    fleet = Fleet([1] * 10, now=NOW)
    with fleet.functions.installed():
        tick(fleet)
        fleet.aws.calls.clear()
        for job in fleet.jobs:
            hear(fleet, job.id, progress=Progress(step=2))
        outcome = tick(fleet, Mishap("dynamodb:PutItem", nth=2, times=100, fault=Kind.DENIED))
        assert outcome.error == ""
        assert calls_of_curves(fleet).count("GetItem") == 3


def test_with_little_time_left_no_curve_is_kept(fleet: Fleet) -> None:
    def wait() -> None:
        fleet.aws.clock.spend(25.0)

    tick(fleet, Mishap("stepfunctions:SendTaskHeartbeat", times=2, meanwhile=wait))
    assert calls_of_curves(fleet) == []


def test_a_garbled_curve_begins_anew(fleet: Fleet) -> None:
    job = fleet.jobs[0].id
    state.store(fleet.aws, items.curve(job), b"no curve")
    assert tick(fleet).error == ""
    assert steps(job) == [(1, 0.5)]


@pytest.mark.parametrize("progress", [None, Progress(step=-1), Progress(step=10**17)])
def test_a_step_that_can_be_none_is_no_point(progress: Progress | None) -> None:
    assert read_point(replace(TRAINING, nodes={0: heard(0, progress=progress)}), now=NOW) is None


def test_without_a_report_of_rank_0_there_is_no_point() -> None:
    assert read_point(replace(TRAINING, nodes={1: heard(1, progress=Progress(step=3))}), now=NOW) is None


def test_a_point_names_its_attempt_and_the_time_of_the_look() -> None:
    found = read_point(replace(TRAINING, attempt=3, nodes={0: heard(0, progress=Progress(step=3))}), now=NOW)
    assert found is not None
    assert Curve(points=(found.point,)) == Curve(points=(Point(attempt=3, step=3, at=NOW),))

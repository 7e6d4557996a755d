"""The scenario that is shipped, on the local AWS: two losses, one after the other, with a slow S3 between them."""

from __future__ import annotations

import json

import pytest

from rehearsal.director import Director
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ended, left

pytestmark = [pytest.mark.rehearsal]


def test_a_job_that_is_interrupted_and_then_killed_ends_well_in_its_third_attempt(
    yard: Yard, second_wave: dict[str, StartedJob], directors: dict[str, Director]
) -> None:
    job, director = second_wave["twice-lost"], directors["twice-lost"]
    execution = ended(job)
    assert director.missing() == []
    director.write(yard.work / "scenario.json")
    assert execution["status"] == "SUCCEEDED", execution.get("cause")
    assert (json.loads(execution["output"])["attempts"], left(job)) == (3, [])
    restored = [job.reports(attempt)[0].restored_step for attempt in (2, 3)]
    assert restored[0] > 0
    assert restored[1] >= restored[0]
    told = json.loads((yard.work / "scenario.json").read_text())
    assert [one["name"] for one in told] == ["interrupted", "slow", "killed"]
    assert sorted(one["began_at"] for one in told) == [one["began_at"] for one in told]


def test_it_leaves_no_fault_to_others(
    yard: Yard, second_wave: dict[str, StartedJob], directors: dict[str, Director]
) -> None:
    ended(second_wave["twice-lost"])
    directors["twice-lost"].end()
    assert not [one for one in yard.aws.conditions.faults if one.given.get("job") == "twice-lost"]

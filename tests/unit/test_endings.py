"""What Sync and Terminate conclude."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_check.policy import missing, told
from aws.facts import Instance
from contract.commits import Commit, CommittedFile
from contract.intents import Answer, Intent, Outcome
from terminator.policy import may_appear, remembered, to_end
from tests.builders import INTENT, LAUNCHED, NOW

FILE = CommittedFile(path="model.pt", size=10, sha256="ab", key="jobs/job-1/artifacts/rank-0000/model.pt")
COMMIT = Commit(job="job-1", attempt=1, rank=0, step=3, created_at=NOW, final=True, files=(FILE,))
RESTING = replace(INTENT, held_until=0.0)


def instance(state: str) -> Instance:
    return Instance(id="i-0", region="eu-central-1", state=state, rank=0, address="", launched_at=NOW)


def test_a_commit_whose_files_are_there_lacks_nothing() -> None:
    assert missing([COMMIT], {FILE.key: 10}) == []


def test_a_missing_file_is_named() -> None:
    assert missing([COMMIT], {}) == [f"rank 0: model.pt is not there ({FILE.key})"]


def test_a_torn_file_is_named_with_both_sizes() -> None:
    assert "has 7 bytes, committed were 10" in missing([COMMIT], {FILE.key: 7})[0]


def test_thousands_of_missing_files_make_a_short_error() -> None:
    assert told([str(n) for n in range(5000)]).count("\n") == 20


@pytest.mark.parametrize("state", ["pending", "running", "stopping", "stopped"])
def test_an_instance_that_has_not_begun_to_end_still_has_to(state: str) -> None:
    assert len(to_end([instance(state)], 1)) == 1


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_instance_that_ends_needs_nothing_more(state: str) -> None:
    assert to_end([instance(state)], 1) == []


def test_instances_are_remembered_without_their_tags() -> None:
    launched = replace(INTENT, steps=(replace(INTENT.steps[0], answer=LAUNCHED),))
    assert remembered([INTENT, launched]) == {"i-0", "i-1"}


def appearing(intent: Intent, shown: set[str], *, later: float = 0.0) -> list[str]:
    return may_appear([intent], shown, now=NOW + later, visibility_s=5.0)


def test_a_lost_answer_means_that_instances_may_appear_for_a_while() -> None:
    lost = replace(RESTING, steps=(replace(RESTING.steps[0], answer=Answer(outcome=Outcome.UNKNOWN, at=NOW)),))
    assert appearing(lost, set(), later=4)
    assert not appearing(lost, set(), later=6)


def test_a_walk_that_was_cut_off_may_launch_until_its_function_is_over() -> None:
    assert appearing(INTENT, set(), later=304)
    assert not appearing(INTENT, set(), later=306)
    assert not appearing(RESTING, set())


def test_a_launch_whose_instances_are_not_seen_yet_is_not_taken_for_one_that_is_gone() -> None:
    launched = replace(RESTING, steps=(replace(RESTING.steps[0], answer=LAUNCHED),))
    assert appearing(launched, {"i-0"}, later=2)
    assert not appearing(launched, {"i-0", "i-1"}, later=2)
    assert not appearing(launched, set(), later=3600)


def test_a_later_attempts_instances_are_kept() -> None:
    assert to_end([replace(instance("running"), attempt=2)], 1) == []
    assert len(to_end([replace(instance("running"), attempt=1)], 2)) == 1


def test_an_instance_whose_attempt_cannot_be_read_ends() -> None:
    assert len(to_end([replace(instance("running"), attempt=0)], 1)) == 1

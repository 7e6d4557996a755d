"""What Sync and Terminate conclude."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_check.policy import missing, told
from aws.facts import Instance
from contract.commits import Commit, CommittedFile
from contract.intents import Answer, Outcome
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
    assert len(to_end([instance(state)])) == 1


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_instance_that_ends_needs_nothing_more(state: str) -> None:
    assert to_end([instance(state)]) == []


def test_instances_are_remembered_without_their_tags() -> None:
    launched = replace(INTENT, steps=(replace(INTENT.steps[0], answer=LAUNCHED),))
    assert remembered([INTENT, launched]) == {"i-0", "i-1"}


def test_a_lost_answer_means_that_instances_may_appear() -> None:
    lost = replace(RESTING, steps=(replace(RESTING.steps[0], answer=Answer(outcome=Outcome.UNKNOWN, at=NOW)),))
    assert may_appear([lost])


def test_a_walk_that_was_cut_off_means_that_instances_may_appear() -> None:
    assert may_appear([INTENT])
    assert not may_appear([RESTING])

"""What Sync and Terminate conclude."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_check.policy import join_lines, missing
from aws.facts import GONE, Instance, Status
from contract.commits import Commit, CommittedFile
from contract.intents import Intent, LaunchAnswer, LaunchOutcome
from ending.policy import (
    explain_pending,
    find_kept,
    find_protected,
    find_to_end,
    find_unclear,
    prepared_regions,
    recorded_ids,
)
from ending.report import build_report, cause_of_end, covers_end
from tests.builders import INTENT, LAUNCHED, NOW
from tests.fakes.functions import PROFILE

FILE = CommittedFile(path="model.pt", size=10, sha256="ab", key="jobs/job-1/artifacts/rank-0000/model.pt")
COMMIT = Commit(job="job-1", attempt=1, rank=0, step=3, created_at=NOW, final=True, files=(FILE,))
RESTING = replace(INTENT, held_until=0.0)


def instance(state: str) -> Instance:
    return Instance(id="i-0", region="eu-central-1", state=state, rank=0, address="", launched_at=NOW, profile=PROFILE)


def test_a_commit_whose_files_are_there_lacks_nothing() -> None:
    assert missing([COMMIT], {FILE.key: 10}) == []


def test_a_missing_file_is_named() -> None:
    assert missing([COMMIT], {}) == [f"rank 0: model.pt is not there ({FILE.key})"]


def test_a_torn_file_is_named_with_both_sizes() -> None:
    assert "has 7 bytes, and its commit says 10" in missing([COMMIT], {FILE.key: 7})[0]


def test_thousands_of_missing_files_make_a_short_error() -> None:
    assert join_lines([str(n) for n in range(5000)]).count("\n") == 20


@pytest.mark.parametrize("state", ["pending", "running", "stopping", "stopped"])
def test_an_instance_that_has_not_begun_to_end_still_has_to(state: str) -> None:
    assert len(find_to_end([instance(state)], 1, PROFILE)) == 1


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_instance_that_ends_needs_nothing_more(state: str) -> None:
    assert find_to_end([instance(state)], 1, PROFILE) == []


def test_instances_are_remembered_without_their_tags() -> None:
    launched = replace(INTENT, steps=(replace(INTENT.steps[0], answer=LAUNCHED),))
    assert recorded_ids([INTENT, launched]) == {"i-0", "i-1"}


def test_a_walk_may_have_launched_where_it_prepared_a_request_and_nowhere_else() -> None:
    first = INTENT.steps[0]
    away = replace(first, rung=replace(first.rung, region="us-east-1"))
    both = replace(INTENT, steps=(first, replace(away, request={})))
    assert prepared_regions([both]) == {first.rung.region}
    assert prepared_regions([replace(both, steps=(first, away))]) == {first.rung.region, "us-east-1"}
    assert prepared_regions([]) == set()


def test_a_walk_of_a_job_that_waits_may_have_launched_in_its_whole_ladder() -> None:
    """It took the place of an earlier one, which may have prepared more."""
    first = INTENT.steps[0]
    away = replace(first, rung=replace(first.rung, region="us-east-1"), request={})
    assert prepared_regions([replace(INTENT, steps=(first, away), waiting=True)]) == {
        first.rung.region,
        "us-east-1",
    }


def appearing(intent: Intent, shown: set[str], *, later: float = 0.0) -> list[str]:
    return explain_pending([intent], shown, now=NOW + later, visibility_s=5.0)


def test_a_lost_answer_means_that_instances_may_appear_for_a_while() -> None:
    lost = replace(
        RESTING, steps=(replace(RESTING.steps[0], answer=LaunchAnswer(outcome=LaunchOutcome.UNKNOWN, at=NOW)),)
    )
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
    assert find_to_end([replace(instance("running"), attempt=2)], 1, PROFILE) == []
    assert len(find_to_end([replace(instance("running"), attempt=1)], 2, PROFILE)) == 1


def test_an_instance_whose_attempt_cannot_be_read_ends() -> None:
    assert len(find_to_end([replace(instance("running"), attempt=0)], 1, PROFILE)) == 1


def test_what_a_person_protects_is_kept_and_known() -> None:
    wanted = replace(instance("running"), protected=True)
    assert find_to_end([wanted], 9, PROFILE) == []
    assert find_protected([wanted, instance("running")]) == [wanted]
    assert find_kept([wanted, instance("running")], PROFILE) == [wanted]


@pytest.mark.parametrize("profile", ["", "arn:aws:iam::123456789012:instance-profile/somebody", PROFILE.upper()])
def test_an_instance_with_our_tags_and_without_our_profile_is_kept_and_known(profile: str) -> None:
    strange = replace(instance("running"), profile=profile)
    assert find_to_end([strange, instance("running")], 9, PROFILE) == [instance("running")]
    assert find_kept([strange, instance("running")], PROFILE) == [strange]


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_a_strange_instance_that_ends_all_the_same_is_not_called_kept(state: str) -> None:
    assert find_kept([replace(instance(state), profile="")], PROFILE) == []


def test_an_instance_that_shows_no_profile_is_looked_at_again_while_it_is_new() -> None:
    bare = replace(instance("pending"), profile="")
    assert len(find_unclear([bare], now=NOW + 4, visibility_s=5.0)) == 1
    assert find_unclear([bare], now=NOW + 6, visibility_s=5.0) == []
    assert find_unclear([instance("pending")], now=NOW + 4, visibility_s=5.0) == []


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_what_ends_all_the_same_is_not_called_kept(state: str) -> None:
    assert find_protected([replace(instance(state), protected=True)]) == []


def test_the_word_of_whoever_ended_an_execution_goes_before_ours() -> None:
    assert cause_of_end(Status(name="ABORTED", error="Budget", cause="too dear")) == {
        "error": "Budget",
        "cause": "too dear",
    }


@pytest.mark.parametrize("name", ["ABORTED", "TIMED_OUT", "FAILED", GONE, "A_STATUS_OF_TOMORROW"])
def test_every_end_has_an_error_and_a_sentence(name: str) -> None:
    told = cause_of_end(Status(name=name))
    assert told["error"]
    assert told["cause"].endswith(".")


def test_a_report_lists_what_was_asked_and_who_stays() -> None:
    launched = replace(INTENT, steps=(replace(INTENT.steps[0], answer=LAUNCHED), *INTENT.steps[1:]))
    wanted = replace(instance("running"), protected=True)
    strange = replace(instance("running"), id="i-9", profile="")
    told = build_report("job-1", 1, None, [launched], [wanted, strange])
    assert [one["instances"] for one in told["launches"]] == [["i-0", "i-1"]]
    assert told["protected"] == [{"instance": "i-0", "region": "eu-central-1"}]
    assert told["without_our_profile"] == [{"instance": "i-9", "region": "eu-central-1"}]
    assert (told["error"], told["cause"]) == (None, None)


LOST = {"error": "NodeLost", "cause": "rank 1 (i-1) is terminated"}


def test_attempts_that_were_recovered_keep_their_reason() -> None:
    first = build_report("job-1", 1, LOST, [])
    second = build_report("job-1", 2, {"error": "Stalled", "cause": "rank 0 lives"}, [], before=first)
    third = build_report("job-1", 3, None, [], before=second)
    assert third["error"] is None
    assert third["recovered"] == [{"attempt": 1, **LOST}, {"attempt": 2, "error": "Stalled", "cause": "rank 0 lives"}]


def test_a_report_that_is_written_twice_tells_of_each_attempt_once() -> None:
    first = build_report("job-1", 1, LOST, [])
    assert build_report("job-1", 1, LOST, [], before=first) == first
    again = build_report("job-1", 2, None, [], before=build_report("job-1", 2, None, [], before=first))
    assert again["recovered"] == [{"attempt": 1, **LOST}]


@pytest.mark.parametrize(
    "before",
    [
        None,
        [],
        "x",
        {"recovered": {}},
        {"recovered": [1, {"attempt": "1"}], "error": "E"},
        {"attempts": True, "error": ""},
    ],
)
def test_a_report_that_somebody_else_wrote_there_recovers_nothing(before: object) -> None:
    assert build_report("job-1", 2, None, [], before=before)["recovered"] == []


OURS = build_report("job-1", 2, {"error": "Aborted", "cause": "ours"}, [])


@pytest.mark.parametrize("attempts", [2, 3])
def test_the_same_error_of_this_attempt_or_a_later_one_is_the_same_end(attempts: int) -> None:
    assert covers_end({"error": "Aborted", "cause": "more", "attempts": attempts}, OURS)


@pytest.mark.parametrize(
    "written",
    [
        None,
        [],
        "Aborted",
        {},
        {"error": "Aborted"},
        {"error": "Aborted", "attempts": "2"},
        {"error": "Aborted", "attempts": 1},
        {"error": None, "attempts": 2},
        {"error": "NodeLost", "attempts": 2},
    ],
)
def test_any_other_report_tells_of_another_end(written: object) -> None:
    assert not covers_end(written, OURS)


def test_a_report_that_was_written_long_before_the_end_does_not_cover_it() -> None:
    """As after a redrive, or where an attempt that failed alike could not be ended."""
    written = build_report("job-1", 1, LOST, [], at=1000.0)
    assert covers_end(written, written, 1030.0)
    assert not covers_end(written, written, 5000.0)
    assert covers_end({**written, "ended_at": None}, written, 5000.0), "older versions wrote no time"

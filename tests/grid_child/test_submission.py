"""Submitting a line: once, at its time, with patience where patience helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from contract import tags
from contract.codec import encode
from contract.grid import ExitCode, LineOutcome
from contract.timing import Timing
from localaws.model import Tokens
from localaws.services.sagemaker_planned import Life
from tests.fakes.faults import Kind, Mishap
from tests.fakes.grid_yard import BUCKET, NOW, PREFIX, GridYard, line_of, planned, request_of

CREATE = "sagemaker:CreateTrainingJob"
DESCRIBE = "sagemaker:DescribeTrainingJob"


def names(yard: GridYard) -> list[str]:
    return [call.operation for call in yard.aws.calls if call.service == "sagemaker"]


def test_a_first_attempt_submits_without_looking_first(yard: GridYard) -> None:
    assert yard.run() == ExitCode.DONE
    assert names(yard)[0] == "CreateTrainingJob"
    assert yard.calls("ListTags") == 0


def test_the_request_is_sent_as_it_was_planned(yard: GridYard) -> None:
    yard.run()
    sent = next(call.params for call in yard.aws.calls if call.name == CREATE)
    assert sent == yard.lines[0].request


def test_the_training_is_made_in_the_region_of_the_line() -> None:
    with planned(4) as yard:
        yard.run(3)
        assert yard.lines[3].region == "us-west-2"
        assert {call.region for call in yard.aws.calls if call.service == "sagemaker"} == {"us-west-2"}


def test_a_line_is_not_submitted_before_its_turn() -> None:
    with planned(400, pace=2.0) as yard:
        yard.run(395)
        slot = yard.lines[395].slot
        assert NOW + slot / 2.0 <= yard.trained(395).created_at <= NOW + 50 + (slot + 1) / 2.0 + 0.2


def test_a_few_lines_do_not_wait_for_children_that_there_are_not() -> None:
    with planned(4, pace=2.0) as yard:
        yard.run(0)
        assert yard.trained(0).created_at < NOW + 2


def test_a_child_that_comes_late_submits_at_once() -> None:
    with planned(400, pace=2.0) as yard:
        yard.aws.clock.run(3600)
        yard.run(0)
        assert yard.trained(0).created_at < NOW + 3601


def test_in_a_later_round_the_pace_begins_with_the_rounds_list() -> None:
    with planned(400, pace=0.5) as yard:
        yard.aws.clock.run(7200)
        yard.put(PREFIX.work(2), b"[0, 4, 8, 12, 16, 20]")
        yard.run(5, round_=2)
        assert NOW + 7200 + 5 / 0.5 <= yard.trained(20).created_at <= NOW + 7200 + 60 + 6 / 0.5 + 1


@pytest.mark.parametrize("times", [1, 9, 15])
def test_throttles_are_waited_out(yard: GridYard, times: int) -> None:
    mishap = Mishap(CREATE, times=times, fault=Kind.THROTTLED)
    assert yard.run(mishaps=[mishap]) == ExitCode.DONE
    assert yard.record() is not None
    assert len(yard.sagemaker().trainings) == 1


def test_a_throttling_that_never_ends_is_left_to_the_next_attempt(yard: GridYard) -> None:
    yard.timing = replace(Timing(), training_patience_s=600)
    assert yard.run(mishaps=[Mishap(CREATE, times=1e9, fault=Kind.THROTTLED)]) == ExitCode.AGAIN
    assert yard.record() is None
    assert yard.aws.clock.now < NOW + 1200


def test_throttled_children_spread_their_retries_over_the_turn_of_their_region() -> None:
    """A storm: the last of 10,000 lines was throttled often, and asks no oftener than the pace allows all of them together."""
    with planned(400, pace=0.5) as yard:
        yard.run(0, mishaps=[Mishap(CREATE, times=30, fault=Kind.THROTTLED)])
        assert (yard.trained(0).created_at - NOW) / 30 > 60


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER])
def test_a_submission_whose_answer_was_lost_is_looked_up_and_adopted(yard: GridYard, kind: Kind) -> None:
    assert yard.run(mishaps=[Mishap(CREATE, fault=kind)]) == ExitCode.DONE
    assert yard.calls("CreateTrainingJob") == 1
    assert names(yard)[:3] == ["CreateTrainingJob", "DescribeTrainingJob", "ListTags"]
    assert yard.recorded().outcome is LineOutcome.COMPLETED


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.ERROR])
def test_a_submission_that_never_arrived_is_looked_up_and_sent_again(yard: GridYard, kind: Kind) -> None:
    assert yard.run(mishaps=[Mishap(CREATE, times=3, fault=kind)]) == ExitCode.DONE
    assert names(yard)[:2] == ["DescribeTrainingJob", "DescribeTrainingJob"]
    assert len(yard.sagemaker().trainings) == 1


def test_a_retry_looks_before_it_submits(yard: GridYard) -> None:
    assert yard.run(attempt=2) == ExitCode.DONE
    assert names(yard)[:2] == ["DescribeTrainingJob", "CreateTrainingJob"]


def test_a_later_round_looks_before_it_submits(yard: GridYard) -> None:
    yard.put(PREFIX.work(2), b"[0]")
    assert yard.run(round_=2) == ExitCode.DONE
    assert names(yard)[:2] == ["DescribeTrainingJob", "CreateTrainingJob"]


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_training_of_this_very_line_is_adopted(yard: GridYard, attempt: int) -> None:
    yard.sagemaker().add(yard.lines[0].request)
    assert yard.run(attempt=attempt) == ExitCode.DONE
    assert len(yard.sagemaker().trainings) == 1
    assert yard.recorded().outcome is LineOutcome.COMPLETED


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("key", [tags.DEPLOYMENT, tags.GRID, tags.LINE, tags.EXECUTION])
def test_a_name_that_a_stranger_has_is_refused_and_the_stranger_named(yard: GridYard, key: str, attempt: int) -> None:
    strange = request_of(0, "eu-central-1")
    strange["Tags"] = [one if one["Key"] != key else one | {"Value": "another"} for one in strange["Tags"]]
    training = yard.sagemaker().add(strange)
    assert yard.run(attempt=attempt) == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.REFUSED
    assert training.arn in record.reason
    assert "another" in record.reason
    assert training.stopped_at is None


def test_a_stranger_without_tags_is_left_alone(yard: GridYard) -> None:
    training = yard.sagemaker().add(yard.lines[0].request | {"Tags": []})
    assert yard.run() == ExitCode.DONE
    assert training.stopped_at is None
    assert yard.recorded().outcome is LineOutcome.REFUSED


def test_a_request_that_sagemaker_does_not_take_is_refused_in_its_words(yard: GridYard) -> None:
    yard.sagemaker().refusals[yard.lines[0].training] = "No S3 objects found under S3 URL s3://x"
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.REFUSED
    assert "No S3 objects found under S3 URL s3://x" in record.reason
    assert yard.calls("CreateTrainingJob") == 1
    assert record.cost_usd == 0


def test_a_missing_right_to_submit_is_refused(yard: GridYard) -> None:
    assert yard.run(mishaps=[Mishap(CREATE, fault=Kind.DENIED)]) == ExitCode.DONE
    assert "AccessDeniedException" in yard.recorded().reason


def test_a_request_that_boto_does_not_take_is_refused(yard: GridYard) -> None:
    line = line_of(0, ["eu-central-1"], ResourceConfig={"InstanceCount": "two"})
    yard.put(PREFIX.lines(0), encode(line))
    assert yard.run() == ExitCode.DONE
    assert "InstanceCount" in yard.recorded().reason


def test_a_quota_that_is_used_up_is_waited_for(yard: GridYard) -> None:
    sagemaker = yard.sagemaker()
    sagemaker.quotas["ml.g5.xlarge", False] = 2
    sagemaker.life = lambda _: Life(training_s=7200)
    other = sagemaker.add(request_of(7, "eu-central-1") | {"TrainingJobName": "other"})
    assert yard.run() == ExitCode.DONE
    assert other.ends_at <= yard.trained().created_at <= other.ends_at + 600


def test_a_quota_that_stays_used_up_is_named_at_the_end_of_patience(yard: GridYard) -> None:
    yard.sagemaker().quotas["ml.g5.xlarge", False] = 1
    assert yard.run() == ExitCode.DONE
    record = yard.recorded()
    assert record.outcome is LineOutcome.REFUSED
    assert "'ml.g5.xlarge for training job usage'" in record.reason
    assert "Service Quotas" in record.reason
    assert yard.aws.clock.now - NOW == pytest.approx(Timing().training_patience_s, rel=0.05)


def test_a_quota_reached_between_throttles_does_not_wait_for_ever(yard: GridYard) -> None:
    yard.sagemaker().quotas["ml.g5.xlarge", False] = 1
    yard.timing = replace(Timing(), training_patience_s=3600)
    mixed: Sequence[Mishap] = [Mishap(CREATE, nth=nth, fault=Kind.THROTTLED) for nth in range(2, 200, 2)]
    assert yard.run(mishaps=mixed) in {ExitCode.DONE, ExitCode.AGAIN}
    assert yard.aws.clock.now < NOW + 3600 * 1.5


def test_aws_throttling_of_its_own_only_delays() -> None:
    with planned(6, regions=["eu-west-1"]) as yard:
        yard.sagemaker().limits["CreateTrainingJob"] = Tokens(rate=0.01, burst=1)
        assert [yard.run(place) for place in range(6)] == [ExitCode.DONE] * 6
        assert len(yard.sagemaker().trainings) == 6


def test_a_home_bucket_that_fails_for_a_while_is_waited_for(yard: GridYard) -> None:
    assert yard.run(mishaps=[Mishap("s3:GetObject", times=5, fault=Kind.ERROR)]) == ExitCode.DONE


def test_a_home_bucket_that_fails_for_long_is_left_to_the_next_attempt(
    yard: GridYard, capsys: pytest.CaptureFixture[str]
) -> None:
    assert yard.run(mishaps=[Mishap("s3:GetObject", times=1e9, fault=Kind.UNREACHABLE)]) == ExitCode.AGAIN
    assert "The next attempt goes on" in capsys.readouterr().err
    assert yard.calls("CreateTrainingJob") == 0


def test_a_training_that_cannot_be_described_for_want_of_a_right_ends_for_good(
    yard: GridYard, capsys: pytest.CaptureFixture[str]
) -> None:
    assert yard.run(mishaps=[Mishap(DESCRIBE, fault=Kind.DENIED)]) == ExitCode.FINAL
    assert "sagemaker:DescribeTrainingJob in eu-central-1" in capsys.readouterr().err
    assert yard.aws.s3.read(BUCKET, PREFIX.record(0)) is None


@pytest.mark.parametrize("words", ["Requested resource not found.", "Could not find training job 'arn:aws:x'."])
def test_a_name_that_nobody_has_is_known_by_its_code_whatever_the_words(
    yard: GridYard, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("localaws.services.sagemaker_model.NOT_FOUND", words)
    assert yard.run(attempt=2) == ExitCode.DONE
    assert len(yard.sagemaker().trainings) == 1

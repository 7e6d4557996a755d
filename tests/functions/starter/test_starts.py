"""The starter: an upload starts what its campaign says, once, whatever comes late, twice, out of order or in between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from localaws.model import Refused
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Death, Kind, Mishap
from tests.functions.starter.account import (
    A_DAY_S,
    BUCKET,
    DATA,
    KEY,
    REASON,
    RECEIVES,
    Campaigns,
    campaign,
    start_of,
)

FOLDER = f"s3://{BUCKET}/uploads/drive-eu/monday"
CALLS = ("dynamodb:GetItem", "s3:HeadObject", "stepfunctions:*", "sqs:SendMessage")
"""What the function calls on its way to a start."""


def refuse(there: Campaigns, patch: pytest.MonkeyPatch, code: str) -> None:
    """Step Functions takes no start any more."""

    def start(_: dict[str, Any]) -> dict[str, Any]:
        raise Refused(code, "Invalid State Machine Execution Input")

    patch.setattr(there.aws.states.executions, "start", start)


# What is started


def test_an_upload_starts_its_grid_with_the_folder_in_its_input(there: Campaigns) -> None:
    version = there.upload()
    there.run()
    assert there.begun == [start_of(version)]
    assert there.inputs() == {start_of(version): {"manifest": f"{FOLDER}/manifest.jsonl"}}
    assert (there.mails, there.letters) == ([], [])


@pytest.mark.parametrize(
    ("given", "machine"),
    [
        ({"manifest": "{data}/m.csv"}, GRID_MACHINE),
        ({"query": "select 1"}, GRID_MACHINE),
        ({"template": {}, "objective": "loss"}, SEARCH_MACHINE),
        ({"resume": "tune-7"}, SEARCH_MACHINE),
        ({"code": "{data}/code.tar.gz", "nodes": 2}, MACHINE),
    ],
)
def test_the_input_says_whether_it_is_a_grid_a_search_or_a_job(
    there: Campaigns, given: dict[str, Any], machine: str
) -> None:
    there.deploy({"drive-eu": campaign(**given)})
    version = there.upload()
    there.run()
    assert there.find(start_of(version), machine).status == "RUNNING"
    assert len(there.begun) == 1


def test_the_folder_stands_in_every_text_at_every_depth_and_nothing_else_changes(there: Campaigns) -> None:
    given = {
        "manifest": "{data}/m.csv",
        "defaults": {"environment": {"FROM": "{data}", "TWICE": "{data} {data}"}, "epochs": 3, "data": None},
        "sweep": {"source": ["{data}/a", ["{data}"], 0.5, True]},
        "{data}": "a key is no text",
        "owner": "{date} {{data}}",
    }
    there.deploy({"drive-eu": campaign(**given)})
    there.upload()
    there.run()
    (found,) = there.inputs().values()
    assert found == {
        "manifest": f"{FOLDER}/m.csv",
        "defaults": {"environment": {"FROM": FOLDER, "TWICE": f"{FOLDER} {FOLDER}"}, "epochs": 3, "data": None},
        "sweep": {"source": [f"{FOLDER}/a", [FOLDER], 0.5, True]},
        "{data}": "a key is no text",
        "owner": f"{{date}} {{{FOLDER}}}",
    }


def test_an_object_at_the_root_of_its_bucket_lies_in_the_bucket(there: Campaigns) -> None:
    there.deploy({"drive-eu": campaign(DATA, "drive", "_READY")})
    there.upload("drive_READY", DATA)
    there.run()
    assert list(there.inputs().values()) == [{"manifest": f"s3://{DATA}/manifest.jsonl"}]


@pytest.mark.parametrize("folder", ["a b", "a+b", "a=b,c@d:e", "(1)!*", "x/../y", "x//y", "."])
def test_a_key_is_taken_as_it_is_and_never_decoded(there: Campaigns, folder: str) -> None:
    version = there.upload(f"uploads/drive-eu/{folder}/_READY")
    there.run()
    assert there.inputs() == {
        start_of(version, f"uploads/drive-eu/{folder}/_READY"): {
            "manifest": f"s3://{BUCKET}/uploads/drive-eu/{folder}/manifest.jsonl"
        }
    }


@pytest.mark.parametrize(
    "key",
    [
        "uploads/drive-eu/monday/ready",
        "uploads/drive-us/monday/_READY",
        "uploads/drive-eu_READY",
        "UPLOADS/drive-eu/monday/_READY",
        "jobs/drive/_READY",
    ],
)
def test_an_object_that_no_campaign_names_starts_nothing_and_is_not_even_read(there: Campaigns, key: str) -> None:
    there.upload(key)
    there.run()
    assert (there.begun, there.mails, there.letters, there.aws.queue.messages) == ([], [], [], {})
    assert [one.name for one in there.aws.calls if one.service == "s3"] == []


def test_a_key_of_another_bucket_is_not_taken_for_one_of_the_home_bucket(there: Campaigns) -> None:
    there.upload(KEY, DATA)
    there.run()
    assert there.begun == []


# Once


def test_the_same_event_three_times_is_one_start(there: Campaigns) -> None:
    version = there.upload()
    there.tell(version=version)
    there.run(3600)
    there.tell(version=version)
    there.run()
    assert there.begun == [start_of(version)]
    assert (there.mails, there.letters) == ([], [])


@pytest.mark.parametrize("status", ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_what_was_started_before_is_left_as_it_is_however_it_ended(there: Campaigns, status: str) -> None:
    version = there.upload()
    there.run()
    if status != "RUNNING":
        there.end(start_of(version), status, "TrainingFailed")
    there.tell(version=version)
    there.run()
    assert there.begun == [start_of(version)]
    assert there.find(start_of(version)).status == status


def test_two_uploads_of_which_the_second_is_told_first_are_one_start_of_the_newest(there: Campaigns) -> None:
    first, second = there.write(body=b"1").id, there.write(body=b"2").id
    there.tell(version=second)
    there.run()
    there.tell(version=first)
    there.run()
    assert there.begun == [start_of(second)]


def test_each_upload_that_is_told_before_the_next_one_is_a_start_of_its_own(there: Campaigns) -> None:
    first = there.upload()
    there.run()
    second = there.upload()
    there.run()
    assert there.begun == [start_of(first), start_of(second)]


def test_an_event_of_an_object_that_was_replaced_starts_what_is_there_now(there: Campaigns) -> None:
    there.upload(body=b"old")
    second = there.upload(body=b"new")
    there.run()
    assert there.begun == [start_of(second)]


def test_a_bucket_without_versions_has_the_same_bytes_again_as_a_new_start(there: Campaigns) -> None:
    there.aws.s3.buckets[DATA].versioned = False
    there.deploy({"drive-eu": campaign(DATA)})
    there.upload(bucket=DATA, body=b"same")
    there.tell(bucket=DATA)
    there.run()
    assert len(there.begun) == 1
    there.upload(bucket=DATA, body=b"same")
    there.tell(bucket=DATA)
    there.run()
    assert len(there.begun) == len(set(there.begun)) == 2


@pytest.mark.parametrize("nth", range(1, 6))
def test_two_messages_at_the_same_time_are_one_start(there: Campaigns, nth: int) -> None:
    version = there.write().id
    other = {"Records": [there.aws.queue.put(there.event(version=version), 1e6).record()]}
    there.mishaps = [[Mishap("*", nth, meanwhile=lambda: there.invoke(other))]]
    there.tell(version=version)
    there.run()
    assert there.begun == [start_of(version)]
    assert sum("dynamodb" in one.name for one in there.aws.calls) == 2, "both went their way"


@pytest.mark.parametrize("death", Death)
@pytest.mark.parametrize("nth", range(1, 7))
def test_a_function_that_is_killed_at_any_call_has_started_it_once_in_the_end(
    there: Campaigns, nth: int, death: Death
) -> None:
    there.mishaps = [[Mishap("*", nth, death=death)]]
    version = there.upload()
    there.run(A_DAY_S)
    assert there.begun == [start_of(version)]
    assert (there.mails, there.letters) == ([], [])


def test_the_question_how_it_goes_on_is_sent_before_the_start(there: Campaigns) -> None:
    """A function that is killed between the two leaves a question about nothing; the other way round a refusal would never be told."""
    there.mishaps = [[Mishap("stepfunctions:StartExecution", death=Death.BEFORE)]]
    version = there.upload()
    there.run()
    asked = [json.loads(one.body) for one in there.aws.queue.messages.values() if "check" in one.body]
    assert [one["check"]["execution"].rpartition(":")[2] for one in asked] == [start_of(version)]
    assert there.begun == []


# Late


def test_an_event_that_comes_a_day_late_starts_what_the_settings_say_now(there: Campaigns) -> None:
    version = there.write().id
    there.run(A_DAY_S)
    there.deploy({"drive-eu": campaign(manifest="{data}/other.csv")})
    there.tell(version=version)
    there.run()
    assert there.inputs() == {start_of(version): {"manifest": f"{FOLDER}/other.csv"}}


def test_an_event_of_a_campaign_that_the_settings_no_longer_have_is_dropped(there: Campaigns) -> None:
    version = there.write().id
    there.deploy({})
    there.tell(version=version)
    there.run()
    assert (there.begun, there.mails, there.letters, there.aws.queue.messages) == ([], [], [], {})


def test_an_object_that_is_gone_again_starts_nothing_and_people_are_told(there: Campaigns) -> None:
    version = there.write().id
    there.remove()
    there.tell(version=version)
    there.run()
    assert there.begun == []
    (said,) = there.mails
    assert said == (
        f"campaign drive-eu: s3://{BUCKET}/{KEY} is gone again, so nothing was started; allowed: an object that stays, or a new upload "
        "of it"
    )
    assert there.aws.topics.messages[0][0] == "Trainyard yard: nothing started for _READY"
    assert [one["detail"]["object"]["key"] for one in there.letters] == [KEY]


def test_an_event_of_an_object_that_was_started_and_is_gone_now_changes_nothing(there: Campaigns) -> None:
    version = there.upload()
    there.run()
    there.remove()
    there.tell(version=version)
    there.run()
    assert there.begun == [start_of(version)]


def test_a_letter_that_is_moved_back_when_the_object_is_there_again_starts_it(there: Campaigns) -> None:
    there.write()
    there.remove()
    there.tell()
    there.run()
    (letter,) = there.letters
    version = there.write().id
    there.aws.queue.put(json.dumps(letter))
    there.run()
    assert there.begun == [start_of(version)]


# While nothing can be started


def test_nothing_is_started_while_admission_is_closed_and_once_when_it_is_open(there: Campaigns) -> None:
    there.close()
    version = there.upload()
    there.tell(version=version)
    there.run(3600)
    assert (there.begun, there.mails, there.letters) == ([], [], [])
    there.open()
    there.run(3600)
    assert there.begun == [start_of(version)]
    assert (there.mails, there.letters) == ([], [])


def test_a_day_of_closed_admission_is_a_letter_and_no_start(there: Campaigns) -> None:
    there.close()
    there.upload()
    there.run(A_DAY_S + 3600)
    there.open()
    there.run(A_DAY_S)
    assert there.begun == []
    assert [one["detail"]["object"]["key"] for one in there.letters] == [KEY]


def test_admission_that_is_closed_for_whatever_reason_starts_nothing(
    there: Campaigns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: object) -> str:
        return REASON

    monkeypatch.setattr("aws.state.State.admission_closed", closed)
    there.upload()
    there.run()
    assert {one.service for one in there.aws.calls} == {"sqs"}


@pytest.mark.parametrize("fault", [Kind.THROTTLED, Kind.ERROR, Kind.ERROR_AFTER, Kind.LOST, Kind.UNREACHABLE])
@pytest.mark.parametrize("call", CALLS)
def test_a_service_that_is_away_for_an_hour_loses_no_upload(there: Campaigns, call: str, fault: Kind) -> None:
    away = [Mishap(call, times=1000, fault=fault)]
    there.mishaps = [away] * 6
    version = there.upload()
    there.run(3 * 3600)
    assert there.begun == [start_of(version)]
    assert (there.mails, there.letters) == ([], [])


def test_a_service_that_denies_for_a_day_is_a_letter(there: Campaigns) -> None:
    there.mishaps = [[Mishap("stepfunctions:StartExecution", times=1000, fault=Kind.DENIED)]] * 1000
    there.upload()
    there.run(A_DAY_S + 3600)
    assert there.begun == []
    assert [one["detail"]["object"]["key"] for one in there.letters] == [KEY]


def test_a_machine_that_a_deploy_has_not_made_yet_is_waited_for(there: Campaigns) -> None:
    there.aws.states.executions.machines.discard(GRID_MACHINE)
    version = there.upload()
    there.run(3600)
    assert (there.begun, there.mails, there.letters) == ([], [], [])
    there.aws.states.executions.machines.add(GRID_MACHINE)
    there.run(3600)
    assert there.begun == [start_of(version)]


# What is refused


@pytest.mark.parametrize("code", ["InvalidExecutionInput", "InvalidName", "ValidationException"])
def test_an_input_that_step_functions_does_not_take_is_told_once_and_is_a_letter(
    there: Campaigns, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    refuse(there, monkeypatch, code)
    there.upload()
    there.run(A_DAY_S)
    (said,) = there.mails
    assert said.startswith("campaign drive-eu: Step Functions does not take its input (")
    assert code in said
    assert said.endswith("; allowed: the input of a grid (campaigns in cdk.json)")
    assert len(there.letters) == 1


def test_a_bucket_that_may_not_be_read_is_told_and_is_a_letter(there: Campaigns) -> None:
    there.aws.s3.buckets[DATA].forbidden = ("",)
    there.deploy({"drive-eu": campaign(DATA)})
    there.upload(bucket=DATA)
    there.run()
    (said,) = there.mails
    assert said == (
        f"campaign drive-eu: s3://{DATA}/{KEY} cannot be read (S3 answers 403); allowed: an object that the deployment may read"
    )
    assert (there.begun, len(there.letters)) == ([], 1)


def test_a_bucket_that_is_gone_is_told_and_is_a_letter(there: Campaigns) -> None:
    there.deploy({"drive-eu": campaign("no-such-bucket")})
    there.tell(bucket="no-such-bucket")
    there.run()
    assert (there.begun, len(there.mails), len(there.letters)) == ([], 1, 1)


@pytest.mark.parametrize(
    "name",
    ['a"b', "a'b", "a\nb", "a\\b", "ä", "a%20b", "a$b", "{data}", "a\u202eb", "a\tb", "a&b", "a;b", "<a>", "a`b"],
)
def test_a_key_that_could_mean_something_in_an_input_starts_nothing_and_is_told(there: Campaigns, name: str) -> None:
    there.upload(f"uploads/drive-eu/{name}/_READY")
    there.run()
    assert there.begun == []
    (said,) = there.mails
    assert "has other characters than may stand in an input; allowed: letters, digits, spaces and ! _" in said
    assert "\n" not in said
    assert "\u202e" not in said
    assert len(there.letters) == 1


def test_of_two_campaigns_that_an_object_starts_each_starts_its_own(there: Campaigns) -> None:
    there.deploy({"drive-eu": campaign(), "all": campaign(prefix="uploads/", code="{data}/code.tar.gz")})
    version = there.upload()
    there.run()
    assert sorted(there.begun) == sorted([start_of(version), start_of(version, name="all")])


def test_of_two_campaigns_the_one_that_is_refused_keeps_the_other_from_nothing(
    there: Campaigns, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.deploy({"all": campaign(prefix="uploads/", code="{data}/code.tar.gz"), "drive-eu": campaign()})
    honest = there.aws.states.executions.start

    def start(params: dict[str, Any]) -> dict[str, Any]:
        if params["stateMachineArn"] == MACHINE:
            raise Refused("InvalidExecutionInput", "no")
        return honest(params)

    monkeypatch.setattr(there.aws.states.executions, "start", start)
    version = there.upload()
    there.run()
    assert there.begun == [start_of(version)]
    (said,) = there.mails
    assert said.startswith("campaign all: ")
    assert "drive-eu: " not in said
    assert len(there.letters) == 1


def test_two_refusals_of_one_object_are_one_message(there: Campaigns) -> None:
    there.deploy({"drive-eu": campaign(), "all": campaign(prefix="uploads/")})
    there.tell()
    there.run()
    (said,) = there.mails
    assert ("campaign drive-eu: " in said, "campaign all: " in said) == (True, True)
    assert len(there.letters) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no json",
        "7",
        "null",
        "[]",
        "{}",
        '"check"',
        '["check"]',
        '{"check": 7}',
        '{"check": {"execution": "x"}}',
        '{"check": {"execution": "x", "number": "many"}}',
        '{"detail": []}',
        '{"detail": {"bucket": {"name": "b"}, "object": null}}',
        "[" * 100_000,
    ],
)
def test_a_message_that_names_nothing_becomes_a_letter_after_its_tries(there: Campaigns, body: str) -> None:
    there.aws.queue.put(body)
    there.run(A_DAY_S + 3600)
    assert (there.begun, there.mails) == ([], [])
    (letter,) = there.aws.queue.dead
    assert (letter.body, letter.received) == (body, RECEIVES)


def test_a_message_that_cannot_be_read_keeps_no_other_from_being_read(there: Campaigns) -> None:
    there.aws.queue.put("no json")
    version = there.upload()
    there.run()
    assert there.begun == [start_of(version)]


def test_nothing_is_ever_stopped_deleted_or_written_by_the_function(
    there: Campaigns, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.upload()
    there.run(3600)
    refuse(there, monkeypatch, "InvalidExecutionInput")
    there.upload()
    there.run(3600)
    assert set(there.aws.changes) <= {
        *("stepfunctions:StartExecution", "sqs:SendMessage", "sqs:ChangeMessageVisibility", "sns:Publish")
    }

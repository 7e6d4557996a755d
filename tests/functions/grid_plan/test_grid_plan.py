"""Plan through its function and real boto3 clients: what lines become, where they run, and what a repeat does."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from aws.service_models import training_model
from contract import keys, tags
from contract.errors import InvalidRequest
from contract.grid import GridPrefix, training_name
from contract.metric_values import write_expression
from tests.fakes.wire import Call
from tests.functions.grid_plan.account import INPUT, Account, account, line, plan, planned
from tools.refusals.grids.yard import ACCOUNT, BUCKET, DATA, DEFAULTS, bytes_bucket, execution

TWO = "eu-central-1,s3://data-eu/train/\nus-east-1,s3://data-us/train/\n"


def test_a_plain_file_of_two_columns_just_works(there: Account) -> None:
    there.upload(TWO)
    assert plan(INPUT) == {
        "grid": "sweep-7",
        "lines": 2,
        "regions": {"eu-central-1": 1, "us-east-1": 1},
        "arrays": [{"first": 0, "size": 2}],
        "cost_at_most_usd": round(24 * (1.75 + 1.4), 2),
        "warnings": [],
    }


@pytest.mark.parametrize(
    "manifest",
    [
        b"\xef\xbb\xbf" + TWO.encode(),
        TWO.replace("\n", "\r\n").encode(),
        TWO.rstrip().encode(),
        b"# ours\n\n" + TWO.replace("\n", "\n\n  # next\n").encode(),
        b"region,s3_location\n" + TWO.encode(),
        b"Region, S3_Location\r\n" + TWO.replace(",", " , ").encode(),
        b"s3_location,region\ns3://data-eu/train/,eu-central-1\ns3://data-us/train/,us-east-1\n",
        b'"eu-central-1","s3://data-eu/train/"\nus-east-1,"s3://data-us/train/"\n,\n',
        (line() + "# comment\n\n" + line(region="us-east-1", data=["s3://data-us/train/"])).encode(),
        (
            line(s3_location="s3://data-eu/train/", data=None) + line(region="us-east-1", data="s3://data-us/train/")
        ).encode(),
    ],
    ids=["mark", "CRLF", "no last line end", "comments", "header", "spaces", "order", "quotes", "JSON", "synonym"],
)
def test_every_spelling_of_the_same_manifest_is_the_same_plan(there: Account, manifest: bytes) -> None:
    found = planned(there, manifest)
    assert [
        (one.region, one.request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"]) for one in found
    ] == [("eu-central-1", "s3://data-eu/train/"), ("us-east-1", "s3://data-us/train/")]


def test_one_line_is_a_plain_job(there: Account) -> None:
    there.upload(TWO.split("\n")[0])
    assert plan(INPUT)["arrays"] == [{"first": 0, "size": 1}]


def test_a_line_keeps_its_number_in_the_file(there: Account) -> None:
    assert [one.line for one in planned(there, "# a comment\n\n" + TWO)] == [3, 4]


def test_the_request_is_one_that_sagemaker_takes_and_holds_what_the_line_says(there: Account) -> None:
    (found,) = planned(
        there,
        line(
            channels={"validation": {"data": "s3://data-eu/train/", "mode": "FastFile", "sharded": True}},
            hyperparameters={"lr": 0.1, "name": "a", "layers": [1, 2], "flag": True},
            environment={"SEED": "1"},
            market="spot",
            max_hours=2,
            max_wait_hours=5,
            instance_count=2,
            metrics={"loss": write_expression("loss")},
            tags={"cost-center": "42"},
            kms_key="alias/ours",
            network_isolation=True,
            encrypt_traffic=True,
            arguments=["--fast"],
        ),
        owner="jo",
    )
    request = found.request
    assert training_model.problems(request) == []
    assert request["TrainingJobName"] == training_name("yard", execution()["arn"], execution()["started_at"], 0)
    assert request["HyperParameters"] == {"lr": "0.1", "name": "a", "layers": "[1, 2]", "flag": "true"}
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 7200, "MaxWaitTimeInSeconds": 18_000}
    assert request["EnableManagedSpotTraining"] is True
    assert (
        request["AlgorithmSpecification"]["TrainingImage"]
        == f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/yard/images:v1"
    )
    assert request["OutputDataConfig"] == {
        "S3OutputPath": f"s3://{bytes_bucket('eu-central-1')}/grids/sweep-7/00000000",
        "KmsKeyId": "alias/ours",
    }
    assert request["CheckpointConfig"]["S3Uri"].endswith("/grids/sweep-7/00000000/checkpoints")
    assert [(one["ChannelName"], one["InputMode"]) for one in request["InputDataConfig"]] == [
        ("training", "File"),
        ("validation", "FastFile"),
    ]
    told = {one["Key"]: one["Value"] for one in request["Tags"]}
    assert told == {
        "cost-center": "42",
        tags.DEPLOYMENT: "yard",
        tags.GRID: "sweep-7",
        tags.LINE: "0",
        tags.EXECUTION: execution()["arn"],
        tags.OWNER: "jo",
    }
    assert found.hourly_usd == pytest.approx(3.5)


@pytest.mark.parametrize("key", ["", "alias/yard-region"])
def test_models_are_written_under_the_deployments_key_where_it_has_one_and_a_line_names_no_other(
    there: Account, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    if key:
        monkeypatch.setenv("TRAINYARD_OUTPUT_KEY", key)
    found = [one.request for one in planned(there, line() + line(kms_key="alias/ours"))]
    assert [one["OutputDataConfig"].get("KmsKeyId", "") for one in found] == [key, "alias/ours"]
    assert [training_model.problems(one) for one in found] == [[], []]


def test_a_training_has_the_tags_of_the_settings_and_a_line_may_give_one_another_value(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_TAGS", '{"CostCenter":"4711","team":"vision"}')
    plain, other = planned(there, line() + line(tags={"CostCenter": "42", "run": "a"}))
    found = [{one["Key"]: one["Value"] for one in each.request["Tags"]} for each in (plain, other)]
    further = [{key: value for key, value in each.items() if not key.startswith(tags.RESERVED)} for each in found]
    assert further == [{"CostCenter": "4711", "team": "vision"}, {"CostCenter": "42", "team": "vision", "run": "a"}]
    assert [training_model.problems(one.request) for one in (plain, other)] == [[], []]


def test_tags_of_a_line_and_of_the_settings_together_are_refused_beyond_what_sagemaker_takes(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_TAGS", '{"CostCenter":"4711"}')
    assert len(planned(there, line(tags={f"t{number}": "1" for number in range(44)}))[0].request["Tags"]) == 50
    there.upload(line(tags={f"t{number}": "1" for number in range(45)}))
    with pytest.raises(InvalidRequest, match=r"line 1: tags: are 46 with those of the settings .*; allowed: up to 45"):
        plan(INPUT, execution("more"))


@pytest.mark.parametrize(
    "value", ['a "quoted" one', "two\nlines", "{% $states.input %}", "אבג ‮abc", "'; rm -rf /", "a,b;c"]
)
def test_values_travel_unchanged(there: Account, value: str) -> None:
    quoted = value.replace('"', '""')
    csv = f'region,data,hp.text,env.TEXT\neu-central-1,s3://data-eu/train/,"{quoted}","{quoted}"\n'
    (by_csv,) = planned(there, csv)
    assert by_csv.request["HyperParameters"]["text"] == by_csv.request["Environment"]["TEXT"] == value
    there.upload(line(hyperparameters={"text": value}))
    plan(INPUT, execution("json"))
    (by_json,) = there.lines("json")
    assert by_json.request["HyperParameters"]["text"] == value


def test_a_cell_may_hold_blank_lines_and_what_looks_like_a_comment(there: Account) -> None:
    (found,) = planned(there, 'region,data,hp.a\neu-central-1,s3://data-eu/train/,"1\n\n# 2\n"\n')
    assert found.request["HyperParameters"]["a"] == "1\n\n# 2\n"


def test_mpi_and_torchrun_are_what_sagemakers_own_containers_read(there: Account) -> None:
    mpi, torchrun = planned(
        there, line(distribution="mpi", processes_per_host=8, mpi_options="-x A=1") + line(distribution="torchrun")
    )
    assert mpi.request["HyperParameters"] == {
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "8",
        "sagemaker_mpi_custom_mpi_options": '"-x A=1"',
    }
    assert torchrun.request["HyperParameters"] == {
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_instance_type": '"ml.g5.xlarge"',
    }


def test_defaults_hold_where_a_line_says_nothing(there: Account) -> None:
    defaults = DEFAULTS | {"hyperparameters": {"lr": "1", "depth": "2"}, "market": "spot", "max_wait_hours": 30}
    first, second = planned(there, line(hyperparameters={"lr": "3"}) + line(market="on-demand"), defaults=defaults)
    assert first.request["HyperParameters"] == {"lr": "3", "depth": "2"}
    assert first.request["StoppingCondition"]["MaxWaitTimeInSeconds"] == 30 * 3600
    assert "MaxWaitTimeInSeconds" not in second.request["StoppingCondition"]


def test_a_sweep_is_a_training_for_every_combination(there: Account) -> None:
    found = planned(there, line(sweep={"lr": [0.1, 0.01]}) + line(volume_gb=40), sweep={"depth": [18, 50]})
    assert [(one.line, one.request["HyperParameters"]) for one in found] == [
        (1, {"depth": "18", "lr": "0.1"}),
        (1, {"depth": "18", "lr": "0.01"}),
        (1, {"depth": "50", "lr": "0.1"}),
        (1, {"depth": "50", "lr": "0.01"}),
        (2, {"depth": "18"}),
        (2, {"depth": "50"}),
    ]


def test_lines_can_be_started_again_from_their_sources_with_the_same_input(there: Account) -> None:
    given = {"sweep": {"lr": [0.1, 0.01]}, "defaults": DEFAULTS | {"volume_gb": 50}}
    before = planned(there, "auto,s3://data-eu/train/ s3://data-us/train/\n", **given)
    there.upload("".join(json.dumps(one.source) + "\n" for one in before))
    plan(INPUT | given, execution("again"))
    after = there.lines("again")
    assert [one.source for one in after] == [one.source for one in before]
    assert [one.request["HyperParameters"] for one in after] == [one.request["HyperParameters"] for one in before]


def test_auto_is_the_cheapest_region_that_has_the_data_and_the_plan_says_why(there: Account) -> None:
    there.pretend("data-eu", "train/part-0", 50 * 10**9)
    everywhere, only_home = planned(
        there, "auto,s3://data-eu/train/ s3://data-ap/train/ s3://data-us/train/\nauto,s3://data-eu/train/\n"
    )
    assert (everywhere.region, only_home.region) == ("us-east-1", "eu-central-1")
    assert everywhere.why == (
        "the least an hour where the data and the image are: eu-central-1 $1.75, us-east-1 $1.40, ap-south-1 $2.10"
    )
    assert only_home.why == (
        "the only region where the data and the image are; us-east-1 would cost $1.40 an hour and save up to $8.40 in 24 h, "
        "moving the data there from eu-central-1 costs $1.00 once (50.0 GB at $0.02/GB)"
    )
    assert everywhere.request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://data-us/train/"


def test_auto_without_data_is_the_cheapest_region_with_the_image_and_of_equal_ones_the_first(there: Account) -> None:
    manifest = '{"region": "auto"}\n'
    assert planned(there, manifest)[0].region == "us-east-1"
    there.ecr["us-east-1"].repositories[ACCOUNT, "yard/images"].clear()
    plan(INPUT, execution("b"))
    assert there.lines("b")[0].region == "us-west-2"
    there.prices.trainings.clear()
    plan(INPUT, execution("c"))
    assert there.lines("c")[0].region == "eu-central-1"
    assert "no price is known" in there.lines("c")[0].why


def test_an_unknown_price_is_a_warning_and_no_cost(there: Account) -> None:
    there.prices.trainings.clear()
    there.upload(TWO)
    answer = plan(INPUT)
    assert answer["cost_at_most_usd"] is None
    assert [one.partition(":")[0] for one in answer["warnings"]] == ["line 1", "line 2"]


def test_slots_count_in_each_region(there: Account) -> None:
    found = planned(there, TWO * 3, allow_duplicates=True)
    assert [one.slot for one in found] == [0, 0, 1, 1, 2, 2]


def test_a_repeat_of_the_step_gives_the_same_answer_and_changes_nothing(there: Account) -> None:
    there.upload(TWO)
    answer, before = plan(INPUT), there.lines()
    there.calls.clear()
    there.upload("us-west-2,s3://data-west/train/\n")
    assert plan(INPUT) == answer
    assert there.changes == []
    assert there.lines() == before


def test_a_repeat_after_a_death_writes_the_same_lines_whatever_prices_and_manifest_are_by_then(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = "auto,s3://data-eu/train/ s3://data-us/train/\n"
    there.upload(manifest)
    honest = there.s3.answer

    def dies(call: Call) -> dict[str, Any]:
        if call.operation == "PutObject" and call.params["Key"] == GridPrefix("sweep-7").description:
            raise KeyboardInterrupt
        return honest(call)

    monkeypatch.setattr(there.s3, "answer", dies)
    with pytest.raises(KeyboardInterrupt):
        plan(INPUT)
    monkeypatch.setattr(there.s3, "answer", honest)
    written = there.s3.read(BUCKET, GridPrefix("sweep-7").lines(0))
    there.prices.trainings["ml.g5.xlarge"] = 99.0
    there.upload("us-west-2,s3://data-west/train/\n")
    assert plan(INPUT)["regions"] == {"us-east-1": 1}
    assert there.s3.read(BUCKET, GridPrefix("sweep-7").lines(0)) == written


def test_the_plan_stands_only_once_all_its_lines_do(there: Account) -> None:
    there.upload(TWO)
    plan(INPUT)
    written = [
        call.params["Key"] if call.service == "s3" else call.params["Item"]["sk"]["S"]
        for call in there.calls
        if call.operation in ("PutObject", "PutItem")
    ]
    prefix, regions = GridPrefix("sweep-7"), ("eu-central-1", "us-east-1")
    assert written == [
        prefix.facts,
        prefix.lines(0),
        *regions,
        prefix.description,
    ]  # the reaper looks there before anything runs


def test_the_version_that_was_planned_is_remembered(there: Account) -> None:
    there.upload(TWO)
    plan(INPUT)
    manifest = there.grid().manifest
    newest = there.s3.buckets[BUCKET].newest(f"{keys.UPLOADS}manifest")
    assert newest is not None
    assert (manifest.version, manifest.etag) == (newest.id, newest.etag)


def test_the_left_over_lines_of_an_earlier_grid_are_a_manifest(there: Account) -> None:
    there.s3.write(BUCKET, GridPrefix("old").failed, line().encode())
    assert plan(INPUT | {"manifest": f"s3://{BUCKET}/{GridPrefix('old').failed}"})["lines"] == 1


def _many(lines: int) -> str:
    names = list(DATA)
    rows = [f"{DATA[names[n % 4]]},s3://{names[n % 4]}/train/,{n}\n" for n in range(lines)]
    return "region,s3_location,hp.seed\n" + "".join(rows)


@pytest.mark.at_length
def test_ten_thousand_and_one_lines_are_two_arrays_and_ask_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with account(monkeypatch, max_lines=100_000) as there:
        there.upload(_many(10_001))
        answer = plan(INPUT)
        assert answer["arrays"] == [{"first": 0, "size": 5001}, {"first": 5001, "size": 5000}]
        assert sorted(answer["regions"].values()) == [2500, 2500, 2500, 2501]
        for operation in ("HeadBucket", "GetProducts", "BatchGetImage", "ListObjectsV2"):
            assert len(there.calls_of(operation)) == len(DATA), operation
        assert len(there.calls_of("PutObject")) == 103
        assert len(there.calls_of("PutItem")) == len(DATA)


def test_memory_is_bounded_however_many_lines_there_are(there: Account) -> None:
    there.keep_calls = False
    peaks = []
    for name, lines in (("models-are-read", 10), ("few", 200), ("many", 800)):
        there.upload(_many(lines))
        tracemalloc.start()
        try:
            plan(INPUT, execution(name))
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        there.s3.buckets[BUCKET].objects.clear()
        peaks.append(peak - held)  # the fake keeps what was written
    assert peaks[2] < 2 * peaks[1]
    assert peaks[2] < 16e6


def test_every_planned_request_fits_sagemakers_model(there: Account) -> None:
    for found in planned(there, TWO + "auto,s3://data-west/train/\n"):
        assert training_model.problems(found.request) == []
        assert found.training == found.request["TrainingJobName"]


def test_the_model_check_can_fail(there: Account) -> None:
    (found,) = planned(there, TWO.split("\n")[0])
    wrong = replace(
        found, request=found.request | {"TrainingJobName": "-x", "RetryStrategy": {"MaximumRetryAttempts": 31}}
    )
    assert {one.partition(" ")[0] for one in training_model.problems(wrong.request)} == {
        "TrainingJobName",
        "RetryStrategy.MaximumRetryAttempts",
    }
    assert training_model.problems({"TrainingJobName": 1})


def test_a_line_goes_on_from_the_checkpoints_of_a_grid_that_has_ended(there: Account) -> None:
    folder = f"s3://{bytes_bucket('eu-central-1')}/{GridPrefix('old').checkpoints(1)}"
    (found,) = planned(there, line(checkpoint=folder))
    assert found.request["CheckpointConfig"]["S3Uri"] == folder


def test_a_line_gets_no_checkpoints_of_the_grid_that_it_belongs_to(there: Account) -> None:
    folder = f"s3://{bytes_bucket('eu-central-1')}/{GridPrefix('sweep-7').checkpoints(1)}"
    with pytest.raises(InvalidRequest, match="to a grid that has not ended"):
        planned(there, line(checkpoint=folder))

"""The benchmark of submissions, without its clock: what its server takes, what counts as the same request, and its bounds."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from benchmarks.submission import plan
from benchmarks.submission.results import CHILD, HEAD, SDK, Run, broken, differences, rows
from benchmarks.submission.server import Server, unfit
from localaws.testing.waiting import HANG_S

ROOT = Path(__file__).parents[2]
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1}, s3={"addressing_style": "path"})
FAST, SLOW = Run(0.3, 70.0, 4), Run(1.8, 226.0, 0)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        fetch_json(found, "/begin/0")
        yield found
        found.shutdown()
        thread.join()


def fetch_json(server: Server, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=HANG_S) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def client(server: Server, service: str, **more: Any) -> Any:
    made: Any = boto3.client
    keys = {"aws_access_key_id": "benchmark", "aws_secret_access_key": "benchmark"}
    place = {"endpoint_url": f"http://127.0.0.1:{server.server_port}", "region_name": plan.REGION}
    return made(service, config=ONCE.merge(Config(**more)), **keys, **place)


def test_a_submission_is_accepted_and_remembered(server: Server) -> None:
    arn = client(server, "sagemaker").create_training_job(**plan.wanted())["TrainingJobArn"]
    seen = fetch_json(server, "/seen")
    assert arn.startswith(f"arn:aws:sagemaker:{plan.REGION}:")
    assert (seen["request"], seen["before"]) == (plan.wanted(), 0)
    assert seen["accepted"] > 0


def test_a_submission_that_does_not_fit_the_model_is_refused_and_does_not_count(server: Server) -> None:
    without_role = {name: value for name, value in plan.wanted().items() if name != "RoleArn"}
    with pytest.raises(ClientError, match=r"Missing required parameter.*RoleArn"):
        client(server, "sagemaker", parameter_validation=False).create_training_job(**without_role)
    assert fetch_json(server, "/seen")["request"] == {}


def test_what_was_submitted_is_over_at_the_first_look(server: Server) -> None:
    sagemaker, name = client(server, "sagemaker"), plan.wanted()["TrainingJobName"]
    with pytest.raises(ClientError, match="Requested resource not found"):
        sagemaker.describe_training_job(TrainingJobName=name)
    sagemaker.create_training_job(**plan.wanted())
    found = sagemaker.describe_training_job(TrainingJobName=name)
    assert (found["TrainingJobStatus"], bool(found["ModelArtifacts"])) == ("Completed", True)


def test_a_second_submission_is_refused(server: Server) -> None:
    sagemaker = client(server, "sagemaker")
    sagemaker.create_training_job(**plan.wanted())
    with pytest.raises(ClientError, match="one was created before"):
        sagemaker.create_training_job(**plan.wanted())


def test_an_operation_that_no_submission_needs_is_refused(server: Server) -> None:
    with pytest.raises(ClientError, match="UnknownOperationException"):
        client(server, "sagemaker").list_models()


def test_what_is_not_in_the_bucket_is_not_found(server: Server) -> None:
    with pytest.raises(ClientError, match="NoSuchKey"):
        client(server, "s3").get_object(Bucket=plan.BUCKET, Key="grids/another/grid.json")


def test_a_record_is_written_once(server: Server) -> None:
    s3 = client(server, "s3")
    s3.put_object(Bucket=plan.BUCKET, Key="a", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=plan.BUCKET, Key="a", Body=b"2", IfNoneMatch="*")
    assert s3.get_object(Bucket=plan.BUCKET, Key="a")["Body"].read() == b"1"


def test_a_new_account_has_the_plan_and_nothing_of_the_last_run(server: Server) -> None:
    client(server, "sagemaker").create_training_job(**plan.wanted())
    told = fetch_json(server, "/begin/0")
    assert (told["wanted"], told["variables"]) == (plan.wanted(), plan.variables())
    assert fetch_json(server, "/seen")["calls"] == {}


def test_telemetry_meets_a_refusal(server: Server) -> None:
    tunnel = urllib.request.Request("http://example.com", method="CONNECT")
    tunnel.set_proxy(f"127.0.0.1:{server.server_port}", "http")
    with pytest.raises(urllib.error.HTTPError, match="501"):
        urllib.request.urlopen(tunnel, timeout=HANG_S)


def test_what_plan_makes_fits_the_model_and_an_unknown_argument_does_not() -> None:
    assert unfit(plan.wanted()) == ""
    assert "Colour" in unfit(plan.wanted() | {"Colour": "red"})


def test_switches_that_are_off_and_a_profiler_that_is_off_may_be_left_out() -> None:
    sent = {name: value for name, value in plan.wanted().items() if value is not False}
    assert differences(plan.wanted(), plan.wanted()) == []
    assert differences(sent | {"ProfilerConfig": {"DisableProfiler": True}}, plan.wanted()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"RoleArn": "arn:aws:iam::123456789012:role/another"},
        {"HyperParameters": {}},
        {"InputDataConfig": []},
        {"EnableManagedSpotTraining": True},
        {"ProfilerConfig": {"DisableProfiler": False}},
        {"DebugHookConfig": {"S3OutputPath": "s3://bucket"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_request_is_not_the_same(change: dict[str, Any]) -> None:
    found = differences(plan.wanted() | change, plan.wanted())
    assert len(found) == 1
    assert found[0].startswith(next(iter(change)))


def test_what_is_not_sent_at_all_is_missed() -> None:
    assert len(differences({}, {"RoleArn": "a", "EnableNetworkIsolation": False})) == 1


def test_the_table_has_medians_of_each_and_how_they_compare() -> None:
    runs = {CHILD: [FAST, replace(FAST, seconds=0.2), replace(FAST, seconds=9.0)], SDK: [SLOW] * 3}
    child, sdk, compared = rows("at once", runs)
    assert child == f"| at once | {CHILD} | 0.300 s | 0.200 s | 9.000 s | 70 MB | 4 |"
    assert sdk == f"| at once | {SDK} | 1.800 s | 1.800 s | 1.800 s | 226 MB | 0 |"
    assert "**6.0 x**" in compared
    assert "**3.2 x**" in compared
    assert {line.count("|") for line in (*HEAD, child, sdk, compared)} == {8}


def test_bounds_that_hold_are_not_broken() -> None:
    assert broken("at once", {CHILD: [Run(1.0, 10.0, 0)], SDK: [Run(5.0, 30.0, 0)]}) == []


def test_a_child_that_is_not_fast_enough_or_not_small_enough_breaks_a_bound() -> None:
    slow, large = Run(0.361, 70.0, 4), Run(0.3, 75.5, 4)
    assert [
        problem.split(",")[0] for one in (slow, large) for problem in broken("at once", {CHILD: [one], SDK: [SLOW]})
    ] == ["answers at once: the child is 4.99 times as fast", "answers at once: the child is 2.99 times as small"]


def test_the_childs_environment_has_the_services_of_its_image() -> None:
    image = re.findall(r"! -name (\w+)", (ROOT / "grid_child" / "Dockerfile").read_text())
    rule = (ROOT / "Makefile").read_text().partition("build/child-env/ready:")[2].partition("\n\n")[0]
    assert re.findall(r"! -name (\w+)", rule) == image != []

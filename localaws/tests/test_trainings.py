"""SageMaker's stand-in: the states, the container contract and the ends of trainings that AWS documents."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.containers.unpacked import COPIED
from localaws.services import sagemaker
from localaws.services.sagemaker_run import Run
from localaws.testing.calm import meanwhile
from localaws.testing.grid import AWAY, HOME, Grid, at_rest, create, faults, refused, trained_here
from localaws.testing.waiting import until
from localaws.tests.archives import tarred

pytestmark = pytest.mark.rehearsal


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with trained_here(tmp_path_factory.mktemp("images")) as made:
        yield made


def test_a_training_goes_through_the_states_and_leaves_what_the_contract_says(grid: Grid) -> None:
    create(grid, "whole", hyper={"steps": 4, "rate": 0.5, "name": "two words"}, count=2)
    early = grid.training("whole")
    assert early["TrainingJobStatus"] == "InProgress"
    assert not {"ModelArtifacts", "FinalMetricDataList", "TrainingEndTime", "BillableTimeInSeconds"} & set(early)
    ended = grid.ended("whole")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Completed", None)
    assert grid.path(ended) == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert [(one["MetricName"], one["Value"]) for one in ended["FinalMetricDataList"]] == [("loss", 0.25)]
    assert ended["BillableTimeInSeconds"] == ended["TrainingTimeInSeconds"] >= 1
    address = ended["ModelArtifacts"]["S3ModelArtifacts"]
    assert address == "s3://bytes-eu-central-1/out/whole/output/model.tar.gz"
    assert files(grid, "out/whole/output/model.tar.gz") == {"algo-1": "4", "algo-2": "4"}
    config = json.loads(files(grid, "out/whole/output/output.tar.gz")["config.json"])
    assert (config["hosts"], config["current_host"]) == (["algo-1", "algo-2"], "algo-2")
    log = grid.log("/aws/sagemaker/TrainingJobs", "whole/algo-1-")
    assert log[0] == COPIED
    assert log[1] == "begins at 0 with ['a.csv'] ['--name', 'two words', '--rate', '0.5', '--steps', '4']"
    assert log[-1] == "loss=0.250"


def files(grid: Grid, key: str, region: str = HOME) -> dict[str, str]:
    body = grid.aws.client("s3", region).get_object(Bucket=f"bytes-{region}", Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return {one.name: reader.read().decode() for one in archive if (reader := archive.extractfile(one))}


def test_an_image_with_an_entry_point_is_given_the_word_train(grid: Grid) -> None:
    create(grid, "own", image="own")
    assert grid.ended("own")["TrainingJobStatus"] == "Completed"
    assert grid.log("/aws/sagemaker/TrainingJobs", "own/")[1].endswith("['a.csv'] ['train']")


def test_a_name_is_free_in_the_other_region_and_never_again_in_its_own(grid: Grid) -> None:
    create(grid, "twice")
    create(grid, "twice", AWAY)
    assert grid.ended("twice")["TrainingJobStatus"] == grid.ended("twice", AWAY)["TrainingJobStatus"] == "Completed"
    assert refused(grid, **grid.request("twice")).startswith("ResourceInUse: ")


def test_a_stopped_training_gets_its_sigterm_and_keeps_what_it_had(grid: Grid) -> None:
    create(grid, "stopped", hyper={"steps": 10_000, "pause": 0.05})
    grid.reaches("stopped", "Training")
    until(lambda: run_of("stopped").training.metrics)
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stopped")
    ended = grid.ended("stopped")
    assert (ended["TrainingJobStatus"], grid.path(ended)[-2:]) == ("Stopped", ["Stopping", "Stopped"])
    assert ended["ModelArtifacts"]["S3ModelArtifacts"]
    with pytest.raises(ClientError, match="status Stopped"):
        grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stopped")


def run_of(name: str) -> Run:
    (found,) = (one for one in sagemaker.trainings() if one.training.name == name)
    return found


def test_one_that_does_not_hear_sigterm_is_killed_with_everything_it_started(grid: Grid) -> None:
    create(grid, "stubborn", hyper={"steps": 10_000, "pause": 0.05, "stubborn": True})
    grid.reaches("stubborn", "Training")
    until(lambda: run_of("stubborn").containers)
    pids = [one.pid for one in run_of("stubborn").containers]
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stubborn")
    assert grid.ended("stubborn")["TrainingJobStatus"] == "Stopped"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_one_that_is_stopped_before_it_has_instances_never_begins(grid: Grid) -> None:
    with meanwhile(grid.aws, training_start_s=(4000.0, 4000.0)):
        create(grid, "early")
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="early")
    ended = grid.ended("early")
    assert (ended["TrainingJobStatus"], "TrainingStartTime" in ended) == ("Stopped", False)


def test_a_failure_is_told_in_the_programs_own_words(grid: Grid) -> None:
    create(grid, "fails", hyper={"fails": "no gradient"}, count=2)
    create(grid, "dies", hyper={"dies": True})
    reasons = [grid.ended(name)["FailureReason"] for name in ("fails", "dies")]
    assert reasons[0] == "AlgorithmError: no gradient, exit code: 3"
    assert reasons[1].startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 1")
    assert "the last words" in reasons[1]


def test_beyond_its_longest_run_it_is_stopped(grid: Grid) -> None:
    create(grid, "long", hyper={"steps": 10_000, "pause": 0.05}, StoppingCondition={"MaxRuntimeInSeconds": 400})
    ended = grid.ended("long")
    assert (ended["TrainingJobStatus"], ended["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_an_interrupted_spot_training_goes_on_from_its_checkpoint(grid: Grid) -> None:
    spot: dict[str, Any] = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 36000, "MaxWaitTimeInSeconds": 72000},
        "CheckpointConfig": {"S3Uri": f"s3://bytes-{HOME}/checkpoints/spot"},
    }
    with faults(grid, "spot-interrupted:after=300"):
        create(grid, "spot", hyper={"steps": 40, "pause": 0.05}, **spot)
        ended = grid.ended("spot")
    assert ended["TrainingJobStatus"] == "Completed"
    path = grid.path(ended)
    assert path[path.index("Interrupted") :][:4] == ["Interrupted", "Starting", "Downloading", "Training"]
    begun = [line.split()[2] for line in grid.log("/aws/sagemaker/TrainingJobs", "spot/") if line.startswith("begins")]
    assert begun[0] == "0"
    assert int(begun[1]) > 0
    assert ended["BillableTimeInSeconds"] < ended["TrainingTimeInSeconds"]


def test_data_of_another_region_cannot_be_downloaded(grid: Grid) -> None:
    request = grid.request("abroad")
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] = f"s3://bytes-{AWAY}/data/"
    at_rest(HOME)
    grid.aws.client("sagemaker", HOME).create_training_job(**request)
    assert "The bucket is in this region: us-east-1" in grid.ended("abroad")["FailureReason"]


def test_where_no_data_lies_it_fails_in_words(grid: Grid) -> None:
    request = grid.request("nothing")
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] = f"s3://bytes-{HOME}/nowhere/"
    at_rest(HOME)
    grid.aws.client("sagemaker", HOME).create_training_job(**request)
    assert "Could not find any data at" in grid.ended("nothing")["FailureReason"]


def put_code(grid: Grid, name: str, *files: tuple[str, str]) -> dict[str, Any]:
    """A channel of code, as a line of a grid has it."""
    grid.aws.client("s3", HOME).put_object(
        Bucket=f"bytes-{HOME}", Key=f"code/{name}/sourcedir.tar.gz", Body=tarred(*files)
    )
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://bytes-{HOME}/code/{name}/"}
    return {"ChannelName": "code", "DataSource": {"S3DataSource": source}, "InputMode": "File"}


PACKED = "/opt/ml/input/data/code/sourcedir.tar.gz"
TOOLKIT = {"sagemaker_program": "train.py", "sagemaker_submit_directory": PACKED}


def test_code_of_a_channel_is_run_by_the_toolkit(grid: Grid) -> None:
    channel = put_code(grid, "good", ("train.py", "import os, sys; print('runs', sys.argv, os.listdir('.'))"))
    create(grid, "brought", image="empty", hyper={**TOOLKIT, "lr": 2}, InputDataConfig=[channel])
    assert grid.ended("brought")["TrainingJobStatus"] == "Completed"
    assert grid.log("/aws/sagemaker/TrainingJobs", "brought/") == [
        COPIED,
        "runs ['train.py', '--lr', '2'] ['train.py']",
    ]


def test_a_program_that_is_not_in_the_code_fails_in_the_toolkits_words(grid: Grid) -> None:
    channel = put_code(grid, "other", ("other.py", ""))
    create(grid, "astray", image="empty", hyper=TOOLKIT, InputDataConfig=[channel])
    reason = grid.ended("astray")["FailureReason"]
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 2\nErrorMessage ")
    assert "No such file or directory" in reason


def test_code_that_is_no_archive_fails_in_the_toolkits_words(grid: Grid) -> None:
    channel = put_code(grid, "broken", ("train.py", ""))
    grid.aws.client("s3", HOME).put_object(Bucket=f"bytes-{HOME}", Key="code/broken/sourcedir.tar.gz", Body=b"PK")
    create(grid, "broken", image="empty", hyper=TOOLKIT, InputDataConfig=[channel])
    reason = grid.ended("broken")["FailureReason"]
    assert reason.startswith("AlgorithmError: framework error:")
    assert reason.endswith("ReadError: not a gzip file, exit code: 1")


def test_an_image_without_a_command_fails(grid: Grid) -> None:
    create(grid, "empty", image="empty")
    assert "has no ENTRYPOINT" in grid.ended("empty")["FailureReason"]

"""One image, as a job on EC2 and as a line of a grid: the same bytes with the same arguments have the same metric in both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contract import keys
from contract.codec import decode
from contract.grid import LineOutcome, Record
from contract.jobs import Job
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.testing.waiting import HANG_S, until
from rehearsal import grid
from rehearsal.faults import parse_faults
from rehearsal.grid import GridJob
from rehearsal.summary import summarise
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import stored, succeeded
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal, pytest.mark.images]
EXAMPLE = Path(__file__).parents[2] / "examples" / "image_job"
BASE = "pytorch-training:2.9-gpu"
"""A short tag: AWS's container for EC2 in a job, and the one for SageMaker in a line."""
JOB: Mapping[str, Any] = json.loads((EXAMPLE / "job.json").read_text())
LINE: Mapping[str, Any] = json.loads((EXAMPLE / "line.jsonl").read_text())
CODED = """
import json, os, sys
base = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
model = os.environ.get("ARTIFACTS_DIR", base + "/model")
steps = int(sys.argv[sys.argv.index("--steps") + 1])
metric = sum(1 / n for n in range(1, steps + 1))
if progress := os.environ.get("PROGRESS_FILE"):
    open(progress + ".new", "w").write(json.dumps({"step": steps, "world_size": 1, "metric": metric}))
    os.replace(progress + ".new", progress)
open(model + "/sum", "w").write(str(metric))
print("in", os.path.basename(os.getcwd()), "beside", sorted(os.listdir(".")), flush=True)
print(f"metric={metric}", flush=True)
"""
SHARED = """
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
steps = int(sys.argv[sys.argv.index("--steps") + 1])
metric = world.allreduce(sum(1 / n for n in range(1 + world.rank, steps + 1, world.size)))
open(os.environ["SM_MODEL_DIR"] + f"/rank-{world.rank}", "w").write(str(metric))
print("of", world.size, "local", os.environ["OMPI_COMM_WORLD_LOCAL_RANK"], flush=True)
print(f"metric={metric}", flush=True)
"""
"""The same sum, shared among the processes of mpirun."""
AWAY = REGIONS[1]["region"]
RUNS = ["python", "train.py"]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A deployment with the example's image."""
    work = tmp_path_factory.mktemp("both") / "work"
    settings = {"regions": REGIONS[:2]}
    with Yard(work, Conditions(speed=20.0), settings=settings, wanted=["workflow", "builds", "grid", "images"]) as made:
        if not real.lacks():
            real.begin(made.aws.work / "images", made.aws.at_stop)
        grid.build_image(made, EXAMPLE)
        yield made


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, yard: Yard) -> tuple[StartedJob, GridJob, StartedJob]:
    """The example as a job and as a line of a grid, and a job of the code of the grid's other lines."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text(CODED)
    code = yard.upload(folder, "coded")
    (folder / "train.py").write_text(SHARED)
    shared = yard.upload(folder, "shared")
    job = yard.start({**JOB, "checkpoint_minutes": 0.02}, "both-job")
    words = {"code": code, "arguments": ["--steps", "40"]}
    coded = yard.start({**JOB, **words, "image": BASE, "command": RUNS, "nodes": 1}, "both-coded")
    of_code = {
        "region": LINE["region"],
        "instance_type": LINE["instance_type"],
        "metrics": LINE["metrics"],
        "code": code,
    }
    lines = [
        LINE,
        {**of_code, **words, "image": "images:line-1", "command": RUNS},
        {**of_code, "image": BASE, "program": "train.py", "hyperparameters": {"steps": 40}},
        {
            **of_code,
            "code": shared,
            "image": BASE,
            "program": "train.py",
            "hyperparameters": {"steps": 40},
            "instance_count": 2,
            "distribution": "mpi",
            "processes_per_host": 2,
        },
        {**of_code, "region": AWAY, "image": BASE, "program": "train.py", "hyperparameters": {"step": 40}},
    ]
    address = grid.upload_manifest(yard, "".join(f"{json.dumps(one)}\n" for one in lines), "both.jsonl")
    return job, grid.start(yard, {"manifest": address}, "both-grid"), coded


@pytest.fixture(scope="module")
def job(both: tuple[StartedJob, GridJob, StartedJob]) -> StartedJob:
    succeeded(both[0])
    return both[0]


@pytest.fixture(scope="module")
def coded(both: tuple[StartedJob, GridJob, StartedJob]) -> StartedJob:
    succeeded(both[2])
    return both[2]


@pytest.fixture(scope="module")
def lines(both: tuple[StartedJob, GridJob, StartedJob]) -> list[Record]:
    both[1].wait(HANG_S)
    succeeded(both[1])
    return both[1].results()


def test_the_same_image_with_the_same_arguments_has_the_same_metric_as_a_job_and_as_a_line(
    job: StartedJob, lines: list[Record]
) -> None:
    assert list(JOB["arguments"]) == list(LINE["arguments"])
    there = summarise(job, wall_s=0.0)
    assert (lines[0].outcome, lines[0].reason) == (LineOutcome.COMPLETED, "")
    assert there.metric is not None
    assert lines[0].metrics == {"metric": there.metric}
    assert there.world_size == JOB["nodes"] == LINE["instance_count"]


def test_it_was_the_same_digest(
    job: StartedJob, lines: list[Record], both: tuple[StartedJob, GridJob, StartedJob]
) -> None:
    assert lines
    container = decode(Job, stored(job.yard, keys.JobPrefix(job.name).description)).container
    assert container is not None
    ran = [one for one in both[1].trainings() if one.training.name == lines[0].training]
    assert [one.image for one in ran] == [container.digest]


def test_both_leave_a_model_of_every_machine(job: StartedJob, lines: list[Record]) -> None:
    assert {one.rpartition("/")[2] for one in job.artifacts()} == {"line-0.json", "line-1.json"}
    assert lines[0].artifact.endswith("/model.tar.gz")


def test_the_log_of_a_line_says_whether_the_image_had_a_root_of_its_own(lines: list[Record], yard: Yard) -> None:
    own = "rehearsal: the image's own root, as buildah built it" in logged(yard, lines[0])
    assert own is not bool(real.lacks())


def logged(yard: Yard, record: Record) -> str:
    logs = yard.client("logs", record.region)
    group = "/aws/sagemaker/TrainingJobs"
    streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{record.training}/")["logStreams"]
    return "\n".join(
        str(event["message"])
        for one in streams
        for event in logs.get_log_events(logGroupName=group, logStreamName=one["logStreamName"], startFromHead=True)[
            "events"
        ]
    )


def test_the_same_code_beside_the_same_image_has_the_same_metric_in_both(
    coded: StartedJob, lines: list[Record], yard: Yard
) -> None:
    there = summarise(coded, wall_s=0.0)
    assert (lines[1].outcome, lines[1].reason) == (LineOutcome.COMPLETED, "")
    assert lines[1].metrics == {"metric": pytest.approx(there.metric)}
    said = "in code beside ['train.py']"
    assert said in logged(yard, lines[1])
    assert said in "\n".join(line for stream in coded.log_streams() for line in coded.log(stream))


def test_a_program_in_a_container_of_awss_has_it_too(coded: StartedJob, lines: list[Record], yard: Yard) -> None:
    assert (lines[2].outcome, lines[2].reason) == (LineOutcome.COMPLETED, "")
    assert lines[2].metrics == {"metric": pytest.approx(summarise(coded, wall_s=0.0).metric)}
    assert "in code beside ['train.py']" in logged(yard, lines[2])


def test_a_program_under_mpirun_shares_the_work_among_the_processes_of_two_instances(
    coded: StartedJob, lines: list[Record], yard: Yard
) -> None:
    assert (lines[3].outcome, lines[3].reason) == (LineOutcome.COMPLETED, "")
    assert lines[3].metrics == {"metric": pytest.approx(summarise(coded, wall_s=0.0).metric)}
    log = logged(yard, lines[3])
    marks = [f"[1,mpirank:{rank},algo-{rank // 2 + 1}]<stdout>: of 4 local {rank % 2}" for rank in range(4)]
    assert [one for one in marks if one not in log] == []


def test_a_program_that_fails_is_told_in_the_toolkits_words(lines: list[Record]) -> None:
    assert lines[4].outcome is LineOutcome.FAILED
    assert "AlgorithmError: ExecuteUserScriptError: ExitCode 1" in lines[4].reason


def test_a_line_that_is_stopped_leaves_no_process_and_keeps_its_checkpoint(yard: Yard) -> None:
    endless = {**LINE, "arguments": ["--steps", "100000"]}
    address = grid.upload_manifest(yard, json.dumps(endless), "stopped.jsonl")
    job = grid.start(yard, {"manifest": address}, "both-stopped")
    until(lambda: job.trainings() and job.trainings()[0].training.metrics, HANG_S)
    job.yard.client("stepfunctions").stop_execution(executionArn=job.arn)
    job.wait(HANG_S)
    job.settle_grid(HANG_S)
    assert (job.trainings_left(), job.processes_left()) == ([], 0)
    (line,) = job.lines()
    bucket, _, key = line.request["CheckpointConfig"]["S3Uri"].removeprefix("s3://").partition("/")
    kept = json.loads(stored(yard, f"{key}/line.json", bucket))
    assert kept["step"] > 0


def test_an_interrupted_spot_line_goes_on_from_the_checkpoint_of_its_image(yard: Yard) -> None:
    spot = {**LINE, "instance_count": 1, "market": "spot", "max_wait_hours": 2, "arguments": ["--steps", "200"]}
    address = grid.upload_manifest(yard, json.dumps(spot), "spot.jsonl")
    with yard.faults(parse_faults(["spot-interrupted:line=all,after=60"])):
        job = grid.start(yard, {"manifest": address}, "both-spot")
        succeeded(job)
    (record,) = job.results()
    assert (record.outcome, record.reason) == (LineOutcome.COMPLETED, "")
    assert [one.interruptions for one in job.trainings()] == [1]
    assert "goes on from step" in logged(yard, record)


def test_the_trainings_read_the_code_with_their_own_role_from_their_own_region(lines: list[Record], yard: Yard) -> None:
    read = [
        one
        for one in yard.aws.recorder.of()
        if one.name == "s3:GetObject" and "grid-code/both-grid/" in str(one.parameters.get("Key", ""))
    ]
    assert {one.region for one in lines} == {one.region for one in read} == {yard.region, AWAY}
    assert {one.role.rpartition("/")[2] for one in read} == {f"trainyard-training-{yard.region}"}

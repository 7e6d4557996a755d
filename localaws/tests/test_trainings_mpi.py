"""Trainings under mpirun on several hosts of the local SageMaker: what they compute, and that every end ends every process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from localaws.services import sagemaker, sagemaker_run
from localaws.services.ec2 import AMI
from localaws.testing.grid import HOME, Grid, create, trained_here
from localaws.testing.waiting import lives, until

pytestmark = [
    pytest.mark.rehearsal,
    pytest.mark.skipif(not (AMI / "bin/mpirun").exists(), reason="the machine image, which has mpirun, is not made"),
]
MPI = {
    "sagemaker_mpi_enabled": True,
    "sagemaker_mpi_num_of_processes_per_host": 2,
    "sagemaker_mpi_custom_mpi_options": "-x WORD=given --NCCL_DEBUG WARN",
}
"""Values of the hyperparameters as a line of a grid has them, before they are written as JSON."""
LONG = {"StoppingCondition": {"MaxRuntimeInSeconds": 24 * 3600}}
"""At the speed of this local AWS."""
PROGRAM = """
import json, os, pathlib, signal, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
base = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"])
host = json.loads((base / "input/config/resourceconfig.json").read_text())["current_host"]
wish = sys.argv[sys.argv.index("--wish") + 1] if "--wish" in sys.argv else ""
mine = [int(line.split(",")[1]) for line in (base / "input/data/training/a.csv").read_text().splitlines()]
total = world.allreduce(sum(mine) * (world.rank + 1))
said = {"rank": world.rank, "of": world.size, "local": os.environ["OMPI_COMM_WORLD_LOCAL_RANK"], "host": host, "total": total,
        "current": os.environ["SM_CURRENT_HOST"], "model": os.environ["SM_MODEL_DIR"] == str(base / "model"),
        "here": os.getcwd() == str(base / "code"), "word": os.environ["WORD"], "debug": os.environ["NCCL_DEBUG"]}
print(json.dumps(said), flush=True)
world.barrier()
print(f"loss={world.rank}.5", flush=True)
if world.rank == 3:
    if wish == "raise":
        raise ValueError("no gradient on rank 3")
    if wish == "exit":
        sys.exit(7)
    if wish == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if wish == "daemon":
        os.kill(os.getppid(), signal.SIGKILL)
if wish:
    time.sleep(600)
(base / "model" / f"rank-{world.rank}").write_text(str(total))
"""
IMAGE = {"Dockerfile": "FROM base\nCOPY t.py /opt/ml/code/\nENV SAGEMAKER_PROGRAM=t.py\n", "t.py": PROGRAM}
FAKE = (
    "FROM base\nCOPY t.py /opt/ml/code/\nCOPY mpirun /fake/\n"
    f"ENV SAGEMAKER_PROGRAM=t.py PATH=/fake:{AMI.absolute()}/bin:/usr/bin:/bin\n"
)
OTHER = "host=${2#*,}\nhost=${host%:*}\n"
"""In the script of an mpirun: the address of the second host."""


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with trained_here(tmp_path_factory.mktemp("images")) as made:
        folder = tmp_path_factory.mktemp("mpi")
        made.push("mpi", IMAGE, folder)
        made.push("bare", {**IMAGE, "Dockerfile": IMAGE["Dockerfile"] + "ENV PATH=/nowhere\n"}, folder)
        yield made


def start(grid: Grid, name: str, wish: str = "", image: str = "mpi", **more: Any) -> None:
    hyper = {**MPI, **({"wish": wish} if wish else {})}
    create(grid, name, image=image, hyper=hyper, count=2, **LONG, **more)


def log(grid: Grid, name: str, host: str) -> list[str]:
    return grid.log("/aws/sagemaker/TrainingJobs", f"{name}/{host}-")


def said(grid: Grid, name: str) -> list[dict[str, Any]]:
    """By rank."""
    found = [line for line in log(grid, name, "algo-1") if '{"rank"' in line]
    return sorted((json.loads(line[line.index("{") :]) for line in found), key=lambda one: int(one["rank"]))


def left(name: str) -> list[int]:
    """Processes of the training, also of those that no container knows."""
    mark = f"TRAINING_JOB_NAME={name}\0".encode()
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and mark in place.joinpath("environ").read_bytes() and lives(int(place.name)):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def fails(grid: Grid, name: str, wish: str = "", **more: Any) -> str:
    start(grid, name, wish, **more)
    ended = grid.ended(name)
    assert ended["TrainingJobStatus"] == "Failed"
    assert left(name) == []
    return str(ended["FailureReason"])


def test_ranks_of_two_hosts_compute_together_over_each_hosts_own_data_and_folders(grid: Grid) -> None:
    start(grid, "computes")
    ended = grid.ended("computes")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Completed", None), log(grid, "computes", "")
    ranks = said(grid, "computes")
    assert [(one["rank"], one["local"], one["host"]) for one in ranks] == [
        *((0, "0", "algo-1"), (1, "1", "algo-1")),
        *((2, "0", "algo-2"), (3, "1", "algo-2")),
    ]
    assert {(one["of"], one["total"], one["word"], one["debug"]) for one in ranks} == {(4, 20, "given", "WARN")}
    assert {(one["model"], one["here"]) for one in ranks} == {(True, True)}
    assert ended["FinalMetricDataList"][0]["MetricName"] == "loss"
    assert left("computes") == []


def test_the_first_hosts_log_has_every_rank_with_its_host_and_the_others_have_none(grid: Grid) -> None:
    start(grid, "logged")
    grid.ended("logged")
    marks = {line.partition("]")[0] for line in log(grid, "logged", "algo-1") if "loss=" in line}
    assert marks == {f"[1,mpirank:{rank},algo-{rank // 2 + 1}" for rank in range(4)}
    assert len(log(grid, "logged", "algo-2")) == 1


def test_every_rank_is_told_the_first_host_as_current_as_by_awss_toolkit(grid: Grid) -> None:
    start(grid, "current")
    grid.ended("current")
    assert {one["current"] for one in said(grid, "current")} == {"algo-1"}


def test_one_host_alone_needs_no_other(grid: Grid) -> None:
    create(grid, "alone", image="mpi", hyper=MPI, **LONG)
    assert grid.ended("alone")["TrainingJobStatus"] == "Completed"
    assert [one["of"] for one in said(grid, "alone")] == [2, 2]


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("raise", "ExecuteUserScriptError:\nExitCode 1\nErrorMessage .*ValueError: no gradient on rank 3"),
        ("exit", "ExecuteUserScriptError:\nExitCode 7\n"),
        ("kill", "ExecuteUserScriptError:\nExitCode [1-9]"),  # 137, or that of a rank which saw its peer go first
        ("daemon", "ExecuteUserScriptError:\nExitCode [1-9]"),
    ],
)
def test_a_rank_that_fails_on_another_host_fails_the_training_and_leaves_no_process(
    grid: Grid, wish: str, says: str
) -> None:
    reason = fails(grid, f"fails-{wish}", wish)
    assert reason.startswith("AlgorithmError: ")
    assert re.search(says, reason, re.DOTALL), reason


def test_an_image_without_mpirun_fails_by_its_name(grid: Grid) -> None:
    reason = fails(grid, "bare", image="bare")
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 127\n")
    assert "mpirun: not found" in reason


def test_a_stop_ends_every_process_of_every_host(grid: Grid) -> None:
    start(grid, "stopped", "sleep")
    (run,) = (one for one in sagemaker.trainings() if one.training.name == "stopped")
    until(lambda: run.training.metrics)
    assert len(left("stopped")) > 4
    grid.aws.client("sagemaker", HOME).stop_training_job(TrainingJobName="stopped")
    assert grid.ended("stopped")["TrainingJobStatus"] == "Stopped"
    assert left("stopped") == []


def fake(grid: Grid, folder: Path, name: str, script: str) -> Mapping[str, str]:
    """An image whose mpirun is a script."""
    grid.push(name, {**IMAGE, "Dockerfile": FAKE, "mpirun": f"#!/bin/sh\n{script}\n"}, folder)
    return {"image": name}


def test_a_host_to_which_no_daemon_comes_fails_the_training(
    grid: Grid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sagemaker_run, "LATE_S", 0.5)
    reason = fails(grid, "no-daemon", **fake(grid, tmp_path, "no-daemon", "exit 0"))
    assert reason == "AlgorithmError: algo-2: mpirun has ended, and its daemon there has not"


def test_a_daemon_that_fails_fails_the_training_where_mpirun_does_not(grid: Grid, tmp_path: Path) -> None:
    script = f"{OTHER}ssh -x \"$host\" kill -9 '$$'\nexit 0"
    reason = fails(grid, "lost-daemon", **fake(grid, tmp_path, "lost-daemon", script))
    assert "ExitCode 137" in reason
    assert "mpirun's daemon on this host ended with exit code 137" in reason


def test_the_failure_of_mpirun_comes_before_that_of_its_daemon(grid: Grid, tmp_path: Path) -> None:
    script = f'{OTHER}ssh "$host" exit 9\nsleep 1\necho the rank\nexit 5'
    reason = fails(grid, "both-fail", **fake(grid, tmp_path, "both-fail", script))
    assert "ExitCode 5" in reason
    assert "the rank" in reason


def test_a_command_for_a_host_of_another_training_is_not_run(grid: Grid, tmp_path: Path) -> None:
    script = 'sed -i s/60.0/0.2/ "$(dirname "$(command -v ssh)")/remote_shell.py"\nssh 127.3.9.9 true'
    reason = fails(grid, "stranger", **fake(grid, tmp_path, "stranger", script))
    assert "ExitCode 255" in reason
    assert "connect to host 127.3.9.9" in reason


def test_a_call_that_ends_before_its_command_fails_nothing(grid: Grid, tmp_path: Path) -> None:
    script = f'{OTHER}ssh "$host" "touch $0.begun; sleep 1" &\nuntil [ -e "$0.begun" ]; do sleep 0.1; done\nkill -9 $!\nexit 0'
    start(grid, "call-ends", **fake(grid, tmp_path, "call-ends", script))
    ended = grid.ended("call-ends")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Completed", None)

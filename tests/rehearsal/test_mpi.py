"""Jobs whose processes a real mpirun starts, on nodes that have no sshd: what they compute, and how they end."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract import keys
from localaws.testing.waiting import HANG_S
from rehearsal.faults import parse_faults
from rehearsal.summary import summarise
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import AGAIN, ENDLESS, HAPPY, TWO, ended, failed, left, path, stored, succeeded

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length]
TRAINER = Path(__file__).with_name("mpi_trainer")
PYTHON = Path(__file__).parents[2] / "build/ami/bin/python"
STEPS = 30
FAULTS = ["node-lost:rank=1,step=5,closed=1,job=mpi-lost", "spot-notice:rank=1,step=5,closed=1,job=mpi-told"]


def train(pause: float, fails_at: int = 0, steps: int = STEPS) -> list[str]:
    return ["python", "train.py", str(steps), str(pause), str(fails_at)]


@pytest.fixture(scope="module")
def jobs(yard: Yard) -> Iterator[dict[str, StartedJob]]:
    """All of them side by side."""
    base = {**TWO, "launcher": "mpi", "code": yard.upload(TRAINER, "mpi-trainer"), "checkpoint_minutes": 0.1}
    asked: dict[str, dict[str, Any]] = {
        "mpi-three": {"nodes": 3, "instance_types": ["t3.large"], "processes_per_node": 2, "command": train(0.0)},
        "mpi-lost": {"command": train(0.1), **ENDLESS},
        "mpi-told": {"command": train(0.1), "market": "spot", **ENDLESS},
        "mpi-fails": {"command": train(0.0, fails_at=7)},
    }
    with yard.faults(parse_faults(FAULTS)):
        yield {name: yard.start({**base, **one}, name) for name, one in asked.items()}


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What one process computes by itself, without mpirun."""
    folder = tmp_path_factory.mktemp("alone")
    own = {"CHECKPOINT_DIR": "", "ARTIFACTS_DIR": "", "PROGRESS_FILE": "/progress.json"}
    variables = {name: f"{folder}{end}" for name, end in own.items()} | {"NODE_RANK": "0", "ATTEMPT": "1"}
    command = [str(PYTHON), str(TRAINER / "train.py"), str(STEPS), "0", "0"]
    subprocess.run(command, env={**os.environ, **variables}, check=True, timeout=HANG_S)
    found: float = json.loads((folder / "process-0.json").read_text())["sum"]
    return found


def process_of(job: StartedJob, rank: int, process: int) -> dict[str, Any]:
    """What a process left, which ran on the node of that rank."""
    key = keys.BytesPrefix(job.name).artifact(rank, f"process-{process}.json")
    found: dict[str, Any] = json.loads(stored(job.yard, key, job.yard.places.bytes_))
    return found


def lines(job: StartedJob, attempt: int, rank: int) -> list[str]:
    return list(job.log(f"{job.name}/{attempt}/{rank}"))


def test_three_nodes_with_two_processes_compute_what_one_process_does(
    jobs: dict[str, StartedJob], computed: float
) -> None:
    job = jobs["mpi-three"]
    succeeded(job)
    assert path(job) == HAPPY
    for process in range(6):
        assert process_of(job, process // 2, process) == {"sum": pytest.approx(computed, abs=1e-9), "step": STEPS}
        assert f"process {process} of 6 on node {process // 2} begins at step 0" in lines(job, 1, process // 2)
    assert summarise(job, wall_s=0.0).world_size == 6


def test_a_process_that_dies_ends_the_job_with_its_own_last_words(jobs: dict[str, StartedJob]) -> None:
    job = jobs["mpi-fails"]
    cause = failed(job, "TrainingFailed")
    # First or after a peer that died of the broken connection within the same milliseconds.
    assert re.search(
        r"rank 1:? (the command )?exited with code 3\b|Rank 1 exited with code 3 after it", cause, re.IGNORECASE
    ), cause
    assert "the data of the last process are broken" in cause


def test_after_a_lost_node_a_new_attempt_goes_on_from_the_checkpoint(
    jobs: dict[str, StartedJob], computed: float
) -> None:
    job = jobs["mpi-lost"]
    succeeded(job)
    assert path(job) == AGAIN
    assert [one["error"] for one in job.recovered()] == ["NodeLost"]
    assert not any("begins at step 0" in line for line in lines(job, 2, 0))
    assert process_of(job, 1, 1)["step"] >= STEPS
    assert computed


def test_a_spot_notice_reaches_every_process_and_costs_no_step(jobs: dict[str, StartedJob]) -> None:
    job = jobs["mpi-told"]
    succeeded(job)
    said = [line for rank in (0, 1) for line in lines(job, 1, rank) if "saved as ordered" in line]
    assert len(said) == 2
    step = int(said[0].rpartition(" ")[2])
    assert said[1].endswith(f" {step}")
    assert f"process 0 of 2 on node 0 begins at step {step}" in lines(job, 2, 0)


def test_none_of_them_leaves_a_machine(jobs: dict[str, StartedJob]) -> None:
    for job in jobs.values():
        ended(job)
        assert left(job) == []

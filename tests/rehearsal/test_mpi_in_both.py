"""The example of mpirun in an image that was really built: as a job with `launcher: mpi`, and as a line with `distribution: mpi`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from contract import keys
from contract.grid import LineOutcome, Record
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.testing.roots import NEEDED
from localaws.testing.waiting import HANG_S
from rehearsal import grid
from rehearsal.grid import GridJob
from rehearsal.summary import summarise
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ended, failed, left, stored, succeeded
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal, pytest.mark.images, NEEDED]
EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi_digits"
JOB: Mapping[str, Any] = json.loads((EXAMPLE / "image_job.json").read_text()) | {"nodes": 3}
LINE: Mapping[str, Any] = json.loads((EXAMPLE / "line.jsonl").read_text())


def bare_image(folder: Path) -> Path:
    """A context whose image has no mpirun on its PATH."""
    (folder / "Dockerfile").write_text(
        'ARG BASE\nFROM ${BASE}\nENV PATH=/usr/local/bin:/usr/bin:/bin\nCMD ["python"]\n'
    )
    asked = json.loads((EXAMPLE / "build.json").read_text()) | {"tag": "bare-1"}
    (folder / "build.json").write_text(json.dumps(asked))
    return folder


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    work = tmp_path_factory.mktemp("mpi") / "work"
    settings = {"regions": REGIONS[:1]}
    with Yard(work, Conditions(speed=20.0), settings=settings, wanted=["workflow", "builds", "grid", "images"]) as made:
        real.begin(made.aws.work / "images", made.aws.at_stop)
        for example in (EXAMPLE, bare_image(tmp_path_factory.mktemp("bare"))):
            grid.build_image(made, example)
        yield made


@pytest.fixture(scope="module")
def started(yard: Yard) -> tuple[StartedJob, StartedJob, GridJob]:
    """The example as a job and as a line, and a job whose image has no mpirun."""
    job = yard.start({**JOB, "checkpoint_minutes": 0.1}, "mpi-image")
    bare = {**JOB, "image": "images:bare-1", "command": ["python", "-c", "print('trains')"]}
    address = grid.upload_manifest(yard, json.dumps(LINE), "mpi.jsonl")
    return job, yard.start(bare, "mpi-bare"), grid.start(yard, {"manifest": address}, "mpi-grid")


@pytest.fixture(scope="module")
def line(started: tuple[StartedJob, StartedJob, GridJob]) -> Record:
    started[2].wait(HANG_S)
    succeeded(started[2])
    (found,) = started[2].results()
    return found


def test_the_same_image_has_the_same_metric_under_both_words(
    started: tuple[StartedJob, StartedJob, GridJob], line: Record
) -> None:
    job = started[0]
    succeeded(job)
    there = summarise(job, wall_s=0.0)
    assert (line.outcome, line.reason) == (LineOutcome.COMPLETED, "")
    assert line.metrics == {"metric": pytest.approx(there.metric, abs=1e-6)}
    assert there.metric is not None
    assert there.metric > 0.9
    assert (there.world_size, LINE["instance_count"]) == (3, 2), "the sums are the same however many share them"


def test_every_process_of_the_job_ran_in_a_container_of_its_own_node(
    started: tuple[StartedJob, StartedJob, GridJob],
) -> None:
    job = started[0]
    succeeded(job)
    for rank in range(JOB["nodes"]):
        said = "\n".join(job.log(f"{job.name}/1/{rank}"))
        assert f"process {rank} of 3 has" in said
        facts = stored(
            job.yard, keys.BytesPrefix(job.name).artifact(rank, f"process-{rank}.json"), job.yard.places.bytes_
        )
        assert json.loads(facts)["process"] == rank


def test_an_image_without_mpirun_fails_by_its_name(started: tuple[StartedJob, StartedJob, GridJob]) -> None:
    cause = failed(started[1], "TrainingFailed")
    assert "launcher mpi needs mpirun, which neither the job's image nor its requirements bring" in cause


def test_no_machine_is_left(started: tuple[StartedJob, StartedJob, GridJob]) -> None:
    for job in started[:2]:
        ended(job)
        assert left(job) == []

"""Jobs with roles: a parameter server never exits and an evaluator fails, and each job has one end, whatever befalls which role."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract import keys, tags
from contract.codec import decode
from contract.jobs import Job
from localaws.conditions import Conditions
from localaws.services import ec2
from localaws.testing.waiting import until
from rehearsal.faults import parse_faults
from rehearsal.grid import build_image
from rehearsal.summary import summarise
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import AGAIN, HAPPY, ended, failed, left, path, stopped, stored, succeeded

pytestmark = [pytest.mark.rehearsal, pytest.mark.images]
EXAMPLE = Path(__file__).parents[2] / "examples" / "parameter_server"
DOCKERFILE = """ARG BASE
FROM ${BASE}
COPY train.py /app/
ENTRYPOINT ["python", "/app/train.py"]
"""
BASE = "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
STATES = ("Admit", "Launch", "Train", "Sync", "Terminate")
FAULTS = [
    "node-lost:rank=2,step=20,closed=10,job=lost-ps",
    "node-lost:rank=1,step=20,closed=10,job=lost-worker",
    "capacity-away:type=t3.large,attempt=1,job=half",
    *(
        f"abort-in-state:state={state},after={20 if state == 'Train' else 0},job=stop-{state.lower()}"
        for state in STATES
    ),
]
FIVE: dict[str, Any] = {
    "image": "images:roles-1",
    "arguments": ["--steps", "150", "--seconds-per-step", "0.05", "--fail-evaluation", "2"],
    "roles": [
        {"name": "chief", "instance_types": ["g5.xlarge"]},
        {"name": "worker", "count": 2, "instance_types": ["g4dn.xlarge"]},
        {"name": "ps", "instance_types": ["t3.large"], "ends": "served"},
        {"name": "evaluator", "instance_types": ["t3.large"], "ends": "alone", "image": "images:eval-1"},
    ],
    "max_hours": 1,
}
SERVER = {"name": "ps", "instance_types": ["t3.large"], "ends": "served"}
PAIR = [{"name": "chief"}, {"name": "worker"}]


def train(steps: int, pause: float = 0.05) -> list[str]:
    return ["python", "train.py", "--steps", str(steps), "--seconds-per-step", str(pause)]


def train_until_lost(steps: int) -> list[str]:
    """As `train`, in a first attempt that goes on until something ends it."""
    return ["bash", "-c", f'exec {shlex.join(train(steps))} $(test "$ATTEMPT" != 1 || echo --steps 1000000)']


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A deployment with two images of the example."""
    folder = tmp_path_factory.mktemp("roles")
    conditions = Conditions(speed=10.0, faults=parse_faults(FAULTS))
    with Yard(folder / "work", conditions, wanted=["workflow", "builds"]) as yard:
        for tag, more in (("roles-1", ""), ("eval-1", "ENV LOOKS_ON=1\n")):
            place = folder / tag
            shutil.copytree(EXAMPLE, place)
            (place / "Dockerfile").write_text(DOCKERFILE + more)
            (place / "build.json").write_text(json.dumps({"repository": "images", "tag": tag, "base": BASE}))
            build_image(yard, place)
        yield yard


@pytest.fixture(scope="module")
def jobs(built: Yard) -> dict[str, StartedJob]:
    """All started at once."""
    code = built.upload(EXAMPLE, "parameter-server")
    base = {"code": code, "instance_types": ["g5.xlarge"], "max_hours": 1, "checkpoint_minutes": 0.02}
    early = [{"name": "chief"}, {"name": "worker", "command": train(20)}, SERVER]
    fails = [{"name": "chief"}, {"name": "worker", "command": ["python", "-c", "raise SystemExit(7)"]}, SERVER]
    requests: dict[str, dict[str, Any]] = {
        "five": {**FIVE, "checkpoint_minutes": 0.02},
        "lost-ps": {**base, "command": train_until_lost(300), "roles": [*PAIR, SERVER]},
        "lost-worker": {**base, "command": train_until_lost(300), "roles": [*PAIR, SERVER]},
        "dead-ps": {
            **base,
            "command": [*train(300), "--fail-server", "40"],
            "roles": [*PAIR, SERVER],
            "retries": {"times": 1, "exit_codes": [75]},
        },
        "early": {**base, "command": train(100), "roles": early},
        "fails": {**base, "command": train(5000), "roles": fails},
        "half": {**base, "command": train(20), "roles": [*PAIR, SERVER]},
        **{
            f"stop-{state.lower()}": {
                **base,
                "command": train(5000 if state == "Train" else 10),
                "roles": [*PAIR, SERVER],
            }
            for state in STATES
        },
    }
    return {name: built.start(request, name) for name, request in requests.items()}


def described(job: StartedJob) -> Job:
    return decode(Job, stored(job.yard, keys.JobPrefix(job.name).description))


def lines(job: StartedJob, rank: int, attempt: int = 1) -> list[str]:
    return list(job.log(f"{job.name}/{attempt}/{rank}"))


def outcome(job: StartedJob) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeeded(job)["output"])
    return found


def test_a_job_of_five_nodes_ends_although_a_server_never_exits_and_the_evaluator_fails(
    jobs: dict[str, StartedJob],
) -> None:
    job = jobs["five"]
    succeeded(job)
    assert path(job) == HAPPY
    reports = job.reports(1)
    exits = {rank: report.exit for rank, report in reports.items()}
    assert [one.code for rank, one in sorted(exits.items()) if one and rank in (0, 1, 2)] == [0, 0, 0]
    server, evaluator = exits[3], exits[4]
    assert server
    assert (server.ordered, server.error) == (True, "")
    assert evaluator
    assert (evaluator.code, evaluator.ordered) == (3, False)
    assert left(job) == []
    assert summarise(job, wall_s=0.0).roles == [
        "rank 0, chief 0: exited with code 0",
        "rank 1, worker 0: exited with code 0",
        "rank 2, worker 1: exited with code 0",
        "rank 3, ps 0: was stopped",
        "rank 4, evaluator 0: exited with code 3",
    ]


def test_each_role_has_its_image_and_its_type_in_one_zone(jobs: dict[str, StartedJob]) -> None:
    job = jobs["five"]
    succeeded(job)
    machines = [one for one in ec2.machines().all() if one.tags.get(tags.JOB) == "five"]
    kinds = {int(one.tags[tags.FIRST_RANK]) + one.index: one.request["InstanceType"] for one in machines}
    assert kinds == {0: "g5.xlarge", 1: "g4dn.xlarge", 2: "g4dn.xlarge", 3: "t3.large", 4: "t3.large"}
    assert len({one.request["Placement"]["AvailabilityZone"] for one in machines}) == 1
    containers = [role.container for role in described(job).roles]
    assert [one.source for one in containers if one] == ["images:roles-1"] * 3 + ["images:eval-1"]
    pulled = {rank: next(line for line in lines(job, rank) if "pulled the image" in line) for rank in range(5)}
    assert all(one and one.digest in pulled[rank] for one, rank in zip(containers, (0, 1, 3, 4), strict=True))


def test_every_node_is_told_the_cluster_as_tensorflow_documents_it(jobs: dict[str, StartedJob]) -> None:
    job = jobs["five"]
    succeeded(job)
    said = [next(line for line in lines(job, rank) if " of {" in line) for rank in range(5)]
    assert [one.partition(" of ")[0] for one in said] == ["chief 0", "worker 0", "worker 1", "ps 0", "evaluator 0"]
    (cluster,) = {one.partition(" of ")[2] for one in said}
    found = json.loads(cluster)
    assert {role: len(addresses) for role, addresses in found.items()} == {"chief": 1, "worker": 2, "ps": 1}
    assert all(re.fullmatch(r"[\d.]+:\d+", one) for addresses in found.values() for one in addresses)


def test_checkpoints_are_closed_after_the_evaluator_is_gone(jobs: dict[str, StartedJob]) -> None:
    job = jobs["five"]
    succeeded(job)
    assert max(one.closed_step for one in job.reports(1).values()) >= 100


@pytest.mark.parametrize("name", ["lost-ps", "lost-worker"])
def test_a_lost_node_of_any_role_begins_a_new_attempt_that_ends_well(jobs: dict[str, StartedJob], name: str) -> None:
    job = jobs[name]
    succeeded(job)
    assert path(job) == AGAIN
    assert [one["error"] for one in job.recovered()] == ["NodeLost"]
    assert job.recovered()[0]["cause"].startswith(f"rank {'2 (ps 0' if name == 'lost-ps' else '1 (worker 0'}, i-")
    assert any("goes on from step" in line for line in lines(job, 0, 2))


def test_a_server_whose_command_fails_ends_the_attempt_and_is_named(jobs: dict[str, StartedJob]) -> None:
    job = jobs["dead-ps"]
    assert outcome(job)["attempts"] == 2
    (before,) = job.recovered()
    assert before["error"] == "TrainingFailed"
    assert before["cause"].startswith("rank 2 (ps 0): the command exited with code 75.")
    assert any("goes on from step" in line for line in lines(job, 0, 2))


def test_a_worker_that_ends_early_with_0_leaves_the_others_at_work(jobs: dict[str, StartedJob]) -> None:
    assert outcome(jobs["early"])["attempts"] == 1
    assert any("of 100 steps" in line or "of 101 steps" in line for line in lines(jobs["early"], 0))


def test_a_worker_that_fails_ends_the_job_and_its_server(jobs: dict[str, StartedJob]) -> None:
    assert "exited with code 7" in failed(jobs["fails"], "TrainingFailed")


def test_capacity_for_the_second_shape_alone_is_missing_and_another_attempt_has_it(jobs: dict[str, StartedJob]) -> None:
    job = jobs["half"]
    found = outcome(job)
    assert path(job) == [*AGAIN[:3], "Terminate", "Decide", "Pause", *HAPPY[2:]]
    assert [one["error"] for one in job.recovered()] == ["LaunchIncomplete"]
    assert found["attempts"] == 2


@pytest.mark.parametrize("state", STATES)
def test_a_job_that_is_stopped_in_any_state_leaves_no_node_of_any_role(jobs: dict[str, StartedJob], state: str) -> None:
    job = jobs[f"stop-{state.lower()}"]
    stopped(job)
    until(lambda: not left(job))  # by the cleanup's clock where the event of its end was lost, as one in ten is


def test_none_of_them_leaves_a_machine(jobs: dict[str, StartedJob]) -> None:
    for job in jobs.values():
        ended(job)
        assert left(job) == []

"""The examples of roles as real processes, which find each other by nothing but the variables that nodes give them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from contract.cluster import Cluster
from contract.roles import Role, RoleEnd, find_place
from job_requests.reading import read
from localaws.testing.waiting import HANG_S
from tests.builders import ADMISSION

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIEF, WORKERS = Role(name="chief", count=1), Role(name="worker", count=2)
SERVER = Role(name="ps", count=2, ends=RoleEnd.SERVED)
EVALUATOR = Role(name="evaluator", count=1, ends=RoleEnd.ALONE)


class Nodes:
    """One process for each rank, on an address of its own of this computer."""

    def __init__(self, root: Path, example: str, roles: tuple[Role, ...]) -> None:
        self.root, self.example, self.roles = root, EXAMPLES / example / "train.py", roles
        self.processes: dict[tuple[str, int], subprocess.Popen[str]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]

    def start(self, *arguments: str) -> None:
        ranks = sum(role.count for role in self.roles)
        addresses = tuple(f"127.0.9.{rank + 1}" for rank in range(ranks))
        for rank in reversed(range(ranks)):  # rank 0 begins the training, and the others take part
            place = find_place(self.roles, rank)
            assert place
            folder = self.folder(place.role.name, place.index)
            folder.mkdir(parents=True, exist_ok=True)
            cluster = Cluster(addresses=addresses, rank=rank, port=self._port, roles=self.roles)
            own = {"CHECKPOINT_DIR": folder, "ARTIFACTS_DIR": folder, "PROGRESS_FILE": folder / "progress.json"}
            self.processes[place.role.name, place.index] = subprocess.Popen(
                [sys.executable, str(self.example), *arguments],
                env={**os.environ, **cluster.build_variables(), **{name: str(path) for name, path in own.items()}},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def folder(self, role: str, index: int = 0) -> Path:
        return self.root / f"{role}-{index}"

    def end(self, role: str, index: int = 0) -> tuple[int, str]:
        """The exit code and the output of one that ends by itself."""
        said, _ = self.processes[role, index].communicate(timeout=HANG_S)
        return self.processes[role, index].returncode, said

    def left(self) -> list[tuple[str, int]]:
        return [name for name, process in self.processes.items() if process.poll() is None]

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as ending:

        def start(example: str, roles: Sequence[Role], *arguments: str) -> Nodes:
            nodes = Nodes(tmp_path, example, tuple(roles))
            ending.callback(nodes.kill)
            nodes.start(*arguments)
            return nodes

        yield start


def test_workers_exchange_what_they_learn_through_servers_that_never_exit(started: Any) -> None:
    nodes = started("parameter_server", (CHIEF, WORKERS, SERVER), "--steps", "300", "--seconds-per-step", "0.02")
    ends = [nodes.end("chief"), nodes.end("worker", 0), nodes.end("worker", 1)]
    assert [code for code, _ in ends] == [0, 0, 0], ends
    assert sorted(nodes.left()) == [("ps", 0), ("ps", 1)]
    made = [json.loads((nodes.folder(*one) / "trained.json").read_text()) for one in (("worker", 0), ("worker", 1))]
    chief = json.loads((nodes.folder("chief") / "trained.json").read_text())
    assert all(one["steps"] > 0 for one in made)
    assert chief["loss"] < 0.01


def test_the_evaluator_reads_the_weights_and_may_fail_alone(started: Any) -> None:
    nodes = started("parameter_server", (CHIEF, WORKERS, SERVER, EVALUATOR), "--steps", "300", "--fail-evaluation", "2")
    code, said = nodes.end("evaluator")
    assert code == 3
    assert "evaluation 2: loss" in said
    assert nodes.end("chief")[0] == 0


def test_a_chief_that_begins_again_goes_on_from_its_checkpoint(started: Any) -> None:
    nodes = started("parameter_server", (CHIEF, SERVER), "--steps", "50")
    assert nodes.end("chief")[0] == 0
    nodes.kill()
    again = started("parameter_server", (CHIEF, SERVER), "--steps", "60")
    code, said = again.end("chief")
    assert code == 0
    assert "goes on from step 50" in said


def test_actors_walk_for_a_learner_and_end_once_it_is_gone(started: Any) -> None:
    roles = (Role(name="learner", count=1), Role(name="actor", count=3, ends=RoleEnd.FREELY))
    nodes = started("actors", roles, "--episodes", "300", "--seconds-per-episode", "0.02")
    code, said = nodes.end("learner")
    assert code == 0, said
    learned = json.loads((nodes.folder("learner") / "learned.json").read_text())
    assert learned["ways"] == [1] * 7  # to the right everywhere
    assert learned["by_actor"].keys() == {"actor 0", "actor 1", "actor 2"}
    assert [nodes.end("actor", index)[0] for index in range(3)] == [0, 0, 0]


def test_a_server_that_is_asked_to_fails_in_the_first_attempt_and_takes_the_workers_along(started: Any) -> None:
    nodes = started("parameter_server", (CHIEF, WORKERS, SERVER), "--steps", "1000000", "--fail-server", "20")
    assert [nodes.end("ps", index)[0] for index in range(2)] == [75, 75]
    code, said = nodes.end("chief")
    assert code == 1
    assert "Connection" in said or "is gone" in said


@pytest.mark.parametrize("example", ["parameter_server", "actors"])
def test_the_request_of_an_example_is_taken(example: str) -> None:
    given = json.loads((EXAMPLES / example / "job.json").read_text())
    given["code"] = given["code"].replace("REPLACE-WITH-UploadPrefix", "yard-home/uploads")
    request, problems = read(given, ADMISSION.limits)
    assert problems == []
    assert request.nodes == sum(one.count for one in request.roles)

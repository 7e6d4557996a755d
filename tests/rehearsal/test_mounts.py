"""Jobs that mount file systems: on nodes whose network leads there, with an image and without, to read and to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from localaws.conditions import Conditions
from localaws.containers import real
from localaws.testing.waiting import HANG_S
from rehearsal.grid import build_image
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import DENIALS, ONE, failed, succeeded

pytestmark = [pytest.mark.rehearsal]
READER = """
import os, pathlib, sys
rank = os.environ["NODE_RANK"]
data, shared = map(pathlib.Path, sys.argv[1:])
print("read", rank, (data / "words.txt").read_text(), flush=True)
(shared / f"rank-{rank}.txt").write_text("written by " + rank)
try:
    (data / "new.txt").write_text("x")
    print("wrote into what is read only", flush=True)
except OSError as problem:
    print("refused:", problem.strerror, flush=True)
"""
BASE = "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
BARE = """
import os, pathlib
data = pathlib.Path.cwd().parents[3] / "data"
print("read", (data / "words.txt").read_text(), flush=True)
(data / "new.txt").write_text("x")
"""
DOCKERFILE = 'ARG BASE\nFROM ${BASE}\nCOPY train.py /app/\nENTRYPOINT ["python", "/app/train.py"]\n'
MOUNTS = [{"from": "fsx:corpus", "at": "/data"}, {"from": "efs:home", "at": "/shared", "read_only": False}]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("mounts")
    there = {"corpus": "fsx", "home": "efs", "bucket": "s3files"}
    settings: dict[str, Any] = {
        "wanted": ["workflow", "builds"],
        "file_systems": there,
        "real_images": not real.lacks(),
    }
    with Yard(folder / "work", Conditions(speed=10.0), **settings) as made:
        (made.files("corpus") / "words.txt").write_text("the corpus")
        (made.files("bucket") / "words.txt").write_text("the bucket")
        yield made


@pytest.fixture(scope="module")
def jobs(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> dict[str, StartedJob]:
    folder = tmp_path_factory.mktemp("code")
    build(yard, folder / "reader")
    two = {"instance_types": ["g5.xlarge"], "nodes": 2, "max_hours": 1}
    command = {"command": ["python", "train.py"]}
    requests: dict[str, Mapping[str, Any]] = {
        "imaged": {**two, "image": "images:reader-1", "arguments": ["/data", "/shared"], "mounts": MOUNTS},
        "bare": {
            **ONE,
            **command,
            "code": code(yard, folder / "bare", BARE),
            "mounts": [{"from": "s3files:bucket", "at": "/data"}],
        },
    }
    return {name: yard.start(request, name) for name, request in requests.items()}


def build(yard: Yard, folder: Path) -> None:
    """An image that reads its first argument's folder and writes into that of its second."""
    folder.mkdir()
    request = {"repository": "images", "tag": "reader-1", "base": BASE}
    for name, text in (("train.py", READER), ("Dockerfile", DOCKERFILE), ("build.json", json.dumps(request))):
        (folder / name).write_text(text)
    build_image(yard, folder)


def code(yard: Yard, folder: Path, script: str) -> str:
    folder.mkdir()
    (folder / "train.py").write_text(script)
    return yard.upload(folder, folder.name)


def logged(job: StartedJob) -> str:
    return "\n".join(line for stream in job.log_streams() for line in job.log(stream))


def test_both_nodes_of_a_job_with_an_image_read_one_file_system_and_write_the_other(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    succeeded(jobs["imaged"])
    lines = logged(jobs["imaged"])
    assert [f"read {rank} the corpus" in lines for rank in (0, 1)] == [True, True]
    assert "mounted fsx:corpus at /data, read only" in lines
    assert [(yard.files("home") / f"rank-{rank}.txt").read_text() for rank in (0, 1)] == [
        "written by 0",
        "written by 1",
    ]


def test_what_is_mounted_to_read_cannot_be_written(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs["imaged"])
    assert "refused: Read-only file system" in logged(jobs["imaged"])
    assert not (yard.files("corpus") / "new.txt").exists()


def test_a_job_without_an_image_fails_as_its_program_does_where_it_writes_what_is_read_only(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    assert "the command exited with code 1" in failed(jobs["bare"], "TrainingFailed")
    assert "read the bucket" in logged(jobs["bare"])
    assert not (yard.files("bucket") / "new.txt").exists()


def test_the_nodes_of_a_job_have_the_groups_of_its_file_systems_and_of_no_other(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    succeeded(jobs["imaged"])
    failed(jobs["bare"], "TrainingFailed")
    found = {"imaged": set[str](), "bare": set[str]()}
    for call in yard.aws.recorder.of():
        if call.name == "ec2:RunInstances":
            words = set(map(str, call.parameters.values()))
            (name,) = found.keys() & words
            found[name] |= {word for word in words if word.startswith("sg-")}
    described = yard.client("ec2").describe_security_groups(GroupIds=[*set[str]().union(*found.values())])
    words_of = {one["GroupId"]: one["Description"] for one in described["SecurityGroups"]}
    clients = {name: {words_of[one] for one in groups if "mount" in words_of[one]} for name, groups in found.items()}
    begins = "Nodes of jobs that mount "
    assert clients == {"imaged": {f"{begins}fsx:corpus", f"{begins}efs:home"}, "bare": {f"{begins}s3files:bucket"}}


def test_nothing_that_nodes_or_functions_asked_was_denied(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    for job in jobs.values():
        job.wait(HANG_S)
    denied = {one.name for one in yard.aws.recorder.of() if one.error in DENIALS}
    assert denied <= {"ec2:CreateTags"}, "IAM sees the tags of a new instance late, and the launcher asks again"

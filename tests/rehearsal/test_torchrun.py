"""The command of docs/guides/jobs.md for several processes a node, with a requirement that only the job's own Python has."""

from __future__ import annotations

import json
import re
import resource
import zipfile
from pathlib import Path

import pytest

from contract import keys
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import TWO, ended, left, stored, succeeded

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length, pytest.mark.turn("looks back")]
PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "jobs.md").read_text()
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
PACKAGE = "only_of_this_job"
TRAINER = f"""
import json, os, pathlib, resource
import {PACKAGE}
rank = os.environ["RANK"]
print("worker", rank, "of", os.environ["WORLD_SIZE"], "has the requirement:", {PACKAGE}.SAYS)
facts = {{"rank": int(rank), "world_size": int(os.environ["WORLD_SIZE"]), "says": {PACKAGE}.SAYS}}
facts["files"] = resource.getrlimit(resource.RLIMIT_NOFILE)
pathlib.Path(os.environ["ARTIFACTS_DIR"], f"worker-{{rank}}.json").write_text(json.dumps(facts))
"""


def torchrun_command() -> list[str]:
    """As it stands there, but for a process a node: the machines of a rehearsal have no GPU, and the test's has two cores."""
    (found,) = re.findall(r'^"command": (\["bash", "-c", "torchrun .*"\])$', PAGE, re.MULTILINE)
    *shell, text = json.loads(found)
    return [*shell, re.sub(r"(?<=--nproc-per-node )\w+", "1", text)]


def code(folder: Path) -> Path:
    """A trainer, and a requirements.txt that names a package beside it: pip asks no index."""
    folder.mkdir()
    wheel, info = f"{PACKAGE}-1.0-py3-none-any.whl", f"{PACKAGE}-1.0.dist-info"
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        archive.writestr(f"{PACKAGE}.py", "SAYS = 'installed for this job'\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    (folder / "requirements.txt").write_text(f"./{wheel}\n")
    (folder / "train.py").write_text(TRAINER)
    return folder


def test_the_launcher_of_the_request_starts_torchrun_with_so_many_processes_a_node(yard: Yard, tmp_path: Path) -> None:
    asked = {"launcher": "torchrun", "processes_per_node": 2, "instance_types": ["t3.large"], "command": ["train.py"]}
    job = yard.start(
        {**TWO, **asked, "code": yard.upload(code(tmp_path / "field"), "torchrun-field")}, "torchrun-field"
    )
    succeeded(job)
    job.settle()
    places = [keys.BytesPrefix(job.name).artifact(rank // 2, f"worker-{rank}.json") for rank in range(4)]
    said = [json.loads(stored(yard, key, yard.places.bytes_)) for key in places]
    assert [(one["rank"], one["world_size"], one["says"]) for one in said] == [
        (rank, 4, "installed for this job") for rank in range(4)
    ]
    assert left(job) == []


def test_workers_of_the_pages_torchrun_have_the_jobs_requirements(
    yard: Yard, tmp_path: Path, measured: StartedJob
) -> None:
    ended(measured)  # PyTorch listens on the same port of this computer
    request = {**TWO, "code": yard.upload(code(tmp_path / "torchrun"), "torchrun"), "command": torchrun_command()}
    job = yard.start(request, "torchrun")
    succeeded(job)
    job.settle()
    places = [keys.BytesPrefix(job.name).artifact(rank, f"worker-{rank}.json") for rank in (0, 1)]
    said = [json.loads(stored(yard, key, yard.places.bytes_)) for key in places]
    assert said == [
        {"rank": rank, "world_size": 2, "says": "installed for this job", "files": [FILES, FILES]} for rank in (0, 1)
    ]
    assert left(job) == []

"""A function's archive holds its package and the shared rooms that it imports: an edit redeploys what runs it, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest

from stacks.parts.assembled import CONTRACT, LAMBDA, Assembled, files
from stacks.parts.shipped import ROOMS, NotShared, shipped

FUNCTIONS = sorted(path.parent.name for path in LAMBDA.glob("*/handler.py"))


def packages(root: Path, **sources: str) -> Path:
    """A folder of packages with one module each."""
    for name, source in sources.items():
        (root / name).mkdir()
        (root / name / "module.py").write_text(source)
    return root


def archive(function: str, root: Path, folder: Path) -> dict[str, bytes]:
    """Files of the archive as synth makes it, by path."""
    contents = {name: root / name for name in shipped(function, root)} | {"contract": CONTRACT}
    Assembled(contents).try_bundle(str(folder), image=cdk.DockerImage.from_registry("never-pulled"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in files(folder)}


def redeployed(edited: str, tmp_path: Path) -> set[str]:
    """The functions whose archives change with a file of lambda/."""
    root = tmp_path / "lambda"
    shutil.copytree(LAMBDA, root)
    before = {name: archive(name, root, tmp_path / "before" / name) for name in FUNCTIONS}
    with (root / edited).open("a") as file:
        file.write("\n# edited\n")
    return {name for name in FUNCTIONS if archive(name, root, tmp_path / "after" / name) != before[name]}


def test_an_archive_holds_the_rooms_that_the_function_imports_and_no_other(tmp_path: Path) -> None:
    own = "import json\nfrom aws.queue import Queue\ndef late() -> None:\n    import messages.work\n"
    rooms = {"aws": "import boto3\n", "messages": "from contract import names\n", "ending": "import aws.ec2\n"}
    assert shipped("cleanup", packages(tmp_path, cleanup=own, **rooms)) == ("aws", "cleanup", "messages")


def test_an_archive_holds_what_its_rooms_import(tmp_path: Path) -> None:
    own = "from ending.aftermath import clear\n"
    root = packages(tmp_path, cleanup=own, ending="from aws import ec2\n", aws="import boto3\n")
    assert shipped("cleanup", root) == ("aws", "cleanup", "ending")


def test_a_module_of_the_functions_own_is_not_taken_for_a_room(tmp_path: Path) -> None:
    own = "from . import messages\nfrom .ending import end\nfrom cleanup.aws import call\n"
    assert shipped("cleanup", packages(tmp_path, cleanup=own, aws="", ending="", messages="")) == ("cleanup",)


def test_a_function_that_imports_another_is_not_deployed(tmp_path: Path) -> None:
    packages(tmp_path, drain="from terminator.handler import handler\n", terminator="")
    with pytest.raises(NotShared, match=r"lambda/drain imports terminator; allowed: the shared rooms aws, "):
        shipped("drain", tmp_path)


def test_a_room_that_imports_a_function_is_not_deployed(tmp_path: Path) -> None:
    room = "def end() -> None:\n    from terminator import policy\n"
    packages(tmp_path, drain="import ending\n", ending=room, terminator="")
    with pytest.raises(NotShared, match="lambda/ending imports terminator"):
        shipped("drain", tmp_path)


@pytest.mark.parametrize("function", ["grid_cleanup", "drain"])
def test_a_function_imports_nothing_of_ours_that_its_archive_lacks(function: str, tmp_path: Path) -> None:
    archive(function, LAMBDA, tmp_path)
    script = f"import sys; sys.path.insert(0, ''); import {function}.handler, contract; print(contract.__path__[0])"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert (done.stderr, done.stdout.strip()) == ("", str(tmp_path / "contract"))


@pytest.mark.parametrize(
    ("edited", "users"),
    [
        ("terminator/policy.py", {"terminator"}),
        ("grid_collect/handler.py", {"grid_collect"}),
        (
            "ending/policy.py",
            {"cleanup", "drain", "grid_cleanup", "launcher", "reaper", "search_cleanup", "terminator"},
        ),
        (
            "messages/work.py",
            {"branch_watch", "cleanup", "grid_cleanup", "keeper", "page_writer", "search_cleanup", "starter"},
        ),
        (
            "git_code/fetching.py",
            {"admission", "branch_watch", "image_build", "page_writer", "planner", "search", "search_cleanup"},
        ),
        ("starter/policy.py", {"starter"}),
        ("grids/policy.py", {"grid_cleanup", "grid_collect", "page_writer", "search", "search_cleanup"}),
        ("grid_plan/choice.py", {"page_writer", "planner", "search", "search_cleanup"}),
        ("pages/job.py", {"page_writer"}),
    ],
)
def test_an_edit_redeploys_the_functions_that_run_it_and_no_other(edited: str, users: set[str], tmp_path: Path) -> None:
    assert redeployed(edited, tmp_path) == users


def test_every_room_is_used_by_two_functions_at_least() -> None:
    users = {room: [name for name in FUNCTIONS if room in shipped(name, LAMBDA)] for room in ROOMS}
    # Whoever draws pages knows no AWS, and the people who draw them at home import the same room.
    assert {room: names for room, names in users.items() if len(names) < 2} == {"pages": ["page_writer"]}

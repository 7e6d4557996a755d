"""A workbench in the whole agent: the folder that its server has, in an image and without one, what is committed, and how it fails."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contract.codec import decode
from contract.commits import Commit
from contract.mounts import JobMount
from contract.orders import Order, OrderKind
from contract.reports import Exit
from contract.workbench import NOTICE, Workbench, build_command
from localaws.testing.waiting import HANG_S
from tests.builders import FILE_SYSTEMS, PLACE
from tests.node.containers import Dock
from tests.node.ordering import once_it_trains
from tests.node.programs import Program
from tests.node.pulls import Pulled, docker
from tests.node.world import REGION, Site

BENCH = Workbench(idle_minutes=60)
JOBS: dict[str, Any] = {"workbench": BENCH, "nodes": 1, "owner": "ada", "code": None}
JUPYTERLAB = """
import json, os, sys
os.chdir(next(one.partition("=")[2] for one in sys.argv if one.startswith("--ServerApp.root_dir=")))
print("serves", os.getcwd(), os.environ["CHECKPOINT_DIR"], "--ServerApp.port=8888" in sys.argv)
print("listens on", [one for one in sys.argv if one.startswith("--ServerApp.ip")])
print("has", sorted(os.listdir(".")))
with open("notebook.ipynb", "a") as file:
    file.write("cell ")
(config,) = [one.partition("=")[2] for one in sys.argv if one.startswith("--config=")]
print("config", os.path.isfile(config))
print("token of", len(bytes.fromhex(os.environ["JUPYTER_TOKEN"])), "bytes")
"""
"""In the place of the real one: what it is given, and a file that a person saves."""
WORKS = """
import json, os, sys, time
os.chdir(next(one.partition("=")[2] for one in sys.argv if one.startswith("--ServerApp.root_dir=")))
def save(name, text):
    with open(name, "w", encoding="latin-1") as file:
        file.write(text)
def tell(progress):
    with open(os.environ["PROGRESS_FILE"], "w") as file:
        json.dump(progress, file)
    time.sleep(0.05)  # two times of the file system
"""
WAITS = """
print("up", flush=True)
while True:
    time.sleep(1)
"""
ORDER = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="spot", by=0, author="attendant")
AT_BENCH = JobMount(file_system=FILE_SYSTEMS[1], region=REGION, at="/bench", read_only=False)
BESIDE = replace(AT_BENCH, at="/data")


@pytest.fixture
def dock(site: Site, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Dock:
    return Dock(site, tmp_path_factory.mktemp("images"), monkeypatch)


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder whose Python modules have a JupyterLab."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "jupyterlab.py").write_text(f"__version__ = '4'\nif __name__ == '__main__':\n{_indented(JUPYTERLAB)}")
    return str(folder)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def serve(site: Site, installed: str, **changes: Any) -> Exit:
    """The agent with a bench on the machine's own image."""
    path = os.pathsep.join([installed, os.environ.get("PYTHONPATH", "")])
    site.offer("", **{**JOBS, "command": build_command(BENCH), "environment": {"PYTHONPATH": path}, **changes})
    return site.run()


def newest(site: Site) -> Commit:
    """The newest commit of any attempt."""
    parts = sorted(
        key for _, key in site.aws.s3.objects if "/commits/checkpoints/" in key and key.endswith("/r0000.json")
    )
    return decode(Commit, site.aws.s3.objects[PLACE.bucket, parts[-1]])


def words(folder: Path, program: Program, patch: pytest.MonkeyPatch, **job: Any) -> dict[str, str]:
    """Place in the container to folder of the machine, of the mounts that docker gets."""
    patch.setenv("DOCK", str(folder))
    program("docker", docker("exit 0"))
    machine = Pulled(folder, variables={"PATH": f"{folder}/programs:/usr/bin:/bin"}, **job)
    (machine.work / "launcher").mkdir(parents=True)
    machine.run()
    machine.workspace.start((), {}, lambda _: None).wait(HANG_S)
    given = [call for call in machine.calls if call.split()[2] == "run"][-1].split()
    mounts = [value.split(",") for option, value in pairwise(given) if option == "--mount"]
    return {one[2].removeprefix("target="): one[1].removeprefix(f"source={machine.work}/") for one in mounts}


# What a container has


def test_a_container_has_the_checkpoint_folder_as_its_bench_and_the_scripts(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = words(tmp_path, program, monkeypatch, nodes=1, workbench=BENCH)
    assert found["/bench"] == found["/opt/ml/checkpoints"] == "checkpoints"
    assert found["/opt/ml/launcher"] == "launcher"


def test_a_mount_at_its_folder_is_the_only_one_there(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = words(tmp_path, program, monkeypatch, nodes=1, workbench=BENCH, mounted=(AT_BENCH,))
    assert "/bench" not in found  # the file system itself is one of the machine's, which this one lacks
    assert found["/opt/ml/checkpoints"] == "checkpoints"
    assert found["/opt/ml/launcher"] == "launcher"


def test_a_mount_beside_it_leaves_the_checkpoint_folder_there(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert words(tmp_path, program, monkeypatch, nodes=1, workbench=BENCH, mounted=(BESIDE,))["/bench"] == "checkpoints"


def test_a_job_that_is_no_bench_has_neither(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not {"/bench", "/opt/ml/launcher"} & words(tmp_path, program, monkeypatch).keys()


# The server


def test_the_server_has_the_checkpoint_folder_and_what_it_saves_is_committed(site: Site, installed: str) -> None:
    assert serve(site, installed).error == ""
    folder = site.root / "var/lib/trainyard/checkpoints"
    assert f"serves {folder} {folder} True" in site.lines
    assert "listens on ['--ServerApp.ip=127.0.0.1']" in site.lines
    assert {"config True", "token of 32 bytes"} <= set(site.lines)
    assert [file.path for file in newest(site).files] == ["notebook.ipynb"]


def test_the_next_attempt_goes_on_with_what_was_committed(site: Site, installed: str) -> None:
    serve(site, installed)
    site.attempt = 2
    site.imds.values["tags/instance/trainyard:attempt"] = "2"
    serve(site, installed)
    assert [line for line in site.lines if line.startswith("has")] == ["has []", "has ['notebook.ipynb']"]


def test_the_token_is_in_the_log_of_the_node_and_nowhere_else(site: Site, installed: str) -> None:
    serve(site, installed)
    (line,) = [one for one in site.lines if "/lab?token=" in one]
    token = line.partition("token=")[2]
    kept = [*site.aws.s3.objects.values(), *(json.dumps(item, default=str).encode() for item in site.aws.table.written)]
    assert not any(token.encode() in one for one in kept)
    assert not any(token in str(one) for one in site.sent())
    left = [file for file in site.root.rglob("*") if file.is_file() and not file.is_symlink()]
    assert not any(token.encode() in file.read_bytes() for file in left)


def test_an_image_serves_the_folder_of_that_name_and_its_files_are_committed(dock: Dock) -> None:
    context = dock.folder / "context"
    context.mkdir()
    (context / "jupyterlab.py").write_text(f"__version__ = '4'\nif __name__ == '__main__':\n{_indented(JUPYTERLAB)}")
    dock.offer("", command=build_command(BENCH), bakes="COPY jupyterlab.py /app/\nENV PYTHONPATH=/app\n", **JOBS)
    assert dock.site.run().error == ""
    assert {"config True", "token of 32 bytes"} <= set(dock.site.lines)
    assert [file.path for file in newest(dock.site).files] == ["notebook.ipynb"]


# What is committed, where an order ends the server at once


def work_until_ordered(site: Site, installed: str, script: str) -> Commit:
    """The last commit of a bench on which a person did that, a moment before an order."""
    Path(installed, "jupyterlab.py").write_text(
        f"__version__ = '4'\nif __name__ == '__main__':\n{_indented(WORKS + script + WAITS)}"
    )
    with once_it_trains(site, lambda: site.order(ORDER)):
        ending = serve(site, installed)
    assert ending.error == "Interrupted"
    return newest(site)


def test_what_a_training_says_there_holds_no_file_back(site: Site, installed: str) -> None:
    """PROGRESS_FILE names a checkpoint; what a person saves afterwards is theirs all the same."""
    commit = work_until_ordered(
        site, installed, "save('model.pt', 'x'); tell({'step': 7, 'checkpoint': 7}); save('notes.ipynb', 'later')\n"
    )
    assert {file.path for file in commit.files} == {"model.pt", "notes.ipynb", NOTICE}
    assert commit.step == -1


def test_a_file_that_is_cut_off_holds_no_other_back(site: Site, installed: str) -> None:
    """A person may have half a download; a trainer's checkpoint would not be taken."""
    commit = work_until_ordered(site, installed, "save('half.pt', 'PK\\x03\\x04'); save('notes.ipynb', 'beside it')\n")
    assert {file.path for file in commit.files} == {"half.pt", "notes.ipynb", NOTICE}


def test_one_of_two_files_that_were_saved_together_is_committed_alone(site: Site, installed: str) -> None:
    """And so is the notice, which is younger than what counts as finished elsewhere."""
    serve(site, installed)
    site.attempt = 2
    site.imds.values["tags/instance/trainyard:attempt"] = "2"
    commit = work_until_ordered(site, installed, "save('notebook.ipynb', 'a moment before')\n")
    assert {file.path for file in commit.files} == {"notebook.ipynb", NOTICE}
    assert any(b"a moment before" in body for body in site.aws.s3.objects.values())


# What fails


def test_a_machine_whose_image_has_no_jupyterlab_fails_by_name(site: Site) -> None:
    site.offer("", **JOBS, command=build_command(BENCH), environment={"PYTHONPATH": ""})
    ending = site.run()
    assert (ending.error, ending.code) == ("TrainingFailed", 1)
    assert "rank 0: workbench: the machine's image has no JupyterLab, and the request does not allow" in ending.reason
    assert "allowed: install: true, or an image that has jupyterlab" in ending.reason


def test_an_image_that_has_none_and_may_not_install_it_fails_by_its_name(dock: Dock) -> None:
    dock.offer("", command=build_command(BENCH), **JOBS)
    ending = dock.site.run()
    assert (ending.error, ending.code) == ("TrainingFailed", 1)
    assert "workbench: the image images:v1 has no JupyterLab" in ending.reason
    assert not any("installs" in line for line in dock.site.lines)


def test_an_install_that_fails_says_so_and_shows_pips_words(site: Site) -> None:
    bench = replace(BENCH, install=True)
    nowhere = {"PYTHONPATH": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nothing-here", "PIP_CONFIG_FILE": "/dev/null"}
    site.offer("", **{**JOBS, "workbench": bench}, command=build_command(bench), environment=nowhere)
    ending = site.run()
    assert "could not be installed into the machine's image; the lines above in the node's log say why" in ending.reason
    assert any("No matching distribution found for jupyterlab" in line for line in site.lines)


def test_no_notice_is_left_by_a_bench_that_ended_itself(site: Site, installed: str) -> None:
    serve(site, installed)
    assert NOTICE not in [file.path for file in newest(site).files]

"""A workbench's server itself, a real JupyterLab: where its kernels and terminals begin, what they get, and which modules are its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.launching import bench
from contract.workbench import PORT, TOKEN, Workbench, build_command
from localaws.ports import Port
from localaws.testing.waiting import until
from tests.rehearsal.benches import PYTHON, Laboratory, status_of

pytestmark = pytest.mark.rehearsal
FIRST_PORT = 8920
SECRET = "of-this-bench-alone"
SAVED = ("queue", "tornado", "jupyter_config", "jupyter_server_config", "jupyter_lab_config")
"""Modules and configurations that the server has too, as a person saved them."""


@dataclass
class Server:
    """One that answers."""

    folder: Path
    address: str
    group: int

    def call(self, method: str, path: str, body: object = None) -> int:
        """What it answers, as a person's page calls it."""
        words = {"Authorization": f"token {SECRET}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            called = urllib.request.Request(f"{self.address}{path}", data, words, method=method)
            with urllib.request.urlopen(called, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as problem:
            return problem.code

    @property
    def last_activity(self) -> str:
        words = {"Authorization": f"token {SECRET}"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}/api/status", headers=words)) as answer:
            return str(json.load(answer)["last_activity"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, laboratory: Laboratory) -> Iterator[Server]:
    """In a folder that is its HOME as well, with all of that saved in it."""
    root = tmp_path_factory.mktemp("server")
    folder, programs, port = root / "bench", root / "programs", Port(FIRST_PORT)
    folder.mkdir()
    for name in SAVED:
        (folder / f"{name}.py").write_text("raise SystemExit('of the folder')")
    programs.mkdir()
    (programs / "python").symlink_to(PYTHON)
    bench.lay_out(root / "launcher")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    installed = laboratory.installed
    extensions = Path(installed["JUPYTER_PATH"]).parents[1] / "etc" / "jupyter"  # terminals are one
    own = {"HOME": str(folder), "PATH": path, "JUPYTER_CONFIG_PATH": str(extensions)}
    environment = {**os.environ, **installed, **own}
    words = [word.replace(f"port={PORT}", f"port={port.number}") for word in build_command(Workbench(idle_minutes=60))]
    with (root / "log").open("w") as log:
        ran = subprocess.Popen(
            ["/bin/sh", str(root / "launcher" / bench.SCRIPT), str(folder), "", *words],
            env=bench.add_variables(environment, str(root / "launcher"), SECRET),
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port.number}"

    def answers() -> bool:
        assert ran.poll() is None, (root / "log").read_text()
        return status_of(f"{address}/api/contents?token={SECRET}") == 200

    try:
        until(answers)
        yield Server(folder, address, ran.pid)
    finally:
        ran.send_signal(signal.SIGTERM)
        ran.wait()
        port.release()


def list_children(server: Server) -> Sequence[Path]:
    """Of the server's process, as /proc has them."""
    found = Path(f"/proc/{server.group}/task").glob("*/children")
    return [Path("/proc", pid) for one in found for pid in one.read_text().split()]


def test_what_a_person_saved_ends_no_server_and_the_token_is_needed(server: Server) -> None:
    assert server.call("GET", "/api/contents/queue.py") == 200
    assert status_of(f"{server.address}/api/contents") == 403
    assert status_of(f"{server.address}/api/contents?token=") == 403


def test_kernels_and_terminals_begin_in_the_folder_without_the_token(server: Server) -> None:
    assert server.call("POST", "/api/kernels", {"name": "python3"}) == 201
    assert server.call("POST", "/api/terminals") == 200
    children = until(lambda: found if len(found := list_children(server)) >= 2 else None)
    for child in children:
        assert (child / "cwd").readlink() == server.folder
        variables = (child / "environ").read_bytes()
        assert SECRET.encode() not in variables
        assert TOKEN.encode() + b"=" not in variables


def test_no_file_of_the_folder_has_the_token_although_it_is_its_home(server: Server) -> None:
    files = [file for file in server.folder.rglob("*") if file.is_file()]
    assert files
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


def test_what_a_person_deletes_is_gone(server: Server) -> None:
    (server.folder / "old" / "inner").mkdir(parents=True)
    (server.folder / "old" / "inner" / "model.bin").write_text("large")
    assert server.call("DELETE", "/api/contents/old") == 204
    assert not list(server.folder.rglob("model.bin"))


def test_a_file_below_a_folder_of_the_pages_name_counts_as_activity_and_the_pages_own_words_do_not(
    server: Server,
) -> None:
    (server.folder / "lab" / "api").mkdir(parents=True)
    before = server.last_activity
    workspace = {"data": {}, "metadata": {"id": "default"}}
    assert server.call("PUT", "/lab/api/workspaces/default", workspace) == 204
    assert server.last_activity == before
    assert server.call("PUT", "/api/contents/lab/api/x.py", {"type": "file", "format": "text", "content": "x"}) == 201
    assert server.last_activity > before

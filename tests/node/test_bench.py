"""A node's workbench: what is started and where, who gets its token, and what a person reads when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent.failures import CannotStart
from agent.identity import NodeIdentity
from agent.launching import bench
from agent.launching.start import Launch
from agent.metadata import Metadata
from agent.store import Store
from agent.training import RunningTraining
from contract.containers import Container
from contract.mounts import JobMount
from contract.workbench import (
    BROKEN,
    NO_PYTHON,
    NOT_INSTALLED,
    NOT_THERE,
    NOTICE,
    TOKEN,
    TOO_OLD,
    Workbench,
    build_command,
)
from tests.builders import FILE_SYSTEMS, JOB, NOW
from tests.node.programs import Program
from tests.node.recorder import Recorder

BENCH = Workbench(idle_minutes=60, install=False)
ONE = replace(JOB, nodes=1, workbench=BENCH, command=build_command(BENCH))
NODE = NodeIdentity(
    deployment="yard", job=JOB.id, attempt=1, rank=0, instance="i-0abc", region=JOB.home_region, deadline=0
)
IMAGE = Container(source="images:torch-1", digest="sha256:0", repositories={})


class Running:
    """A training that runs, or has ended with a code."""

    pid, heard_at, why, ended_s = 1, 0.0, "", 0.0

    def __init__(self, code: int | None = None) -> None:
        self.code, self.got, self.tail = code, list[signal.Signals](), deque[str]()

    def wait(self, _timeout_s: float) -> int | None:
        return self.code

    def stop(self, first: signal.Signals, _grace_s: float) -> int:
        self.got.append(first)
        return 0

    def end(self, _linger_s: float = 0.0) -> int:
        return self.code or 0


class Started:
    """A bench that was started, with everything that was said of it."""

    def __init__(
        self, work: Path, job: Any = ONE, environment: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        self.workspace, self.lines, self.notes = Recorder(Running()), list[str](), list[str]()
        (work / "checkpoints").mkdir(parents=True, exist_ok=True)
        launch = Launch(
            job, NODE, cast(Any, self.workspace), Store(cast(Any, None), "bytes"), work,
            note=self.notes.append, pause=lambda _: None, tell=self.notes.append, on_failure=lambda _: None, **options,
        )  # fmt: skip
        self.running = launch.start(environment or {}, cast(Metadata, None), self.lines.append)

    @property
    def token(self) -> str:
        return self.workspace.variables[TOKEN]


def notice(folder: Path) -> str:
    return (folder / NOTICE).read_text()


def server(job: Any, folder: Path, code: int | None = None, *, at: float = NOW) -> bench.BenchServer:
    return serve(Running(code), job, folder, at=at)


def serve(
    inner: Running, job: Any, folder: Path, *, at: float = NOW, notes: list[str] | None = None
) -> bench.BenchServer:
    note = [] if notes is None else notes
    return bench.BenchServer(cast(RunningTraining, inner), job, folder, note=note.append, now=lambda: at)


# The start


def test_the_command_of_admit_runs_in_the_checkpoint_folder(tmp_path: Path) -> None:
    ran = Started(tmp_path).workspace.words
    assert ran[:4] == ["/bin/sh", "/opt/launcher/bench.sh", str(tmp_path / "checkpoints"), ""]
    assert tuple(ran[4:]) == ONE.command


def test_in_an_image_it_runs_in_the_folder_of_that_name(tmp_path: Path) -> None:
    assert Started(tmp_path, replace(ONE, container=IMAGE)).workspace.words[2] == "/bench"


def test_on_a_mount_it_runs_where_the_machine_has_the_mount(tmp_path: Path) -> None:
    there = JobMount(file_system=FILE_SYSTEMS[1], region=JOB.home_region, at="/bench", read_only=False)
    places = [(tmp_path / "elsewhere", there)]
    job = replace(ONE, mounted=(there,))
    assert Started(tmp_path, job, places=places).workspace.words[2] == str(tmp_path / "elsewhere")


def test_every_start_has_a_new_token_of_32_bytes(tmp_path: Path) -> None:
    tokens = {Started(tmp_path).token for _ in range(3)}
    assert len(tokens) == 3
    assert all(len(bytes.fromhex(one)) == 32 for one in tokens)


def test_a_token_of_the_request_is_not_the_one(tmp_path: Path) -> None:
    assert Started(tmp_path, environment={TOKEN: "known"}).token != "known"


def test_the_log_of_the_node_says_how_it_is_opened_and_nothing_else_has_the_token(tmp_path: Path) -> None:
    started = Started(tmp_path)
    tunnel, address = started.lines
    assert "aws ssm start-session" in tunnel
    assert "--target i-0abc" in tunnel
    assert "portNumber=8888,localPortNumber=8888" in tunnel
    assert address.endswith(f"http://127.0.0.1:8888/lab?token={started.token}")
    assert not any(started.token in one for one in (*started.notes, *started.workspace.words))
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(started.token.encode() in one for one in files)


# The script


def run(tmp_path: Path, package: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    bench.lay_out(tmp_path / "scripts")
    shown = tmp_path / "shown"
    shown.mkdir(exist_ok=True)
    script = tmp_path / "scripts" / bench.SCRIPT
    variables = {
        **os.environ,
        "PATH": f"{tmp_path}/programs:/usr/bin:/bin",
        bench.CONFIG_VARIABLE: "/config.py",
        **more,
    }
    return subprocess.run(
        ["/bin/sh", str(script), str(shown), package, *words],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


PYTHON = 'case "$*" in *"import jupyterlab"*) [ -e "%s/has" ] || exit 64 ;; *"pip install"*) %s ;; *) echo "ran $* in $PWD" ;; esac'
PRESENT = """
import os, queue, sys
__version__ = "4.6.6"
if __name__ == "__main__":
    print("serves", [one for one in sys.argv if "root_dir" in one], queue.__name__, os.environ["JUPYTER_RUNTIME_DIR"])
"""


def put_jupyterlab(tmp_path: Path, program: Program, text: str) -> dict[str, str]:
    """A real Python that has this JupyterLab; the variables by which it finds it."""
    program("python", f'exec {sys.executable} "$@"')
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "jupyterlab.py").write_text(text)
    return {"PYTHONPATH": str(tmp_path / "site")}


def test_what_the_image_has_serves_the_folder_of_the_bench(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, "exit 1"))
    (tmp_path / "has").touch()
    done = run(tmp_path, "", "python", "-m", "jupyterlab")
    words = f"--config=/config.py --ServerApp.root_dir={tmp_path}/shown"
    assert done.stdout.strip() == f"ran -m jupyterlab {words} in {tmp_path}/scripts"


def test_without_jupyterlab_nothing_is_installed_that_the_request_does_not_allow(
    tmp_path: Path, program: Program
) -> None:
    program("python", PYTHON % (tmp_path, f'touch "{tmp_path}/installed"'))
    assert run(tmp_path, "", "python", "-m", "jupyterlab").returncode == NOT_THERE
    assert not (tmp_path / "installed").exists()


def test_without_jupyterlab_the_pinned_one_is_installed_first(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, f'echo "$*" > "{tmp_path}/installed"; touch "{tmp_path}/has"'))
    assert "ran -m jupyterlab" in run(tmp_path, "jupyterlab==1.2.3", "python", "-m", "jupyterlab").stdout
    assert (tmp_path / "installed").read_text().strip().endswith("jupyterlab==1.2.3")


def test_an_install_that_fails_starts_nothing(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, "exit 1"))
    done = run(tmp_path, "jupyterlab==1.2.3", "python", "-m", "jupyterlab")
    assert done.returncode == NOT_INSTALLED
    assert "ran" not in done.stdout


@pytest.mark.parametrize("module", ["queue", "socket", "runpy", "jupyterlab", "jupyter_config"])
def test_a_module_that_a_person_saved_in_the_folder_is_not_the_servers(
    tmp_path: Path, program: Program, module: str
) -> None:
    variables = put_jupyterlab(tmp_path, program, PRESENT)
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / f"{module}.py").write_text("raise SystemExit('of the folder')")
    done = run(tmp_path, "", "python", "-m", "jupyterlab", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"--ServerApp.root_dir={tmp_path}/shown" in done.stdout


def test_files_that_have_the_token_are_outside_of_home_and_for_the_server_alone(
    tmp_path: Path, program: Program
) -> None:
    variables = put_jupyterlab(tmp_path, program, PRESENT)
    home = str(tmp_path / "shown")
    done = run(
        tmp_path, "", "python", "-m", "jupyterlab", **variables, HOME=home, TMPDIR=home, JUPYTER_RUNTIME_DIR=home
    )
    folder = Path(done.stdout.split()[-1])
    assert not folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o077 == 0
    folder.rmdir()


def test_an_image_without_python_ends_with_a_code_of_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, "jupyterlab==1.2.3", "python", "-m", "jupyterlab", PATH=str(tmp_path / "programs"))
    assert done.returncode == NO_PYTHON


@pytest.mark.parametrize("package", ["", "jupyterlab==1.2.3"])
def test_one_that_cannot_be_imported_shows_its_error(tmp_path: Path, program: Program, package: str) -> None:
    variables = put_jupyterlab(tmp_path, program, "import a_library_of_it")
    done = run(tmp_path, package, "python", "-m", "jupyterlab", **variables)
    assert done.returncode == BROKEN
    assert "No module named 'a_library_of_it'" in done.stderr
    assert "installs" not in done.stdout


def test_one_that_cannot_be_imported_after_its_installation_is_not_served(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, "true"))
    done = run(tmp_path, "jupyterlab==1.2.3", "python", "-m", "jupyterlab")
    assert done.returncode == BROKEN
    assert "ran" not in done.stdout


@pytest.mark.parametrize(("version", "code"), [("3.6.8", TOO_OLD), ("0.35", TOO_OLD), ("4.0.0rc1", 0), ("10.1", 0)])
def test_one_that_is_older_than_version_4_is_not_served(
    tmp_path: Path, program: Program, version: str, code: int
) -> None:
    variables = put_jupyterlab(tmp_path, program, PRESENT.replace("4.6.6", version))
    assert run(tmp_path, "", "python", "-m", "jupyterlab", **variables).returncode == code


# The end


@pytest.mark.parametrize(
    ("job", "name"), [(ONE, "the machine's image"), (replace(ONE, container=IMAGE), "images:torch-1")]
)
def test_an_image_without_jupyterlab_is_named_with_what_to_do(tmp_path: Path, job: Any, name: str) -> None:
    with pytest.raises(CannotStart, match=f"{name} has no JupyterLab.*allowed: install: true"):
        server(job, tmp_path, NOT_THERE).wait(0.0)


def test_an_install_that_failed_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="could not be installed into the machine's image"):
        server(ONE, tmp_path, NOT_INSTALLED).wait(0.0)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (NO_PYTHON, "the machine's image has no Python: .*allowed: an image that has Python 3"),
        (BROKEN, "the machine's image has a JupyterLab that cannot be imported; the lines above .*allowed: "),
        (TOO_OLD, "the machine's image has a JupyterLab older than version 4; allowed: an image with JupyterLab 4"),
    ],
)
def test_whatever_keeps_it_from_being_served_is_named(tmp_path: Path, code: int, words: str) -> None:
    with pytest.raises(CannotStart, match=f"workbench: {words}"):
        server(ONE, tmp_path, code).wait(0.0)


@pytest.mark.parametrize("code", [0, 1, 137])
def test_every_other_code_is_its_own(tmp_path: Path, code: int) -> None:
    assert server(ONE, tmp_path, code).wait(0.0) == code


def test_a_bench_that_has_time_left_says_nothing(tmp_path: Path) -> None:
    server(ONE, tmp_path, at=ONE.stop_at - 901).wait(0.0)
    assert not (tmp_path / NOTICE).exists()


def test_before_its_hours_are_over_a_file_in_its_folder_says_so(tmp_path: Path) -> None:
    server(ONE, tmp_path, at=ONE.stop_at - 900).wait(0.0)
    assert "are over at 2027-01-16" in notice(tmp_path)
    assert f"resume_from: {ONE.id}" in notice(tmp_path)


def test_a_person_who_deletes_the_file_does_not_get_it_again(tmp_path: Path) -> None:
    running = server(ONE, tmp_path, at=ONE.stop_at)
    running.wait(0.0)
    (tmp_path / NOTICE).unlink()
    running.wait(0.0)
    assert not (tmp_path / NOTICE).exists()


def test_an_order_to_end_leaves_the_file_for_the_one_who_goes_on(tmp_path: Path) -> None:
    inner = Running()
    serve(inner, ONE, tmp_path).stop(signal.SIGTERM, 1.0)
    assert inner.got == [signal.SIGTERM]
    assert "was ordered to end" in notice(tmp_path)
    assert f"where {ONE.id} does not go on by itself, as on spot, go on with resume_from: {ONE.id}" in notice(tmp_path)


def test_the_next_bench_removes_the_file(tmp_path: Path) -> None:
    (tmp_path / NOTICE).write_text("old")
    server(ONE, tmp_path)
    assert not (tmp_path / NOTICE).exists()


def test_on_a_mount_nothing_is_promised_of_a_commit(tmp_path: Path) -> None:
    there = JobMount(file_system=FILE_SYSTEMS[1], region=JOB.home_region, at="/bench", read_only=False)
    server(replace(ONE, mounted=(there,)), tmp_path, at=ONE.stop_at).wait(0.0)
    assert "the mount stays" in notice(tmp_path)
    assert "resume_from" not in notice(tmp_path)


def test_the_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kept")
    running = server(ONE, tmp_path, at=ONE.stop_at)
    (tmp_path / NOTICE).symlink_to(secret)
    running.wait(0.0)
    assert secret.read_text() == "kept"


@pytest.mark.parametrize("what", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("races", [False, True])
def test_nothing_that_a_job_puts_in_its_place_is_written_through_or_waited_for(
    tmp_path: Path, what: str, races: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, place, notes = tmp_path / "secret", tmp_path / NOTICE, list[str]()
    secret.write_text("kept")
    puts: dict[str, Callable[[], object]] = {
        "link": lambda: place.symlink_to(secret), "hard link": lambda: place.hardlink_to(secret),
        "pipe": lambda: os.mkfifo(place), "folder": place.mkdir,
    }  # fmt: skip
    running = serve(Running(), ONE, tmp_path, at=ONE.stop_at, notes=notes)
    if races:
        unlink = Path.unlink

        def unlink_and_put(file: Path, missing_ok: bool = False) -> None:
            try:
                unlink(file, missing_ok)
            finally:
                puts[what]()

        monkeypatch.setattr(Path, "unlink", unlink_and_put)
    else:
        puts[what]()
    assert running.wait(0.0) is None
    assert secret.read_text() == "kept"
    assert bool(notes) == (races or what == "folder")
    assert all(f"workbench: its folder does not get the file {NOTICE}: " in one for one in notes)
    assert place.is_file() == (what.endswith("link") if races else what != "folder")


def test_a_folder_that_does_not_answer_keeps_no_order_from_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, answers = Running(), threading.Event()
    running = serve(inner, ONE, tmp_path)
    monkeypatch.setattr(bench, "ANSWERS_S", 0.0)
    monkeypatch.setattr(Path, "unlink", lambda _file, **_: answers.wait())
    try:
        running.stop(signal.SIGTERM, 1.0)
        assert inner.got == [signal.SIGTERM]
    finally:
        answers.set()


def test_a_folder_that_is_full_or_gone_keeps_no_bench_from_running(tmp_path: Path) -> None:
    assert server(ONE, tmp_path / "gone", at=ONE.stop_at).wait(0.0) is None

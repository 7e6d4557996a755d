"""A node's workbench: what is started and where, who gets its token, and what a person reads when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
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
from agent.workspace import Folders
from contract.containers import Container
from contract.mounts import JobMount
from contract.workbench import NOT_INSTALLED, NOT_THERE, NOTICE, NOTICE_S, TOKEN, Workbench, build_command
from tests.builders import FILE_SYSTEMS, JOB, NOW
from tests.node.programs import Program

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


class Recorder:
    """A workspace that starts nothing."""

    folders = Folders(checkpoints="/c", artifacts="/a", progress_file="/p", role="/r", launcher="/opt/launcher")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.variables: dict[str, str] = {}

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        _on_line: Callable[[str], None],
        _arguments: Sequence[str] = (),
    ) -> RunningTraining:
        self.words, self.variables = list(command), dict(environment)
        return cast(RunningTraining, Running())


class Started:
    """A bench that was started, with everything that was said of it."""

    def __init__(
        self, work: Path, job: Any = ONE, environment: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        self.workspace, self.lines, self.notes = Recorder(), list[str](), list[str]()
        (work / "checkpoints").mkdir(parents=True, exist_ok=True)
        launch = Launch(
            job, NODE, cast(Any, self.workspace), Store(cast(Any, None), "bytes"), work,
            note=self.notes.append, pause=lambda _: None, tell=self.notes.append, **options,
        )  # fmt: skip
        self.running = launch.start(environment or {}, cast(Metadata, None), self.lines.append)

    @property
    def token(self) -> str:
        return self.workspace.variables[TOKEN]


def notice(folder: Path) -> str:
    return (folder / NOTICE).read_text()


def server(job: Any, folder: Path, code: int | None = None, *, at: float = NOW) -> bench.BenchServer:
    return bench.BenchServer(cast(RunningTraining, Running(code)), job, folder, now=lambda: at)


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


def run(tmp_path: Path, package: str, *words: str) -> subprocess.CompletedProcess[str]:
    bench.lay_out(tmp_path / "scripts")
    shown = tmp_path / "shown"
    shown.mkdir()
    script = tmp_path / "scripts" / bench.SCRIPT
    variables = {**os.environ, "PATH": f"{tmp_path}/programs:/usr/bin:/bin", bench.CONFIG_VARIABLE: "/config.py"}
    return subprocess.run(
        ["/bin/sh", str(script), str(shown), package, *words],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


PYTHON = (
    'case "$*" in *"import jupyterlab"*) [ -e "%s/has" ] ;; *"pip install"*) %s ;; *) echo "ran $* in $PWD" ;; esac'
)


def test_what_the_image_has_runs_in_the_folder_of_the_bench(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, "exit 1"))
    (tmp_path / "has").touch()
    done = run(tmp_path, "", "python", "-m", "jupyterlab")
    assert done.stdout.strip() == f"ran -m jupyterlab --config=/config.py in {tmp_path}/shown"


def test_without_jupyterlab_nothing_is_installed_that_the_request_does_not_allow(
    tmp_path: Path, program: Program
) -> None:
    program("python", PYTHON % (tmp_path, f'touch "{tmp_path}/installed"'))
    assert run(tmp_path, "", "python", "-m", "jupyterlab").returncode == NOT_THERE
    assert not (tmp_path / "installed").exists()


def test_without_jupyterlab_the_pinned_one_is_installed_first(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, f'echo "$*" > "{tmp_path}/installed"'))
    assert "ran -m jupyterlab" in run(tmp_path, "jupyterlab==1.2.3", "python", "-m", "jupyterlab").stdout
    assert (tmp_path / "installed").read_text().strip().endswith("jupyterlab==1.2.3")


def test_an_install_that_fails_starts_nothing(tmp_path: Path, program: Program) -> None:
    program("python", PYTHON % (tmp_path, "exit 1"))
    done = run(tmp_path, "jupyterlab==1.2.3", "python", "-m", "jupyterlab")
    assert done.returncode == NOT_INSTALLED
    assert "ran" not in done.stdout


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


@pytest.mark.parametrize("code", [0, 1, 137])
def test_every_other_code_is_its_own(tmp_path: Path, code: int) -> None:
    assert server(ONE, tmp_path, code).wait(0.0) == code


def test_a_bench_that_has_time_left_says_nothing(tmp_path: Path) -> None:
    server(ONE, tmp_path, at=ONE.stop_at - NOTICE_S - 1).wait(0.0)
    assert not (tmp_path / NOTICE).exists()


def test_before_its_hours_are_over_a_file_in_its_folder_says_so(tmp_path: Path) -> None:
    server(ONE, tmp_path, at=ONE.stop_at - NOTICE_S).wait(0.0)
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
    bench.BenchServer(cast(RunningTraining, inner), ONE, tmp_path, now=lambda: NOW).stop(signal.SIGTERM, 1.0)
    assert inner.got == [signal.SIGTERM]
    assert "was ordered to end" in notice(tmp_path)


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


def test_a_folder_that_is_full_or_gone_keeps_no_bench_from_running(tmp_path: Path) -> None:
    assert server(ONE, tmp_path / "gone", at=ONE.stop_at).wait(0.0) is None

"""The agent's container under docker itself: which options it takes, what a container finds, and what docker says of its ends.

It runs for root, where Debian's docker.io and docker-registry are installed; there is no GPU, no EFA and no ECR here.
"""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.container import options
from agent.container.container_workspace import ContainerWorkspace
from agent.container.process import ContainerProcess
from agent.failures import CannotStart, MachineTrouble
from contract import containers, training
from contract.containers import Container
from localaws.testing.waiting import HANG_S, until
from tests.builders import JOB
from tests.node import dockerd
from tests.node.dockerd import RealDocker
from tests.node.world import REGION

pytestmark = pytest.mark.skipif(bool(dockerd.lacks()), reason=dockerd.lacks())
ENDS_S = 20.0
SAVES = 'trap "echo saved > $CHECKPOINT_DIR/last.pt; exit 0" TERM; echo up; while :; do sleep 0.05; done'


@pytest.fixture(scope="module")
def docker() -> Iterator[RealDocker]:
    made = RealDocker()
    yield made
    made.close()


class Node:
    """A machine whose agent prepares and starts containers of one docker."""

    def __init__(self, docker: RealDocker, folder: Path) -> None:
        self._docker, self._folder = docker, folder
        self.work, self.notes, self.lines = folder / "work", list[str](), list[str]()
        self.environment = {
            training.CHECKPOINT_DIR: containers.CHECKPOINTS,
            training.ARTIFACTS_DIR: containers.ARTIFACTS,
        }
        self.workspace: ContainerWorkspace | None = None

    def prepared(self, digest: str, name: str, arguments: tuple[str, ...] = (), **job: Any) -> ContainerWorkspace:
        """The workspace once the image is pulled."""
        repository = f"{self._docker.registry}/{name}"
        container = Container(source=name, digest=digest, repositories={REGION: repository}, arguments=arguments)
        for one in ("checkpoints", "artifacts", "code", "role"):
            (self.work / one).mkdir(parents=True, exist_ok=True)
        facts: dict[str, Any] = {"code": None, "gpus": {}} | job
        self.workspace = workspace = ContainerWorkspace(
            replace(JOB, container=container, **facts),
            container,
            REGION,
            root=self._folder,
            work=self.work,
            variables={"PATH": os.environ["PATH"], "DOCKER_HOST": self._docker.host},
            token=lambda _: base64.b64encode(b"AWS:hush").decode(),
            instance_type=lambda: "t3.medium",
            pause=time.sleep,
            note=self.notes.append,
            tell=self.notes.append,
        )
        workspace.begin()
        workspace.prepare(self.work / "code")
        return workspace

    def start(
        self, lines: list[str], *, command: tuple[str, ...] = (), arguments: tuple[str, ...] = (), **job: Any
    ) -> ContainerProcess:
        """Builds, pulls and starts an image whose Dockerfile has these lines."""
        workspace = self.prepared(self.push(lines), self.name(lines), arguments, **job)
        return workspace.start(command, self.environment, self.lines.append)

    @staticmethod
    def name(lines: list[str]) -> str:
        """Of the repository of an image with these lines."""
        return f"made/{hashlib.sha256(repr(lines).encode()).hexdigest()[:12]}"

    def push(self, lines: list[str]) -> str:
        """Leaves the image in the registry. Returns its digest."""
        return self._docker.push(self.name(lines), lines)

    def run(self, lines: list[str], **ways: Any) -> int:
        """The exit code. Raises what the agent would report."""
        child = self.start(lines, **ways)
        return self.ended(child)

    def ended(self, child: ContainerProcess) -> int:
        end = time.monotonic() + ENDS_S
        while (code := child.wait(0.2)) is None:
            assert time.monotonic() < end, self.lines
        child.end()
        return code

    def shell(self, script: str, **ways: Any) -> int:
        return self.run([], command=("sh", "-c", script), **ways)


@pytest.fixture
def node(docker: RealDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setenv("DOCKER_HOST", docker.host)
    monkeypatch.setattr(options, "LIMITS", dockerd.allowed(options.LIMITS))
    made = Node(docker, tmp_path)
    yield made
    if made.workspace is not None:
        made.workspace.close()


def containers_left(docker: RealDocker) -> list[str]:
    return docker.says("ps", "--all", "--quiet").split()


def test_an_image_is_pulled_by_its_digest_and_runs_its_entry_point_with_the_arguments(node: Node) -> None:
    lines = ['ENTRYPOINT ["sh", "-c", "for one; do echo \\"<$one>\\"; done", "name"]', 'CMD ["never"]']
    assert node.run(lines, arguments=("--epochs", "3 4", "$HOME", "")) == 0
    assert node.lines == ["<--epochs>", "<3 4>", "<$HOME>", "<>"]
    assert any(note.startswith("pulled the image") for note in node.notes)


def test_a_command_runs_in_place_of_the_entry_point(node: Node) -> None:
    assert node.run(['ENTRYPOINT ["false"]'], command=("sh", "-c", "echo $0 $1"), arguments=("a", "b")) == 0
    assert node.lines == ["a b"]


def test_the_limits_are_those_that_docker_was_told(node: Node) -> None:
    assert node.shell("cat /proc/self/limits; cat /proc/self/oom_score_adj; cat /proc/mounts") == 0
    found = {line.split("  ")[0]: line.split()[-3:-1] for line in node.lines if line.startswith("Max ")}
    wanted = {
        "memlock=-1:-1": ("Max locked memory", ["unlimited", "unlimited"]),
        f"nofile={options.FILES}:{options.FILES}": ("Max open files", ["1048576", "1048576"]),
        f"stack={options.STACK}:{options.STACK}": ("Max stack size", ["67108864", "67108864"]),
    }
    assert options.LIMITS
    for name, said in map(wanted.__getitem__, options.LIMITS):
        assert found[name] == said
    assert "500" in node.lines
    assert any(line.startswith("shm /dev/shm tmpfs") for line in node.lines)


def test_the_folders_of_the_job_are_there_and_whoever_the_image_runs_as_may_write_to_them(node: Node) -> None:
    script = (
        "id -u; for one in /opt/ml/checkpoints /opt/ml/model /opt/ml/code /opt/ml/input/data /opt/ml/output/progress; "
        "do touch $one/mine && echo $one; done; pwd; touch /opt/ml/role/mine 2>/dev/null || echo read only"
    )
    lines = ["USER worker"]
    code = node.run(lines, command=("sh", "-c", script), code=JOB.code, job_role="datasets")
    assert code == 0
    assert node.lines[0] == "1234"
    assert node.lines[1:6] == [
        containers.CHECKPOINTS, containers.ARTIFACTS, containers.CODE, containers.DATA, containers.PROGRESS,
    ]  # fmt: skip
    assert node.lines[6] == containers.CODE
    assert node.lines[-1] == "read only"
    assert (node.work / "checkpoints/mine").stat().st_uid == 1234


def test_values_arrive_as_they_are_and_stand_nowhere_on_dockers_command_line(node: Node) -> None:
    values = {
        "MANY": "-----BEGIN\nabc\n\n  d\n",
        "LONG": "é" * 40_000,
        "HASH": "# no comment",
        "BLANK": "  x  ",
        "NONE": "",
    }
    node.environment |= values
    hashed = "; ".join(f'printf %s "${one}" | sha256sum' for one in values)
    child = node.start([], command=("sh", "-c", f"{hashed}; sleep 600"))
    until(lambda: len(node.lines) == len(values), ENDS_S)
    shown = " ".join(
        one.read_bytes().decode(errors="replace")
        for one in Path("/proc").glob("[0-9]*/cmdline")
        if b"--env-file" in one.read_bytes()
    )
    child.end(0.0)
    assert [line.split()[0] for line in node.lines] == [
        hashlib.sha256(value.encode()).hexdigest() for value in values.values()
    ]
    assert "--env-file" in shown
    assert "BEGIN" not in shown


def test_a_variable_of_the_images_that_leads_to_other_keys_is_gone_with_a_job_role(node: Node) -> None:
    lines = ["ENV AWS_PROFILE=theirs OTHER=stays"]
    assert node.run(lines, command=("env",), job_role="datasets") == 0
    assert "OTHER=stays" in node.lines
    assert not any(line.startswith("AWS_PROFILE") for line in node.lines)


@pytest.mark.parametrize("code", [0, 3, 125, 126, 127])
def test_the_exit_code_is_the_programs_own(node: Node, code: int) -> None:
    assert node.shell(f"exit {code}") == code


def test_a_program_that_a_signal_ends_has_128_and_its_number(node: Node) -> None:
    assert node.shell("kill -9 $$") == 137


def test_sigterm_reaches_the_program_which_saves(node: Node) -> None:
    child = node.start([], command=("sh", "-c", SAVES))
    until(lambda: node.lines == ["up"], ENDS_S)
    assert child.stop(signal.SIGTERM, HANG_S) == 0
    assert (node.work / "checkpoints/last.pt").read_text() == "saved\n"


def test_sigterm_that_comes_while_docker_starts_the_container_is_not_lost(node: Node) -> None:
    child = node.start([], command=("sh", "-c", "sleep 600"))
    assert child.stop(signal.SIGTERM, HANG_S) == 143


def test_a_program_that_ignores_sigterm_is_killed_with_all_that_it_started(node: Node) -> None:
    child = node.start([], command=("sh", "-c", 'trap "" TERM; (sleep 601 &) ; echo up; while :; do sleep 0.1; done'))
    until(lambda: node.lines == ["up"], ENDS_S)
    assert child.stop(signal.SIGTERM, 0.5) == 137
    assert not [one for one in Path("/proc").glob("[0-9]*/cmdline") if one.read_bytes() == b"sleep\x00601\x00"]


def test_the_pid_is_that_of_the_containers_first_process(node: Node) -> None:
    child = node.start([], command=("sh", "-c", "echo up; sleep 602"))
    until(lambda: node.lines == ["up"], ENDS_S)
    assert b"docker-init" in Path("/proc", str(child.pid), "cmdline").read_bytes()
    child.end(0.0)


def test_nothing_of_a_container_is_left_its_own_volumes_included(node: Node, docker: RealDocker) -> None:
    assert node.run(["VOLUME /scratch"], command=("touch", "/scratch/x")) == 0
    assert docker.says("volume", "ls", "--quiet")
    assert node.workspace is not None
    node.workspace.close()
    assert docker.says("volume", "ls", "--quiet") == ""
    assert containers_left(docker) == []


def test_a_container_that_an_agent_left_is_replaced(node: Node, docker: RealDocker) -> None:
    first = node.start([], command=("sleep", "603"))
    until(lambda: bool(containers_left(docker)), ENDS_S)
    assert node.shell("echo second") == 0
    assert node.lines == ["second"]
    assert first.end(0.0) == 137
    assert len(containers_left(docker)) == 1


def test_an_image_that_the_machine_has_is_not_pulled_again(node: Node) -> None:
    digest = node.push(["ENV A=again"])
    for expected in ("pulled the image", "the machine has the image"):
        node.notes.clear()
        node.prepared(digest, node.name(["ENV A=again"]))
        assert any(note.startswith(expected) for note in node.notes)


@pytest.mark.parametrize(
    ("lines", "command", "says"),
    [
        (["USER nobody42"], ("env",), "unable to find user nobody42: no matching entries in passwd file"),
        ([], ("no-such-program",), "the image's command cannot be started: exec no-such-program failed: No such file"),
        ([], ("/etc/passwd",), "the image's command cannot be started: exec /etc/passwd failed: Permission denied"),
        (["WORKDIR /etc/passwd"], ("env",), "is not a directory"),
    ],
)
def test_what_every_machine_would_refuse_is_the_jobs_own_failure(
    node: Node, lines: list[str], command: tuple[str, ...], says: str
) -> None:
    with pytest.raises(CannotStart, match=says):
        node.run(lines, command=command)


def test_gpus_that_docker_cannot_give_are_the_machines_failure(node: Node) -> None:
    with pytest.raises(MachineTrouble, match="could not select device driver"):
        node.shell("echo never", gpus={"t3.medium": 1})
    assert node.lines[-1:] != ["never"]


def test_an_image_that_the_registry_lacks_ends_the_job_after_one_try(node: Node) -> None:
    with pytest.raises(CannotStart, match="manifest unknown"):
        node.prepared(f"sha256:{'0' * 64}", "made/nothing")


def test_a_registry_that_does_not_answer_is_the_machines_failure(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.container.pulling.AGAIN_S", 0.01)
    monkeypatch.setattr(node._docker, "registry", "127.0.0.1:1")
    with pytest.raises(MachineTrouble, match="connection refused"):
        node.prepared(f"sha256:{'0' * 64}", "made/nothing")


def test_a_daemon_that_dies_under_a_container_is_the_machines_failure_and_the_next_one_ends_the_container(
    node: Node, docker: RealDocker
) -> None:
    child = node.start([], command=("sh", "-c", "echo up; sleep 604"))
    until(lambda: node.lines == ["up"], ENDS_S)
    docker.kill()
    try:
        with pytest.raises(MachineTrouble):
            node.ended(child)
    finally:
        docker.start_anew()
    assert node.workspace is not None
    node.workspace.close()
    assert containers_left(docker) == []


def test_a_daemon_that_is_started_anew_does_not_finish_the_job_although_the_program_saves_and_ends_with_0(
    node: Node, docker: RealDocker
) -> None:
    child = node.start([], command=("sh", "-c", SAVES))
    until(lambda: node.lines == ["up"], ENDS_S)
    docker.stop()
    try:
        with pytest.raises(MachineTrouble):
            node.ended(child)
    finally:
        docker.start_anew()


def test_a_program_that_closes_its_output_goes_on_and_its_exit_code_counts(node: Node) -> None:
    assert node.shell("echo up; exec >&- 2>&-; sleep 1; exit 5") == 5
    assert node.lines == ["up"]


def test_a_line_without_an_end_comes_in_pieces_and_all_of_it(node: Node) -> None:
    assert node.shell("seq -s x 1 400000; exit 6") == 6
    assert sum(map(len, node.lines)) == len("x".join(map(str, range(1, 400_001))))


def test_dockers_client_that_is_killed_under_a_container_is_the_machines_failure_and_nothing_goes_on_running(
    node: Node, docker: RealDocker
) -> None:
    child = node.start([], command=("sh", "-c", SAVES))
    until(lambda: "up" in node.lines, ENDS_S)
    client = next(int(one.name) for one in Path("/proc").glob("[0-9]*") if _runs(one, "--name", docker.host))
    os.kill(client, signal.SIGKILL)
    with pytest.raises(MachineTrouble):
        node.ended(child)
    assert node.workspace is not None
    node.workspace.close()
    assert containers_left(docker) == []


def _runs(process: Path, word: str, host: str) -> bool:
    """Whether a process is a client that runs a container of this docker."""
    with suppress(OSError):
        words = (process / "cmdline").read_bytes().split(b"\0")
        told = (process / "environ").read_bytes()
        return word.encode() in words and b"run" in words and host.encode() in told
    return False

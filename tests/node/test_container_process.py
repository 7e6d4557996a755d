"""The container as the agent's child, with a docker that is a script of the test's: what a polite one never does."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from agent.container import docker, process
from agent.container.docker import Docker
from agent.container.process import ContainerProcess
from agent.failures import MachineTrouble
from localaws.testing.waiting import HANG_S
from tests.node.programs import Program

STARTED = "2026-01-01T00:00:00Z"
WAITS = "for n in $(seq 12000); do [ -e $DOCK/%s ] && exit %d; sleep 0.05; done"
"""A client that ends with its container."""
DOCKER = """
echo "$@" >> "$DOCK/calls"
case "$3" in
  run) %s ;;
  container) [ -e "$DOCK/state" ] && cat "$DOCK/state" || exit 1 ;;
  kill) [ -e "$DOCK/runs" ] || { echo "Container is not running" >&2; touch "$DOCK/refused"; exit 1; }; touch "$DOCK/$5" ;;
  rm) %s ;;
esac
"""


class Bench:
    """A folder in which the script's docker finds what it has to say."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.folder, self._program = folder, program
        self.lines = list[str]()

    def run(self, client: str, removes: str = "exit 0") -> ContainerProcess:
        self._program("docker", DOCKER % (client, removes))
        variables = {"PATH": f"{self.folder}/programs:/usr/bin:/bin", "DOCK": str(self.folder)}
        self.docker = Docker(self.folder / "settings", variables)
        return ContainerProcess(
            self.docker, ["run", "image"], folder=self.folder, variables=variables, on_line=self.lines.append
        )

    def runs(self) -> None:
        """The container has been started."""
        (self.folder / "runs").touch()

    def says(self, *, code: int, running: bool = False, full: bool = False) -> None:
        """What docker knows of the container."""
        said = {"Running": running, "ExitCode": code, "StartedAt": STARTED, "Error": "", "OOMKilled": full}
        (self.folder / "state").write_text(json.dumps(said))

    def calls(self, what: str) -> list[str]:
        return [line for line in (self.folder / "calls").read_text().splitlines() if line.split()[2] == what]


@pytest.fixture
def bench(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("DOCK", str(tmp_path))
    monkeypatch.setattr(process, "LOOK_S", 0.05)
    monkeypatch.setattr(process, "ENDS_S", HANG_S)
    program("systemctl", "echo running")
    return Bench(tmp_path, program)


def test_a_signal_that_comes_while_docker_starts_the_container_reaches_it_once_it_runs(bench: Bench) -> None:
    """Docker answers "is not running" until then, and a signal that is sent once is lost."""
    starts = "until [ -e $DOCK/refused ]; do sleep 0.05; done; touch $DOCK/runs"
    child = bench.run(f"({starts}) & {WAITS % ('SIGTERM', 7)}")
    assert child.stop(signal.SIGTERM, HANG_S) == 7
    assert len(bench.calls("kill")) > 1


def test_a_container_that_runs_gets_its_signal_once(bench: Bench) -> None:
    bench.runs()
    child = bench.run(f"sleep 0.4; {WAITS % ('SIGTERM', 0)}")
    assert child.stop(signal.SIGTERM, HANG_S) == 0
    assert bench.calls("kill") == [f"--config {bench.folder}/settings kill --signal SIGTERM trainyard"]


def test_an_end_that_comes_while_docker_starts_the_container_reaches_it_once_it_runs(bench: Bench) -> None:
    child = bench.run(f"(sleep 0.3; touch $DOCK/runs) & {WAITS % ('SIGKILL', 137)}")
    assert child.end(0.0) == 137


def test_a_container_that_does_not_end_holds_up_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ENDS_S", 0.3)
    bench.runs()
    child = bench.run("sleep 10000")
    assert child.end(0.0) == 137


def test_a_container_that_was_ended_by_the_agent_needs_no_explanation(bench: Bench) -> None:
    """Docker may say anything of it, also that it never ran."""
    bench.runs()
    bench.says(code=99)
    child = bench.run(WAITS % ("SIGTERM", 143))
    assert child.stop(signal.SIGTERM, HANG_S) == 143


def ended(child: ContainerProcess) -> int:
    until = time.monotonic() + HANG_S
    while (code := child.wait(0.1)) is None:
        assert time.monotonic() < until
    return code


def test_a_client_that_loses_its_daemon_is_the_machines_failure_and_leaves_no_container(bench: Bench) -> None:
    bench.runs()
    bench.says(code=0, running=True)
    with pytest.raises(MachineTrouble, match="before its container, which was ended: unexpected EOF"):
        ended(bench.run("echo unexpected EOF; exit 125"))
    assert len(bench.calls("kill")) == 1


@pytest.mark.parametrize("code", [0, 143])
def test_a_machine_that_shuts_down_neither_finishes_the_job_nor_fails_it(
    bench: Bench, program: Program, code: int
) -> None:
    """systemd sends SIGTERM to the container, which may save and end with 0, before the agent is gone."""
    program("systemctl", "echo stopping; exit 1")
    bench.says(code=code)
    with pytest.raises(MachineTrouble, match=f"the machine shuts down, which ended the container with {code}"):
        ended(bench.run(f"exit {code}"))


def test_a_docker_that_is_stopped_does_not_finish_the_job(bench: Bench, program: Program) -> None:
    program("systemctl", 'if [ "$*" = "is-active docker" ]; then echo deactivating; else echo running; fi')
    bench.says(code=0)
    with pytest.raises(MachineTrouble, match="docker is stopped, which ended the container with 0"):
        ended(bench.run("exit 0"))


@pytest.mark.parametrize("said", ["running", "degraded", "starting", "active", "Failed to connect to bus"])
def test_a_machine_that_does_not_shut_down_lets_the_exit_code_count(bench: Bench, program: Program, said: str) -> None:
    program("systemctl", f"echo {said}; exit 1")
    bench.says(code=0)
    assert ended(bench.run("exit 0")) == 0


def test_memory_that_was_full_is_told_in_words(bench: Bench) -> None:
    bench.says(code=137, full=True)
    child = bench.run("exit 137")
    assert ended(child) == 137
    assert child.why == "; docker says that memory was full"


def test_the_last_lines_are_read_before_the_end_is_judged(bench: Bench) -> None:
    bench.says(code=3)
    child = bench.run("seq 1 2000; printf 'half a line'; exit 3")
    assert ended(child) == 3
    assert bench.lines[-1] == "half a line"
    assert len(bench.lines) == 2001


def test_a_container_that_docker_cannot_end_at_once_is_removed_by_the_next_try(bench: Bench) -> None:
    slow = 'echo x >> $DOCK/tries; [ $(wc -l < $DOCK/tries) -ge 2 ] || { echo "did not receive an exit event" >&2; exit 1; }'
    bench.run("exit 0", removes=slow).end(0.0)
    assert bench.docker.remove() == ""


def test_a_container_that_docker_cannot_end_at_all_is_told(bench: Bench) -> None:
    bench.run("exit 0", removes="echo did not receive an exit event >&2; exit 1").end(0.0)
    assert bench.docker.remove() == "did not receive an exit event"
    assert len(bench.calls("rm")) == docker.REMOVALS


@pytest.mark.parametrize("code", [0, 1])
def test_a_container_that_is_not_there_is_gone(bench: Bench, code: int) -> None:
    """Older versions of docker end with 1."""
    bench.run("exit 0", removes=f"echo Error: No such container: trainyard >&2; exit {code}").end(0.0)
    assert bench.docker.remove() == ""
    assert len(bench.calls("rm")) == 1

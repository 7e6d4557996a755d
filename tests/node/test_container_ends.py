"""How the end of a container is judged: the program's own exit code, the image's fault, or the machine's."""

from __future__ import annotations

from typing import Any

import pytest

from agent.container import ends
from agent.failures import CannotStart, MachineTrouble

STARTED = "2026-01-01T00:00:00Z"
RUNC = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "


def state(*, code: int = 0, running: bool = False, started: str = STARTED, error: str = "") -> dict[str, Any]:
    return {"Running": running, "ExitCode": code, "StartedAt": started, "Error": error}


def created(error: str) -> dict[str, Any]:
    """Docker made the container and did not start it."""
    return state(code=128, started=ends.NEVER, error=error)


@pytest.mark.parametrize("code", [0, 1, 3, 125, 126, 127, 137, 143])
def test_a_container_that_ran_ends_with_the_programs_own_code(code: int) -> None:
    assert ends.failure(code, state(code=code), ["the last line"], "") is None


@pytest.mark.parametrize(
    "error",
    [
        "unable to find user trainer: no matching entries in passwd file",
        "unable to find group 77: no matching entries in group file",
        RUNC + 'chdir to cwd ("/root/app") set in config.json failed: permission denied: unknown',
        RUNC + "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver",
    ],
)
def test_what_every_machine_would_refuse_is_the_jobs_own_failure(error: str) -> None:
    problem = ends.failure(125, created(error), [], "")
    assert isinstance(problem, CannotStart)
    assert error in str(problem)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (125, 'could not select device driver "" with capabilities: [[gpu]]'),
        (127, 'error gathering device information while adding custom device "/dev/x": no such file or directory'),
        (127, RUNC + "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared "
         "object file: no such file or directory"),
        (127, RUNC + 'exec: "docker-init": executable file not found in $PATH'),
        (126, RUNC + "nvidia-container-cli: mount error: permission denied"),
        (125, "something that nobody has ever said"),
    ],
)  # fmt: skip
def test_what_another_machine_may_have_is_the_machines_failure_whatever_dockers_code(code: int, error: str) -> None:
    problem = ends.failure(code, created(error), [], "")
    assert isinstance(problem, MachineTrouble)
    assert error in str(problem)


def test_docker_that_makes_no_container_is_judged_by_its_words() -> None:
    refused = "docker: Error response from daemon: Cannot mkdir: /etc/passwd is not a directory."
    assert isinstance(ends.failure(125, None, [], refused), CannotStart)
    assert isinstance(ends.failure(125, None, [], "docker: Conflict. The name is in use."), MachineTrouble)


def test_a_code_of_which_docker_says_nothing_any_more_is_the_programs() -> None:
    assert ends.failure(3, None, [], "") is None


def test_a_container_that_outlives_dockers_client_is_the_machines_failure() -> None:
    problem = ends.failure(125, state(running=True), [], "unexpected EOF")
    assert isinstance(problem, MachineTrouble)
    assert "unexpected EOF" in str(problem)


@pytest.mark.parametrize("own", [0, 137, 143, 255])
def test_a_docker_that_was_started_anew_does_not_end_the_job(own: int) -> None:
    """Its client loses the container and ends with 125; the container ended with the daemon, whatever code that gave it."""
    problem = ends.failure(125, state(code=own), ["error waiting for container: unexpected EOF"], "unexpected EOF")
    assert isinstance(problem, MachineTrouble)
    assert f"the container with {own}" in str(problem)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (127, "exec no-such-program failed: No such file or directory"),
        (126, "exec /etc/passwd failed: Permission denied"),
        (1, "exec /app/train failed: Exec format error"),
    ],
)
def test_a_command_that_dockers_init_cannot_run_is_told_in_its_words(code: int, said: str) -> None:
    problem = ends.failure(code, state(code=code), ["earlier", f"[FATAL tini (7)] {said}"], "")
    assert isinstance(problem, CannotStart)
    assert str(problem) == f"the image's command cannot be started: {said}"


@pytest.mark.parametrize(
    ("code", "tail"),
    [(127, ["sh: 1: x: not found"]), (3, ["[FATAL tini (7)] exec x failed: no"]), (127, []), (1, ["Traceback"])],
)
def test_a_program_that_ends_with_the_same_codes_ran(code: int, tail: list[str]) -> None:
    assert ends.failure(code, state(code=code), tail, "") is None

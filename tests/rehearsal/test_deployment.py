"""A rehearsal's deployment: the stacks that a run needs, causes before everything else, and no command that outlives an interrupt."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from localaws.testing.waiting import lives
from rehearsal import deployment
from rehearsal.deployment import DeploymentFailed, DeployProgress, cause, interrupt, needed
from rehearsal.diagnosis import diagnose_deployment
from rehearsal.parts import Parts

STACK = {"type": "aws:cloudformation:stack"}
MANIFEST: dict[str, Any] = {
    "artifacts": {
        "Tree": {"type": "cdk:tree"},
        "a.assets": {"type": "cdk:asset-manifest"},
        "a": {**STACK, "dependencies": ["a.assets"]},
        "b": {**STACK, "dependencies": ["a"]},
        "reaper": {**STACK, "dependencies": ["b"]},
        "images": {**STACK, "dependencies": ["reaper"]},
    }
}
FAILED = """
✨  Synthesis time: 0.2s
t-workflow: deploying... [1/6]
t-workflow | 0/15 | CREATE_IN_PROGRESS
\x1b[31mt-workflow | 3/15 | CREATE_FAILED | AWS::Lambda::Function | Launcher: The role cannot be assumed\x1b[39m
 ❌  t-workflow failed: ToolkitError: The stack named t-workflow failed
Stacks left as they were
"""


def test_a_stack_comes_with_all_that_it_depends_on_and_without_what_depends_on_it() -> None:
    assert needed(MANIFEST, ["reaper"]) == (["a", "b", "reaper"], ["images"])


def test_a_stack_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no stack is called c; there are a, b, reaper, images"):
        needed(MANIFEST, ["c"])


def test_the_cause_of_a_failed_deployment_comes_without_what_went_well() -> None:
    told = cause(FAILED)
    assert "The role cannot be assumed" in told.splitlines()[0]
    assert "deploying" not in told
    assert "\x1b" not in told


def test_a_command_that_says_nothing_of_an_error_is_told_by_its_last_lines() -> None:
    assert cause("one\n\ntwo\n") == "one\ntwo"


def test_the_cause_is_printed_before_the_command_and_everything_is_kept() -> None:
    problem = DeploymentFailed("cdk deploy --all", FAILED)
    assert str(problem).index("cannot be assumed") < str(problem).index("cdk deploy")
    assert "Synthesis time" in problem.whole


def test_stacks_that_are_deployed_side_by_side_are_parts_of_their_own() -> None:
    parts = Parts()
    watch = DeployProgress(parts)
    for line in ("a: deploying... [1/2]\n", "b: deploying... [2/2]\n", " ✅  b\n"):
        watch.line(line)
    assert [(part.name, part.took_s is None) for part in parts.all] == [("deploy a", True), ("deploy b", False)]
    assert parts.going_on() == ["deploy a"]


def test_a_command_hands_on_its_lines_while_it_runs(tmp_path: Path) -> None:
    heard, go_on = list[str](), tmp_path / "go-on"
    code = f"import os, time; print('first', flush=True)\nwhile not os.path.exists({str(go_on)!r}): time.sleep(0.01)"

    def hear(line: str) -> None:
        heard.append(line)
        go_on.touch()

    deployment._run([sys.executable, "-c", code], {}, tmp_path, hear)
    assert heard == ["first\n"]


def test_an_interrupt_ends_a_command_with_all_that_it_started(tmp_path: Path) -> None:
    """A shell that starts another process, in a thread as synth and bootstrap run."""
    problems, pid = list[BaseException](), tmp_path / "pid"

    def run() -> None:
        try:
            deployment._run(
                ["/bin/sh", "-c", f"sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait"], {}, tmp_path
            )
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    while not pid.exists():
        time.sleep(0.01)
    interrupt()
    thread.join()
    assert isinstance(problems[0], DeploymentFailed)
    while lives(int(pid.read_text())):  # its new parent takes it in when it likes
        time.sleep(0.01)


def test_a_listener_that_fails_ends_the_command(tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deployment._run(["/bin/sh", "-c", "echo line; sleep 600"], {}, tmp_path, stop)
    assert not deployment._RUNNING


def test_the_command_of_a_failed_deployment_is_not_left_without_a_word(tmp_path: Path) -> None:
    with pytest.raises(DeploymentFailed, match=r"denied by nobody\n.*from `sh -c"):
        deployment._run(["/bin/sh", "-c", "echo denied by nobody; exit 3"], dict(os.environ), tmp_path)


def test_a_failed_deployment_prints_its_cause_first_and_keeps_everything_in_files(tmp_path: Path) -> None:
    problem = DeploymentFailed("cdk deploy --all", FAILED)
    problem.functions = {"check": ["START", "[ERROR] KeyError: no such region"], "quiet": ["START", "REPORT"]}
    written = io.StringIO()
    diagnose_deployment(problem, Console(file=written, soft_wrap=True), tmp_path)
    lines = written.getvalue().splitlines()
    assert "cannot be assumed" in lines[1]
    assert "KeyError" in written.getvalue()
    assert "REPORT" not in written.getvalue()
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == [
        *("deployment.log", "function-check.log", "function-quiet.log")
    ]

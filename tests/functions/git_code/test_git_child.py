"""The child process that fetches from git: what it is given, what it may use, and whom it asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from git_code import fetch_child, fetching
from git_code.commit import FetchTrouble, GitCommit, NotFetched
from tests.fakes.git import HOST, PRIVATE, TOKEN
from tools.refusals.jobs.git import HEADS

COMMIT = GitCommit(f"https://{HOST}/owner/good.git", HEADS["good"])
pytestmark = pytest.mark.usefixtures("git_hosts")


def test_the_child_has_no_variable_with_a_key_and_needs_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-key")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session")
    kept: dict[str, Any] = {}
    honest = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        if command[0] == sys.executable:
            kept.update(options, command=command)
        return honest(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    assert fetching.run_child(COMMIT, TOKEN, tmp_path / "a.tar.gz") is None
    assert {*kept["env"]} <= {*fetching.PASSED, "PYTHONPATH"}
    assert not [one for one in (*kept["command"], *kept["env"].values()) if "a-key" in one or TOKEN in one]


def test_a_child_that_dies_is_a_refusal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fetching, "PROGRAM", "import os; os.kill(os.getpid(), 9)")
    found = fetching.run_child(COMMIT, "", tmp_path / "a.tar.gz")
    assert found == NotFetched(FetchTrouble.LARGE, "the fetch ended with -9")


def test_the_child_keeps_to_its_limits() -> None:
    program = (
        "import resource; from git_code import fetch_child as c; import io, sys; sys.stdin = io.StringIO('x')\n"
        "try: c.main()\nexcept ValueError: print(*(resource.getrlimit(one)[0] for one in "
        "(resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_CORE)))"
    )
    variables = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, check=True)
    assert done.stdout.split() == [b"805306368", b"402653184", b"60", b"0"]


def test_a_server_cannot_send_the_child_to_another_host() -> None:
    pool = fetch_child.OneHost(HOST, {})
    for url in (f"https://{PRIVATE}/pack", f"http://{HOST}/pack", f"https://{HOST}:8443/pack", "file:///etc/passwd"):
        with pytest.raises(fetch_child.Answered):
            pool.request("GET", url)

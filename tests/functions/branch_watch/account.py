"""An account with a watch, and branches of repositories on git hosts of this computer."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.endpoint
import pytest

import branch_watch.handler
from aws.state import State
from contract.campaign_environments import WatchEnvironment
from contract.campaigns import Starts, Watch
from contract.codec import encode
from localaws.git_host import GitHosts, blob, commit, git, tree
from tests.fakes.aws import Aws
from tests.fakes.executions import BUILD_MACHINE
from tests.fakes.faults import Mishap
from tests.fakes.functions import OneByOne, Outcome, invoked, quiet
from tests.fakes.git import HOST, PRIVATE
from tests.fakes.queue import URL
from tests.fakes.state import TABLE

NOW = 1_800_000_000.0
TIMEOUT_S = 300.0
REASON = "a destroy began"
ENVIRONMENT = WatchEnvironment(
    deployment="yard",
    table=TABLE,
    build_machine=BUILD_MACHINE,
    messages=URL,
    git_hosts={HOST: "", PRIVATE: "git-token"},
)


def watch(repository: str = "watched", host: str = HOST, branch: str = "main", **build: Any) -> Watch:
    """One that builds the image `images`, with further fields of the request."""
    return Watch(git=f"https://{host}/owner/{repository}.git", branch=branch, build={"repository": "images", **build})


@dataclass
class Watched:
    """What is watched, and what came of it."""

    aws: Aws
    settings: Path
    hosts: GitHosts
    begun: list[str] = field(default_factory=list)
    """The builds that began, as they did."""
    _number: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.aws.states.executions.began = lambda one: self.begun.append(one.name)

    def deploy(self, **watches: Watch) -> None:
        """The settings, as the archive has them from now on."""
        self.settings.write_bytes(encode(Starts(watches=watches)))

    def repository(self, name: str = "watched", host: str = HOST) -> Path:
        at = self.hosts.folder / host / "owner" / f"{name}.git"
        return at if at.exists() else self.hosts.repository(f"{host}/owner/{name}.git")

    def push(self, name: str = "watched", host: str = HOST) -> str:
        """A commit that there was not; returns its hash."""
        at = self.repository(name, host)
        content = f"FROM scratch\nLABEL number={next(self._number)}\n".encode()
        return commit(at, tree(at, ("100644", b"Dockerfile", blob(at, content))))

    def force(self, to: str, branch: str = "main") -> None:
        """Somebody pushes by force."""
        git(self.repository(), "update-ref", f"refs/heads/{branch}", to)

    def tick(self, *mishaps: Mishap) -> Outcome:
        return invoked(self.aws, branch_watch.handler.handler, {}, "watch", TIMEOUT_S, mishaps)

    def close(self) -> None:
        State(TABLE).close_admission(REASON)

    def open(self) -> None:
        State(TABLE).open_admission(REASON)

    @property
    def questions(self) -> list[str]:
        """The names of the executions that the starter was asked to see."""
        sent = [json.loads(one.body)["check"]["execution"] for one in self.aws.queue.messages.values()]
        return [one.rpartition(":")[2] for one in sent]

    def inputs(self) -> dict[str, Any]:
        """The request of every build, by its name."""
        return {one.name: json.loads(one.input) for one in self.aws.states.executions.known.values()}


@contextmanager
def watched(patch: pytest.MonkeyPatch, folder: Path, hosts: GitHosts) -> Iterator[Watched]:
    """A new account, which every client of the function talks to meanwhile; repositories that a test makes go with it."""
    before = set((hosts.folder / HOST / "owner").iterdir())
    aws = Aws(now=NOW)
    aws.table.open(TABLE)
    for name, value in ENVIRONMENT.write().items():
        patch.setenv(name, value)
    patch.setattr(branch_watch.handler, "STARTS", folder / "starts.json")
    patch.setattr(branch_watch.handler, "ThreadPoolExecutor", OneByOne)
    patch.setattr(botocore.endpoint, "time", aws.clock)
    with aws.connected(), quiet("branch-watch"):
        yield Watched(aws, folder / "starts.json", hosts)
    for one in set((hosts.folder / HOST / "owner").iterdir()) - before:
        shutil.rmtree(one)

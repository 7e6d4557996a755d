"""CodeBuild: builds that ended as a test says."""

from __future__ import annotations

from localaws.services.codebuild_model import Build, CodeBuild
from tests.fakes.clock import Clock
from tests.fakes.wire import HOME


class FakeCodeBuild(CodeBuild):
    """One region without projects."""

    def __init__(self, clock: Clock, account: str) -> None:
        super().__init__(HOME, clock, account, lambda _: None)

    def begin(self, build: Build) -> None:
        raise AssertionError(f"no test lets {build.id} run: give it an end with `fail`")

    def end(self, build: Build) -> None:
        raise AssertionError(f"nothing that a test uses stops {build.id}")

    def fail(self, identity: str, *, group: str, phase: str, why: str) -> Build:
        """For tests: a build that is over since now."""
        name, _, number = identity.partition(":")
        made = self.add({"name": name, "logsConfig": {"cloudWatchLogs": {"groupName": group}}}, number, {})
        made.status, made.failed_in, made.why, made.ended = "FAILED", phase, why, made.started
        return made

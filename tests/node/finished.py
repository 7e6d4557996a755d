"""A node whose training process is gone, and whose last commits meet troubles."""

from __future__ import annotations

from typing import cast

from agent.checkpoints import Checkpoints
from agent.commits import Artifacts
from agent.reports import Reporter
from agent.saver import Saver, Unsaved


class Folder:
    """A committer that meets these troubles, one a try, and for ever the last one; a try takes two seconds."""

    def __init__(self, clock: list[float], *troubles: Exception | None) -> None:
        self._clock, self._troubles = clock, list(troubles)
        self.tries = 0
        self.newest, self.newest_key, self.closed_step, self.layout = None, "", -1, ""

    def finish(self, *, ended_well: bool, ended_at: float | None) -> bool:  # noqa: ARG002
        self.commit(final=True)
        return False

    def commit(self, *, final: bool = False) -> None:
        assert final
        self.tries += 1
        self._clock[0] += 2.0
        trouble = self._troubles.pop(0) if len(self._troubles) > 1 else self._troubles[0]
        if trouble is not None:
            raise trouble


class Finished:
    """A node whose training process is gone."""

    def __init__(self, checkpoints: tuple[Exception | None, ...], artifacts: tuple[Exception | None, ...]) -> None:
        self.clock, self.notes = [0.0], list[str]()
        self.checkpoints, self.artifacts = Folder(self.clock, *checkpoints), Folder(self.clock, *artifacts)
        self._saver = Saver(
            cast(Checkpoints, self.checkpoints),
            cast(Artifacts, self.artifacts),
            cast(Reporter, None),
            every_s=10_000.0,
            note=self.notes.append,
            now=lambda: self.clock[0],
            sleep=lambda _: None,
        )
        self._saver.start()

    def finish(self) -> Unsaved:
        return self._saver.finish()

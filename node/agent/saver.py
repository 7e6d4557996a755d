"""Saves while the training runs: commits checkpoints and artifacts at an interval, in a thread that no order waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agent.commits import Committer
from agent.reports import Reporter

AGAIN_S = 10.0
"""After a commit that failed, at most: a trainer that was writing is done soon, and the interval is long."""


class Saver:
    """Both folders of a node."""

    def __init__(
        self,
        checkpoints: Committer,
        artifacts: Committer,
        reporter: Reporter,
        *,
        every_s: float,
        note: Callable[[str], None],
    ) -> None:
        self._checkpoints, self._artifacts, self._reporter = checkpoints, artifacts, reporter
        self._every_s, self._note = every_s, note
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def carry_over(self, step: int) -> None:
        """After a restore: this rank's own files become its first commit of the attempt, without being sent again where
        they already lie in the region's bucket. Raises what a commit raises."""
        if self._checkpoints.commit(step=step):
            self._tell()

    def finish(self) -> str:
        """The last commits, after the training process is gone. What could not be committed, empty when all is well."""
        self._over.set()
        if self._thread.ident is None:
            return ""  # nothing was trained: what lies in the folders is at most half of a restore
        self._thread.join()  # the files it has sent need not be sent again
        return self._save(final=True)

    def _run(self) -> None:
        pause = self._every_s
        while not self._over.wait(pause):
            pause = min(AGAIN_S, self._every_s) if self._save(final=False) else self._every_s

    def _save(self, *, final: bool) -> str:
        troubles = []
        for committer in (self._checkpoints, self._artifacts):
            if self._over.is_set() and not final:
                break
            try:
                if commit := committer.commit(final=final):
                    self._note(f"committed {len(commit.files)} files of step {commit.step}: {committer.newest_key}")
                    self._tell()
            except Exception as problem:  # whatever it is, the training goes on and the commit before stays
                troubles.append(f"not committed: {problem}")
                self._note(troubles[-1])
        if not final:
            self._thin()
        return "; ".join(troubles)

    def _thin(self) -> None:
        try:
            self._checkpoints.thin()
        except Exception as problem:
            self._note(f"old commits stay for now: {problem}")

    def _tell(self) -> None:
        newest = self._checkpoints.newest
        self._reporter.change(
            checkpoint=self._checkpoints.newest_key,
            checkpoint_step=newest.step if newest else -1,
            artifacts=self._artifacts.newest_key,
        )

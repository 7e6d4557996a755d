"""Commits checkpoints and artifacts at an interval while the training runs, in a thread that no order waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent.commits import Committer
from agent.failures import LARGER, is_full
from agent.keys import KeysExpired
from agent.reports import Reporter
from agent.snapshot import Changed

AGAIN_S = 10.0
"""The longest pause after a commit that failed: a trainer that was writing is done soon, and the interval is long."""
QUIET_S = 60.0
"""How long a process that the command left behind may go on changing files. Files that change are not committed."""


@dataclass(frozen=True)
class Unsaved:
    """What the last commits could not save."""

    text: str
    """The reasons; empty where everything was saved."""
    own: bool = False
    """Whether the job is the cause of all of it, so that a new attempt would fail again."""


SAVED = Unsaved("")


class Saver:
    """Saves the checkpoints and the artifacts of a node."""

    def __init__(
        self,
        checkpoints: Committer,
        artifacts: Committer,
        reporter: Reporter,
        *,
        every_s: float,
        note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._checkpoints, self._artifacts, self._reporter = checkpoints, artifacts, reporter
        self._every_s, self._note, self._now, self._sleep = every_s, note, now, sleep
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def carry_over(self, step: int) -> None:
        """Commits this rank's restored files as its first commit of the attempt; those that are in the region's bucket already
        are not sent again. Raises what a commit raises."""
        if self._checkpoints.commit(step=step):
            self._tell()

    def finish(self) -> Unsaved:
        """Makes the last commits, after the training process has ended. Returns what could not be saved."""
        self._over.set()
        if self._thread.ident is None:
            return SAVED  # nothing was trained: the folders hold at most half of a restore
        self._thread.join()  # what it has sent is not sent again
        troubles = self._keyed()
        until = self._now() + QUIET_S
        while any(isinstance(one, Changed) for one in troubles) and self._now() < until:
            troubles = self._keyed()  # a try pauses between its looks
        own = bool(troubles) and all(isinstance(one, Changed) or is_full(one) for one in troubles)
        return Unsaved("; ".join(f"not committed: {_words(one)}" for one in troubles), own)

    def _keyed(self) -> list[Exception]:
        """Makes the last commits, and waits while the job's keys are expired: work that is done is not done again because nobody
        renews keys. The attendant bounds the phase."""
        troubles = self._save(final=True)
        while any(isinstance(one, KeysExpired) for one in troubles):
            self._sleep(AGAIN_S)
            troubles = self._save(final=True)
        return troubles

    def _run(self) -> None:
        pause = self._every_s
        while not self._over.wait(pause):
            pause = min(AGAIN_S, self._every_s) if self._save(final=False) else self._every_s

    def _save(self, *, final: bool) -> list[Exception]:
        troubles = list[Exception]()
        for committer in (self._checkpoints, self._artifacts):
            if self._over.is_set() and not final:
                break
            try:
                if commit := committer.commit(final=final):
                    self._note(f"committed {len(commit.files)} files of step {commit.step}: {committer.newest_key}")
                    self._tell()
            except Exception as problem:  # whatever it is, the training goes on and the commit before stays
                troubles.append(problem)
                self._note(f"not committed: {problem}")
        if not final:
            self._thin()
        return troubles

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


def _words(problem: Exception) -> str:
    """The problem in words for the person whose result is not in S3."""
    if isinstance(problem, Changed):
        return f"{problem}, again and again for {QUIET_S:.0f} s after the command had ended: a process that it left behind still writes"
    return f"{LARGER} ({problem})" if is_full(problem) else str(problem)

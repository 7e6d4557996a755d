"""Commits checkpoints and artifacts at an interval while the training runs, in a thread that no order waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent import machine
from agent.checkpoints import Checkpoints
from agent.commits import Artifacts
from agent.credentials import CredentialsExpired
from agent.failures import LARGER, is_full
from agent.reports import Reporter
from agent.sets.closing import NeverWhole
from agent.snapshot import Changed
from contract.commits import name_checkpoint

TICK_S = 0.5
"""Between looks at PROGRESS_FILE: how soon after a checkpoint is named its commit begins."""
AGAIN_S = 10.0
"""The longest pause after a commit that failed: a trainer that was writing is done soon, and the interval is long."""
NICE = 10
"""Of commits while the training runs: a tenth of the processor time of a process of the training where these use all."""
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
        checkpoints: Checkpoints,
        artifacts: Artifacts,
        reporter: Reporter,
        *,
        every_s: float,
        note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._checkpoints, self._artifacts, self._reporter = checkpoints, artifacts, reporter
        self._every_s, self._note, self._now, self._sleep = every_s, note, now, sleep
        self._over, self._ended_well = threading.Event(), False
        self._ended_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)
        self._measured, self._closed = "", -1  # the newest commit, and the newest closed set, that the reports know
        self.busy_since: float | None = None
        """Since when it has been at a commit, its tries that failed included; None while there is nothing to send."""
        self.refused = ""
        """Why the checkpoints of this job can never be restored; the attempt then ends, because a person has to know."""

    def start(self) -> None:
        self._thread.start()

    def finish(self, *, ended_well: bool = False, ended_at: float | None = None) -> Unsaved:
        """Makes the last commits, after the training process has ended; `ended_well`: by itself, and with 0. `ended_at`: when it ended, by
        this machine's clock; None for now. Returns what could not be saved."""
        self._ended_well, self._ended_at = ended_well, time.time() if ended_at is None else ended_at
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()  # what it has sent is not sent again
        troubles = self._keyed()
        until = self._now() + QUIET_S
        while any(isinstance(one, Changed) for one in troubles) and self._now() < until:
            troubles = self._keyed()  # a try pauses between its looks
        own = bool(troubles) and all(isinstance(one, Changed) or is_full(one) for one in troubles)
        return Unsaved("; ".join(f"not committed: {_words(one)}" for one in troubles), own)

    def _keyed(self) -> list[Exception]:
        """Makes the last commits, and waits while the job's credentials are expired: otherwise finished work would be repeated
        for want of credentials. The attendant bounds the phase."""
        troubles = self._save_last()
        while any(isinstance(one, CredentialsExpired) for one in troubles):
            self._sleep(AGAIN_S)
            troubles = self._save_last()
        return troubles

    def _run(self) -> None:
        """Looks for a set to answer all the time, and commits artifacts once an interval."""
        machine.give_way(NICE)
        next_artifacts, next_look = self._now() + self._every_s, 0.0
        while not self._over.wait(min(TICK_S, self._every_s / 4)):
            if not self.refused and self._now() >= next_look and not self._done(self._answer):
                next_look = self._now() + min(AGAIN_S, self._every_s)
            if self._now() >= next_artifacts and not self._over.is_set():
                saved = self._done(self._commit_artifacts)
                next_artifacts = self._now() + (self._every_s if saved else min(AGAIN_S, self._every_s))

    def _done(self, do: Callable[[], None]) -> bool:
        """Does it; whether it was done. Whatever the trouble is, the training goes on, and what was committed before stays."""
        try:
            do()
        except NeverWhole as problem:
            self.refused = str(problem)
        except Exception as problem:
            self._note(f"not committed: {problem}")
            return False
        return True

    def _answer(self) -> None:
        self._timed(self._checkpoints.tick)

    def _timed(self, answer: Callable[[], bool]) -> None:
        """Answers a set where there is one to answer, and tells what the commit took and that a set was closed."""
        began, answered = self._now(), False
        self.busy_since = began if self.busy_since is None else self.busy_since
        try:
            answered = answer()
            self.busy_since = None
        finally:  # the files may be in S3 although what came after them failed
            self._measure(self._now() - began)
        closed = self._checkpoints.closed_step
        # All sets of a trainer that tells no step are of step 0: what it answers there is taken for closed.
        newer = closed > self._closed or (closed == 0 and answered)
        if newer:
            self._closed = closed
            self._reporter.set_closed(closed)
        if answered or newer:
            self._tell()

    def _measure(self, took_s: float) -> None:
        """Notes what a commit took, if there was one."""
        commit, key = self._checkpoints.newest, self._checkpoints.newest_key
        if commit is None or key == self._measured:
            return
        self._measured, size = key, sum(file.size for file in commit.files)
        slow = f", longer than checkpoint_minutes ({self._every_s:.0f} s)" if took_s > self._every_s else ""
        self._note(f"committed a part of {name_checkpoint(commit.step)}: {size} bytes in {took_s:.1f} s{slow}")
        self._reporter.change(commit_s=round(took_s, 3), commit_bytes=size)

    def _commit_artifacts(self, *, final: bool = False) -> None:
        if commit := self._artifacts.commit(final=final):
            self._note(f"committed {len(commit.files)} artifacts: {self._artifacts.newest_key}")
            self._tell()

    def _save_last(self) -> list[Exception]:
        troubles = list[Exception]()
        saves = [self._finish_checkpoints, lambda: self._commit_artifacts(final=True)]
        if self._thread.ident is None:  # nothing was trained: the folders hold at most half of a restore
            saves = [self._checkpoints.leave]
        for save in saves:
            try:
                save()
            except Exception as problem:
                troubles.append(problem)
                self._note(f"not committed: {problem}")
        return troubles

    def _finish_checkpoints(self) -> None:
        self._timed(lambda: self._checkpoints.finish(ended_well=self._ended_well, ended_at=self._ended_at))

    def _tell(self) -> None:
        newest = self._checkpoints.newest
        self._reporter.change(
            checkpoint=self._checkpoints.newest_key,
            checkpoint_step=newest.step if newest else -1,
            layout=self._checkpoints.layout,
            artifacts=self._artifacts.newest_key,
        )


def _words(problem: Exception) -> str:
    """The problem in words for the person whose result is not in S3."""
    if isinstance(problem, Changed):
        return f"{problem}, again and again for {QUIET_S:.0f} s after the command had ended: a process that it left behind still writes"
    return f"{LARGER} ({problem})" if is_full(problem) else str(problem)

"""Knows for how long the training has shown no progress: by its progress file, else by its output; and by its checkpoints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from agent.progress import ProgressFile
from agent.snapshot import list_below

LOOK_S = 2.0
"""Between two looks. Progress is dated when a look sees it, so the idle time is too short by this much at most."""
WORKS_S = 1.0
"""A commit that has worked for longer than this sends something; a look at files that are in S3 already takes less."""
MOST_FILES = 10_000
"""Files of CHECKPOINT_DIR that a look reads, at most: of more than these the first ones say enough."""


class Activity:
    """Looks in a thread of its own: a disk that does not answer holds up nothing else, and the training counts as idle meanwhile."""

    def __init__(
        self,
        progress: ProgressFile,
        folder: Path,
        *,
        committing: Callable[[], float | None],
        commit_most_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`committing`: since when the saver has been at a commit, by `now`; None while it is at none. One that takes longer than
        `commit_most_s` is no progress any more."""
        self._progress, self._folder, self._now = progress, folder, now
        self._committing, self._commit_most_s = committing, commit_most_s
        self._began: float | None = None
        self._told = self._saved = 0.0
        self._heard: Callable[[], float] = lambda: 0.0
        self._said = self._files = ""
        self._has_file = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="activity", daemon=True)

    def expect(self) -> None:
        """Reads the files before the training starts: whatever changes after that is its progress."""
        self._said, self._files = self._words(), self._written()

    def begin(self, heard: Callable[[], float]) -> None:
        """The training has started; `heard` says when its output came last, by `now`."""
        self._heard = heard
        self._began = self._now()
        self._thread.start()

    def end(self) -> None:
        """The training has ended."""
        self._began = None
        self._over.set()

    @property
    def idle_s(self) -> float | None:
        """How long the training has shown no progress; None before it began, and after its end."""
        if (began := self._began) is None:
            return None
        moved = self._told if self._has_file else self._heard()
        return max(0.0, self._now() - max(began, moved, self._saved))

    def update(self) -> None:
        """Compares the files with those of the update before."""
        if (said := self._words()) != self._said:
            self._said, self._told = said, self._now()
            self._has_file = self._has_file or bool(said)
        if (files := self._written()) != self._files:
            self._files, self._saved = files, self._now()
        since, now = self._committing(), self._now()
        if since is not None and WORKS_S < now - since < self._commit_most_s:
            self._saved = now

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            self.update()

    def _words(self) -> str:
        """All that the progress file says; empty where there is none. That it was written again with the same words is no progress."""
        read = self._progress.read()
        return "" if read is None else f"{read} {self._progress.named}"

    def _written(self) -> str:
        """A mark of the files in CHECKPOINT_DIR, which changes while one is written."""
        below = islice(list_below(self._folder), MOST_FILES)
        return str(hash(tuple(sorted((path, facts.st_size, facts.st_mtime_ns) for path, facts in below))))

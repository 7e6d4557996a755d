"""Keeps what a line's training makes on Kubernetes: checkpoints while it trains; model, output and metrics at its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress

from contract.containers import FOLDERS, PROGRESS
from contract.execution_facts import METRIC
from contract.metric_values import describe_values, keep_values
from contract.pod_files import LOG, MOST_METRICS, MOST_NOTE, RESULT, SAID, PodResult, describe_result
from grid_child.bounded_search import LONGEST_SEARCH_S, SlowExpression, search
from grid_child.plain_files import open_plain
from grid_child.pod_folders import NOT_SAVED, PodFolders

LOOK_S = 1.0
MOST_PROBLEM = 300
"""Characters of one problem that the note has."""
SAVE_EVERY_S = 30.0
MOST_LOG = 16 * 1024**2
"""Bytes of a log that is sent while it grows; a longer one is sent once, at its end."""
MOST_LINE = 64 * 1024
"""Bytes of the log that are read at once: a metric stands in a line, and a line that is longer is read in pieces."""


class PodKeeper:
    """`run` returns once `leave` was called, as SIGTERM does when the training has ended, and everything is saved."""

    def __init__(self, folders: PodFolders, *, now: Callable[[], float], pause: Callable[[float], None]) -> None:
        self._folders, self._now, self._pause = folders, now, pause
        self._leaves = False
        self._read = 0
        self._values = dict[str, float]()
        """The last value of each metric."""
        self._unread = dict[str, str]()
        """By name of a metric, why its expression is used no more."""
        self._patterns = {name: re.compile(one) for name, one in folders.files.metrics.items()}

    def leave(self) -> None:
        self._leaves = True

    def run(self) -> int:
        """Returns the exit code: 1 where something could not be saved, which the note names."""
        saved = self._now()
        while not self._leaves:
            self._pause(LOOK_S)
            self._read_log()
            if self._now() - saved >= SAVE_EVERY_S:
                saved = self._now()
                self._folders.send_checkpoints()  # the next time saves what it could not
                with suppress(*NOT_SAVED):
                    if self._read < MOST_LOG:
                        self._folders.send_note(LOG, self._place(SAID))
        return self._finish()

    def _finish(self) -> int:
        self._read_log()
        self._read_progress()
        files, problems = self._folders.files, list[str]()

        def attempt(save: Callable[[], object]) -> object:
            try:
                return save()
            except NOT_SAVED as problem:
                problems.append(f"{type(problem).__name__}: {problem}"[:MOST_PROBLEM])
                return None

        problems += self._folders.send_checkpoints(last=True)
        has_model = attempt(lambda: self._folders.send_archive("model", files.model)) is True
        attempt(lambda: self._folders.send_archive("output/data", f"{files.output}/output.tar.gz"))
        attempt(lambda: self._folders.send_note(LOG, self._place(SAID)))
        result = PodResult(
            ended_at=self._now(),
            model=has_model,
            metrics=keep_values(self._values),
            metric_problems={**describe_values(self._values), **self._unread},
            problem="; ".join(problems),
        )
        self._folders.note(RESULT, describe_result(result, files.seal))
        for problem in problems:
            print(problem, flush=True)
        return 1 if problems else 0

    def _read_log(self) -> None:
        """Takes the last value of each metric, as SageMaker does."""
        with suppress(OSError), open_plain(self._folders.root, self._place(SAID)) as file:
            file.seek(self._read)
            while piece := file.readline(MOST_LINE):
                if not piece.endswith(b"\n") and len(piece) < MOST_LINE and not self._leaves:
                    break  # the rest of the line is still to come
                self._read += len(piece)
                self._take(piece.decode(errors="replace").rstrip("\n"))

    def _take(self, line: str) -> None:
        for name, pattern in list(self._patterns.items()):
            try:
                found = search(pattern, line)
            except SlowExpression:
                del self._patterns[name]
                self._values.pop(name, None)
                self._unread[name] = f"its expression needs more than {LONGEST_SEARCH_S:g} s for one line of the log"
                continue
            if found:
                self._keep(name, found[1] if pattern.groups else found[0])

    def _read_progress(self) -> None:
        """A training that writes for our own clusters puts its metric into a file."""
        with suppress(OSError, ValueError, RecursionError):
            with open_plain(self._folders.root, self._place(PROGRESS)) as file:
                found = json.loads(file.read(MOST_NOTE))
            if METRIC not in self._values and isinstance(found, dict) and found.get(METRIC) is not None:
                self._keep(METRIC, str(found[METRIC]))

    def _keep(self, name: str, text: str) -> None:
        with suppress(ValueError, TypeError):  # the expression may match what is no number
            value = float(text)
            if name in self._values or len(self._values) < MOST_METRICS:
                self._values[name] = value

    @staticmethod
    def _place(path: str) -> str:
        return path.removeprefix(f"{FOLDERS}/")

"""Reads the trainer's progress from a file that may be missing, half written or wrong at any moment."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.codec import Garbled, build
from contract.reports import Progress

LIMIT = 64 * 1024


class ProgressFile:
    """PROGRESS_FILE. While it cannot be read, what was read before counts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._newest: Progress | None = None
        self._checkpoint: int | None = None

    def read(self) -> Progress | None:
        """The newest progress that could be understood, None before the first."""
        try:
            with self._file.open("rb") as source:
                raw: Any = json.loads(source.read(LIMIT))
            self._newest = _finite(build(Progress, raw, self._file.name))
        except (OSError, ValueError, Garbled, RecursionError):
            return self._newest
        checkpoint = raw.get("checkpoint")
        self._checkpoint = checkpoint if type(checkpoint) is int else None
        return self._newest

    @property
    def names_checkpoints(self) -> bool:
        """Whether the trainer says which step its newest finished checkpoint has."""
        return self._checkpoint is not None

    def checkpoint_step(self) -> int:
        """The step of the files that are in CHECKPOINT_DIR now: the trainer's `checkpoint` where it says so, otherwise
        its `step`, -1 where it says nothing."""
        newest = self.read()
        if newest is None:
            return -1
        return newest.step if self._checkpoint is None else self._checkpoint


def _finite(progress: Progress) -> Progress:
    """Python's JSON reads NaN and Infinity, which no report may carry."""
    metric = progress.metric if progress.metric is not None and math.isfinite(progress.metric) else None
    return replace(progress, metric=metric, import_s=progress.import_s if math.isfinite(progress.import_s) else 0.0)

"""Tells Trainyard of a training's progress, and saves checkpoints that are whole or absent.

Optional: Trainyard needs two files and two rules (docs/guides/checkpoints.md), and this module keeps the rules. It is one file of
plain Python (3.9 or later) with no dependencies: copy it beside your code.

    run = Run()
    found = run.newest()
    step = load(found.folder) if found else 0
    while training:
        ...
        run.progress(step, metric=loss)
        with run.checkpoint(step) as folder:
            torch.save(state, folder / "model.pt")

Outside of Trainyard it works as well: checkpoints go to the folder `checkpoints` where CHECKPOINT_DIR is not set, and progress is
not written where PROGRESS_FILE is not set.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

STEP = re.compile(r"step-(0|[1-9]\d{0,17})")
"""The name of a checkpoint's folder."""
TICK_NS = 1000
"""Nanoseconds between two times that are to differ: one second of today's date as a float is 240 ns fine."""


class Checkpoint(NamedTuple):
    """A whole checkpoint."""

    step: int
    folder: Path


class Run:
    """Progress and checkpoints of one process. Any thread may call any method; two checkpoints at a time are rejected.

    Of several processes of a node the first alone (LOCAL_RANK 0, as torchrun and DeepSpeed's launcher set it) writes PROGRESS_FILE, and
    names what all have written; `progress` does nothing in the others.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        progress_file: str | os.PathLike[str] | None = None,
        *,
        keep: int = 1,
    ) -> None:
        """`folder` and `progress_file` stand for CHECKPOINT_DIR and PROGRESS_FILE. `keep` is how many checkpoints stay on the disk, of
        which each costs time and room in S3 once; Trainyard keeps the newest three sets in any case.

        Checkpoints are written to `<folder>.tmp` beside the folder, which has to be on the same file system.
        """
        if keep < 1:
            raise ValueError(f"keep is {keep}; allowed: at least 1")
        given = os.environ.get("PROGRESS_FILE") if progress_file is None else progress_file
        self._folder = Path(os.environ.get("CHECKPOINT_DIR") or "checkpoints") if folder is None else Path(folder)
        self._beside = self._folder.with_name(f"{self._folder.name}.tmp")
        self._leads = int(os.environ.get("LOCAL_RANK") or 0) == 0
        self._progress_file = Path(given) if given and self._leads else None
        self._keep, self._lock, self._saving = keep, threading.Lock(), False
        self._told: dict[str, Any] = {}
        self._stamp_ns = self._named_ns = 0
        self._read_back()

    def progress(self, step: int, *, metric: float | None = None, world_size: int = 0, import_s: float = 0.0) -> None:
        """Tells how far the training is. `metric` may be anything that people compare; NaN and infinity say that the training has
        diverged. `import_s` is how many seconds the framework's import took. What is 0 or None keeps what was told before, but `metric`.
        Numbers of NumPy and PyTorch are numbers too."""
        whole, number = _whole(step), None if metric is None else float(metric)
        with self._lock:
            self._told["step"] = whole
            self._told["metric"] = number if number is None or math.isfinite(number) else str(number)  # JSON has no NaN
            for name, value in (("world_size", _whole(world_size, "world_size")), ("import_s", float(import_s))):
                if value:
                    self._told[name] = value
            self._tell()

    @contextmanager
    def checkpoint(self, step: int, barrier: Callable[[], object] | None = None) -> Iterator[Path]:
        """Gives an empty folder; what the body has written there becomes the checkpoint of this step, and is named to Trainyard.

        On the way out, files are flushed to the disk, renamed into their place as one folder (`step-<step>`), and named last; then those
        beyond `keep` are removed. Where the body raises, or the process dies before, nothing is named and the one before stays.

        `barrier` is needed where several processes of this node write into the folder, as `torch.distributed.barrier`: all of them enter,
        and the first of the node renames and names once all have left the body. Several nodes each save and name their own.

        Raises ValueError where the step is not above that of every checkpoint in the folder, or nothing was written; RuntimeError where
        another checkpoint is not named yet: an asynchronous saver has to wait for the one before.
        """
        step = _whole(step)
        here = self._beside / f"step-{step}"
        self._begin(step, shared=barrier is not None)
        try:
            if self._leads:
                shutil.rmtree(self._beside, ignore_errors=True)
                here.mkdir(parents=True)
            if barrier:
                barrier()
            yield here
            if barrier:
                barrier()
            if self._leads:
                self._finish(step, here)
        finally:
            if self._leads:
                shutil.rmtree(self._beside, ignore_errors=True)
            self._saving = False

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint: saved before, or restored by Trainyard, with the files of all nodes; None where there is none."""
        return max(self._all(), default=None)

    def _all(self) -> list[Checkpoint]:
        inside = list(self._folder.iterdir()) if self._folder.is_dir() else []
        found = [(STEP.fullmatch(one.name), one) for one in inside]
        return [Checkpoint(int(match[1]), one) for match, one in found if match and one.is_dir()]

    def _begin(self, step: int, *, shared: bool) -> None:
        if not self._leads and not shared:
            raise ValueError("several processes of a node save one checkpoint: give all of them the same barrier")
        with self._lock:
            if self._saving:
                raise RuntimeError(
                    f"checkpoint {step} begins before the previous one is named; wait for that one first"
                )
            newest = self.newest()
            if newest is not None and step <= newest.step:
                raise ValueError(
                    f"checkpoint {step} is not newer than {newest.folder}; remove that if it is not wanted"
                )
            self._saving = True

    def _finish(self, step: int, here: Path) -> None:
        """Flushes, renames, names, removes, in this order: at every moment the newest name is of a whole checkpoint."""
        self._flush(here)
        final = self._folder / here.name
        self._folder.mkdir(parents=True, exist_ok=True)
        here.rename(final)
        _sync(self._folder)
        with self._lock:
            self._told["step"] = max(step, self._told.get("step", 0))
            self._told["checkpoint"] = step
            self._named_ns = self._now_ns()
            self._tell()
        for old in sorted(self._all())[: -self._keep]:
            # Out of the folder in one step, so that no reader finds half of it there.
            old.folder.rename(self._beside / f"{old.folder.name}.old")

    def _flush(self, here: Path) -> None:
        """Brings the files to the disk, and dates them now: Trainyard counts a file to the first checkpoint that is named after it changed,
        and on some file systems nothing tells that the folder above it was renamed."""
        folders, empty = [], True
        for parent, inner, files in os.walk(here):
            folders.append(Path(parent))
            for name in (*inner, *files):
                if not _is_within(Path(parent) / name, here):
                    raise ValueError(f"{name} is a link out of the checkpoint's folder; copy what it leads to")
            for name in (name for name in files if not (Path(parent) / name).is_symlink()):
                if (Path(parent) / name).stat().st_nlink > 1:
                    # The kernel dates a file anew when another of its names goes, as with the checkpoint before.
                    raise ValueError(f"{name} has several names (hard links); copy it")
                empty = False
                _sync(Path(parent) / name)
                now_ns = self._now_ns()
                os.utime(Path(parent) / name, ns=(now_ns, now_ns))
        if empty:
            raise ValueError(f"nothing was written to {here}")
        for folder in reversed(folders):
            _sync(folder)

    def _tell(self) -> None:
        """Replaces PROGRESS_FILE. It keeps the time of the checkpoint's name for as long as it has that name: files that are written
        later are not of that checkpoint, however late the file is read."""
        if self._progress_file is None:
            return
        beside = self._progress_file.with_name(f"{self._progress_file.name}.tmp")
        beside.write_text(json.dumps(self._told, allow_nan=False), encoding="utf-8")
        if self._named_ns:
            os.utime(beside, ns=(self._named_ns, self._named_ns))
        beside.replace(self._progress_file)

    def _read_back(self) -> None:
        """Goes on from what an earlier process of this node has named."""
        try:
            assert self._progress_file is not None
            told = json.loads(self._progress_file.read_text(encoding="utf-8"))
            named = _whole(told["checkpoint"])
            self._told = {"step": named, "checkpoint": named}
            self._stamp_ns = self._named_ns = self._progress_file.stat().st_mtime_ns
        except (AssertionError, OSError, ValueError, KeyError, TypeError):
            pass

    def _now_ns(self) -> int:
        """A time after every one that it gave before, even where the clock is set back."""
        self._stamp_ns = max(time.time_ns(), self._stamp_ns + TICK_NS)
        return self._stamp_ns


def _whole(value: Any, name: str = "step") -> int:
    """The value as an int: 20.0 is 20, and so is one of NumPy or PyTorch."""
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if isinstance(value, bool) or whole != value or not 0 <= whole < 10**18:
        raise ValueError(f"{name} is {value!r}; allowed: a whole number from 0, of at most 18 digits")
    return whole


def _is_within(path: Path, folder: Path) -> bool:
    """Whether a path is no link, or one that leads to a place in the folder wherever that lies."""
    if not path.is_symlink():
        return True
    return not path.readlink().is_absolute() and folder.resolve() in path.resolve().parents


def _sync(path: Path) -> None:
    """Waits until a file's bytes, or a folder's names, are on the disk."""
    if os.name != "posix" and path.is_dir():
        return  # only there can folders be opened
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

"""Keeps folders between runs, each under the name of its inputs: made once, never incomplete, deleted when others were used
since and no run uses it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

KEPT = 8
"""Folders that a shelf keeps, the last used ones: rehearsals and the tests' deployments have different settings. An assembly
is about 100 MB."""


@contextmanager
def kept(
    shelf: Path, name: str, make: Callable[[Path], object], *, still: Callable[[], bool] = lambda: True
) -> Iterator[tuple[Path, bool]]:
    """Returns the folder of that name, and whether `make` had to fill it; nobody deletes it during the block. If `still` says
    that the name no longer fits, only this block uses the folder."""
    shelf.mkdir(parents=True, exist_ok=True)
    folder = shelf / name
    with ExitStack() as using:
        used = using.enter_context(_locked(shelf / f"{name}.lock", fcntl.LOCK_SH))
        os.utime(used)
        made = False
        if not folder.exists():
            # Only one caller makes it; those who waited find it. They cannot use the users' lock, which is held for a whole run.
            with _locked(shelf / f"{name}.making", fcntl.LOCK_EX):
                if made := not folder.exists():
                    folder = _fill(folder, make, still, using)
        _forget(shelf)
        yield folder, made


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[int]:
    """Yields the descriptor of the file, locked for as long as the block lasts."""
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, kind)
        yield lock
    finally:
        os.close(lock)


def _fill(folder: Path, make: Callable[[Path], object], still: Callable[[], bool], using: ExitStack) -> Path:
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
    try:
        make(partial)
        if not still():
            elsewhere = using.enter_context(tempfile.TemporaryDirectory())
            return Path(shutil.move(partial, elsewhere))
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return folder


def _forget(shelf: Path) -> None:
    """Deletes all but the last used folders, and anything that an interruption left incomplete."""
    locks = sorted(shelf.glob("*.lock"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for number, path in enumerate(locks):
        stale = [*shelf.glob(f"{path.stem}.partial-*"), *([path.with_suffix("")] if number >= KEPT else [])]
        if stale:
            with suppress(OSError), path.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for folder in stale:
                    shutil.rmtree(folder, ignore_errors=True)

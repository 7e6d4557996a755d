"""Manages the folders of runs: two rehearsals in one checkout share none, and `latest` names the newest."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localaws.recorder import Call

ROOT = Path(__file__).parent.parent
OUT = ROOT / "rehearsal" / "out"
WORK = ROOT / "build" / "rehearsal"
LATEST = "latest"
KEPT = 10
"""How many result folders are kept, the newest; working folders, a hundred times as large, are deleted by the next run."""
NAME_LONGEST = 80
"""The most characters of an execution's name: Admit takes no longer job id."""
UNNAMED = "job"
_LOCK = ".lock"


class Unwritable(Exception):
    """A folder that a run needs cannot be made; the message is a line for whoever started it."""


def job_name(folder: str, now: float | None = None) -> str:
    """Makes an execution's name from any folder name: letters, digits and single dashes, the time, and a few random characters, because
    two runs may start in one second."""
    plain = unicodedata.normalize("NFKD", folder).encode("ascii", "ignore").decode()
    suffix = f"-{time.strftime('%H%M%S', time.localtime(now))}-{uuid.uuid4().hex[:4]}"
    words = re.sub("[^A-Za-z0-9]+", "-", plain).strip("-")[: NAME_LONGEST - len(suffix)].rstrip("-")
    return f"{words or UNNAMED}{suffix}"


def leave(out: Path, summary: Mapping[str, Any], calls: Iterable[Call]) -> None:
    """Writes what every rehearsal leaves: its summary, and each call that was sent to AWS."""
    (out / "summary.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False, default=str) + "\n")
    with (out / "calls.jsonl").open("w") as lines:
        lines.writelines(json.dumps(asdict(call), default=str) + "\n" for call in calls)


class Run:
    """One run: `out` is for a person, `work` for everything else; both are locked for as long as the run lives."""

    def __init__(self, name: str, *, out: Path = OUT, work: Path = WORK) -> None:
        """Makes the folders and points `latest` at them. Raises Unwritable."""
        self.name = name
        self.out, self.work = out / name, work / name
        self._locks: list[int] = []
        for folder in (self.out, self.work):
            try:
                self._locks.append(_make_and_lock(folder))
            except OSError as problem:
                self.close()
                raise Unwritable(
                    f"{_shown(folder)}: {problem.strerror or problem}; it must be a folder that can be made and written to"
                ) from None
        try:
            _point(out / LATEST, name)
        except OSError as problem:
            self.close()
            raise Unwritable(
                f"{_shown(out / LATEST)}: {problem.strerror or problem}; it must be a link that may be replaced"
            ) from None
        _forget(out, KEPT)
        _forget(work, 1)

    def close(self) -> None:
        """Unlocks the folders, which stay until later runs delete them."""
        for lock in self._locks:
            os.close(lock)
        self._locks.clear()


def _make_and_lock(folder: Path) -> int:
    folder.mkdir(parents=True)
    folder.chmod(0o700)  # other users of the computer must not read requests, logs and machines' disks
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    # The kernel releases the lock however the run ends.
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def _point(link: Path, name: str) -> None:
    """Replaces the link in one step, so that it always exists."""
    new = link.with_name(f".{LATEST}-{uuid.uuid4().hex}")
    new.symlink_to(name, target_is_directory=True)
    try:
        new.replace(link)
    except OSError:
        new.unlink()
        raise


def _forget(parent: Path, kept: int) -> None:
    """Deletes all but the newest folders, and never one whose run lives."""
    runs = sorted(
        (path for path in parent.iterdir() if not path.is_symlink() and (path / _LOCK).is_file()),
        key=lambda path: (path / _LOCK).stat().st_mtime_ns,
        reverse=True,
    )
    for folder in runs[kept:]:
        with suppress(OSError):  # another run deletes it right now, or it belongs to another user
            _remove_unless_alive(folder)


def _remove_unless_alive(folder: Path) -> None:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def shorten(path: Path) -> str:
    """Returns the path as it is typed in the folder of whoever started the run."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

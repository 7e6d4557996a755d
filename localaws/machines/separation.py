"""Asks this computer once whether nodes can have mounts of their own (`localaws.machines.init.separate`)."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PROBE = """
import sys
from pathlib import Path
from localaws.machines.init import separate
disk, place = map(Path, sys.argv[1:])
separate(disk, place)
sys.exit(disk.exists() or not (place / "on-the-disk").exists())
"""


@functools.cache
def can_separate() -> bool:
    """Whether this computer gives nodes mounts of their own: then each sees its disk at the same path, and no other's."""
    with TemporaryDirectory() as folder:
        disk, place = Path(folder, "nodes/one"), Path(folder, "machine")
        for path in (disk / "run", disk / "on-the-disk", place):
            path.mkdir(parents=True)
        words = [sys.executable, "-S", "-c", PROBE, str(disk), str(place)]
        done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, check=False)
    return done.returncode == 0

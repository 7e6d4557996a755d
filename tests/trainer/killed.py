"""Saves checkpoint 120 after 110, and dies before the n-th thing that it does to the disk; run as a process of its own."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

TOUCHING = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.utime", "fsync", "write"}
DIED = 77


def main(module: str, root: Path, deadly: int) -> None:
    run = runpy.run_path(module)["Run"](root / "checkpoints", root / "progress.json")
    save(run, 110)
    done, fsync = [0], os.fsync

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if event in TOUCHING:
            done[0] += 1
            if done[0] == deadly:
                os._exit(DIED)

    def synced(fd: Any) -> None:
        sys.audit("fsync")
        fsync(fd)

    os.fsync = synced
    sys.addaudithook(hook)
    save(run, 120)
    run.progress(125, metric=0.5)


def save(run: Any, step: int) -> None:
    with run.checkpoint(step) as folder:
        for name in ("model", "optimizer"):
            with (folder / name).open("w", buffering=1) as file:
                for _ in range(2):
                    sys.audit("write")
                    file.write(f"{step}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

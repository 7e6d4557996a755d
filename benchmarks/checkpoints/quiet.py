"""A pass that finds nothing new beside a bare walk: `python -m benchmarks.checkpoints.quiet FOLDER`, in which it makes 10,000 files.

Prints the seconds of each, and how many requests the passes made.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

FILES, TIMES = 10_000, 21


def walk(folder: Path) -> None:
    """What any look costs at least: every folder is listed, and every file is asked for its state."""
    folders = [str(folder)]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                entry.stat(follow_symlinks=False)


def seconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def main() -> None:
    import boto3

    from agent.commits import Artifacts, Folder
    from agent.engine.engine import Engine
    from agent.progress import ProgressFile
    from agent.store import Store
    from contract.keys import CommitKind

    root = Path(sys.argv[1])
    for number in range(FILES):
        file = root / "files" / f"layer-{number // 100:02d}" / f"{number:05d}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"weights")
    store = Store(boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]), "bench")
    folder = Folder(Engine(store), root / "files", kind=CommitKind.ARTIFACTS, job="bench", rank=0, note=print)
    artifacts = Artifacts(store, folder, job="bench", attempt=1, rank=0, progress=ProgressFile(root / "progress.json"))
    assert artifacts.commit() is not None
    requests = list[str]()

    def count_request(request: Any, **_: Any) -> None:
        requests.append(request.url)

    store.client.meta.events.register("before-send.s3", count_request)
    passes, walks = list[float](), list[float]()
    for _ in range(TIMES):
        passes.append(seconds(artifacts.commit))
        walks.append(seconds(lambda: walk(root / "files")))
    print(json.dumps({"pass_s": median(passes), "walk_s": median(walks), "requests": len(requests)}))


if __name__ == "__main__":
    main()

"""`python -m grid_child.pods bringer|keeper`: the helpers beside a line's training in its pods on Kubernetes.

The bringer fills the folders that SageMaker's containers have, and ends. The keeper runs in the launcher's pod as long as the training
does: it saves checkpoints meanwhile, and at the end the model, the output, and what the log says of the metrics.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contract import containers, training
from contract.mpi_job import BRINGER, KEEPER
from contract.pod_files import PodFiles
from grid_child.pod_folders import PodFolders, open_storage
from grid_child.pod_keeper import PodKeeper


def run(words: list[str], variables: Mapping[str, str], *, hear: Callable[[Callable[[], None]], None]) -> int:
    """Does what the first word says. `hear` gets what SIGTERM has to call. Returns the exit code, and prints why it is not 0."""
    if words not in ([BRINGER], [KEEPER]):
        print(f"{' '.join(words) or 'no word'}; allowed: {BRINGER} or {KEEPER}", file=sys.stderr)
        return 64
    files = PodFiles.read(variables)
    rank, storage = int(variables.get(training.NODE_RANK) or 0), open_storage(variables["AWS_REGION"])
    folders = PodFolders(files, Path(containers.FOLDERS), rank=rank, storage=storage)
    if words == [BRINGER]:
        folders.fill()
        return 0
    keeper = PodKeeper(folders, now=time.time, pause=time.sleep)
    hear(keeper.leave)
    return keeper.run()


def main() -> int:
    def hear(call: Callable[[], None]) -> None:
        def handle(*_: Any) -> None:
            call()

        signal.signal(signal.SIGTERM, handle)

    try:
        return run(sys.argv[1:], os.environ, hear=hear)
    except Exception as problem:
        # The last line is what Kubernetes shows of a container that failed.
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())

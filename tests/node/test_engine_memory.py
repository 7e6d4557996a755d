"""How much memory the engine takes, measured in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from localaws.testing.waiting import HANG_S
from tests.architecture.sources import ROOT
from tests.node.engine_yard import MIB, Yard, yard

MOST_MB = 100.0
"""Above the bare interpreter, boto3's own 40 MB included."""
AMOUNT = 256 * MIB


def ran(it: Yard, what: str, folder: Path, listing: Path) -> dict[str, Any]:
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / 'node'}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": it.sink.endpoint,
        "AWS_CA_BUNDLE": str(it.sink.authority),
    }
    command = [sys.executable, "-m", "benchmarks.checkpoints.ours", what, str(folder), str(listing)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, cwd=ROOT, timeout=HANG_S)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_neither_many_files_nor_large_ones_take_more_memory_than_is_allowed(tmp_path: Path) -> None:
    with yard(tmp_path) as it:
        it.write({f"small/{number}": os.urandom(64 * 1024) for number in range(1024)})
        it.write({f"large-{number}": os.urandom(AMOUNT // 4) for number in range(3)})
        for what, folder in (("commit", it.folder), ("restore", it.staging)):
            told = ran(it, what, folder, tmp_path / "list")
            assert told["peak_mb"] - told["bare_mb"] <= MOST_MB, what
        assert (it.staging / "large-2").read_bytes() == (it.folder / "large-2").read_bytes()

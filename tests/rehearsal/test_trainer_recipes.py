"""The recipe for FSDP in docs/guides/checkpoints.md, run with PyTorch: two nodes of two processes, each with a disk of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tools.synthesis import ROOT

PYTHON = ROOT / "build" / "ami" / "bin" / "python"
SCRIPT = ROOT / "tests" / "trainer" / "sharded.py"
pytestmark = pytest.mark.rehearsal


def launch(root: Path, seed: int) -> list[str]:
    """Four processes on two nodes; what each printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(4):
        node = root / f"node-{rank // 2}"
        variables = {
            "RANK": str(rank), "LOCAL_RANK": str(rank % 2), "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "CHECKPOINT_DIR": str(node / "checkpoints"),
            "PROGRESS_FILE": str(node / "progress.json"), "SEED": str(seed), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "trainer"),
        }  # fmt: skip
        started.append(
            subprocess.Popen(
                [str(PYTHON), str(SCRIPT)], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True
            )
        )
    said = [one.communicate(timeout=HANG_S)[0] for one in started]
    assert [one.returncode for one in started] == [0] * 4
    return said


def test_shards_of_two_nodes_are_saved_by_each_and_loaded_from_the_files_of_both(tmp_path: Path) -> None:
    for node in ("node-0", "node-1"):
        (tmp_path / node).mkdir()
    saved = {line for text in launch(tmp_path, seed=1) for line in text.splitlines()}
    assert len(saved) == 1
    names = [sorted(one.name for one in (tmp_path / f"node-{n}/checkpoints/step-3").iterdir()) for n in range(2)]
    assert names == [[".metadata", "__0_0.distcp", "__1_0.distcp"], ["__2_0.distcp", "__3_0.distcp"]]
    assert [one.name for one in tmp_path.glob("node-*/checkpoints/*")] == ["step-3", "step-3"]
    # What Trainyard restores: the files of all nodes, on each.
    for one, other in (("node-0", "node-1"), ("node-1", "node-0")):
        shutil.copytree(tmp_path / one, tmp_path / "again" / other, dirs_exist_ok=True)
        shutil.copytree(tmp_path / other, tmp_path / "again" / other, dirs_exist_ok=True)
        (tmp_path / "again" / other / "progress.json").unlink()
    lines = {line for text in launch(tmp_path / "again", seed=2) for line in text.splitlines()}
    (resumed,) = (line for line in lines if line.startswith("resumed"))
    assert {resumed.replace("resumed", "saved")} == saved
    assert any(line.startswith("saved 6 ") for line in lines)

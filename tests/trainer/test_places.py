"""Where the module runs: in Trainyard, elsewhere, and in one of several processes of a node."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from contract import training
from localaws.testing.waiting import HANG_S
from tests.trainer.saving import files, processes
from trainer import trainyard_trainer
from trainer.trainyard_trainer import Run

MODULE = Path(trainyard_trainer.__file__)
KILLED = Path(__file__).with_name("killed.py")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "checkpoints", tmp_path / "progress.json")


def save(run: Run, step: int, text: str = "state") -> None:
    with run.checkpoint(step) as folder:
        (folder / "model.pt").write_text(text)


def read_progress(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "progress.json").read_text())
    return found


def test_in_trainyard_its_variables_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(training.CHECKPOINT_DIR, str(tmp_path / "c"))
    monkeypatch.setenv(training.PROGRESS_FILE, str(tmp_path / "p.json"))
    save(Run(), 5)
    assert files(tmp_path) == {"c/step-5/model.pt", "p.json"}


def test_elsewhere_checkpoints_are_in_the_folder_here_and_progress_is_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Run()
    run.progress(4)
    save(run, 5)
    assert files(tmp_path) == {"checkpoints/step-5/model.pt"}


def test_of_a_nodes_processes_the_first_alone_tells_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    Run(tmp_path / "checkpoints", tmp_path / "progress.json").progress(5)
    assert files(tmp_path) == set()


def test_another_process_that_saves_without_a_barrier_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(ValueError, match="same barrier"):
        save(Run(tmp_path / "checkpoints"), 5)


def together(runs: list[Run], step: int, fails: int = -1) -> list[str]:
    """All processes of a node save; what went wrong in each."""
    barrier, problems = threading.Barrier(len(runs), timeout=HANG_S), [""] * len(runs)

    def one(rank: int) -> None:
        try:
            with runs[rank].checkpoint(step, barrier.wait) as folder:
                time.sleep(0.05 * rank)
                if rank == fails:
                    raise RuntimeError("out of memory")
                (folder / f"rank-{rank}.pt").write_text(str(step))
        except Exception as problem:
            problems[rank] = type(problem).__name__
            barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    return problems


def test_what_all_processes_of_a_node_have_written_is_one_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = processes(tmp_path, monkeypatch, 3)
    assert together(runs, 110) == ["", "", ""]
    assert together(runs, 120) == ["", "", ""]
    assert files(tmp_path / "checkpoints") == {f"step-120/rank-{rank}.pt" for rank in range(3)}
    assert read_progress(tmp_path)["checkpoint"] == 120


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_a_process_that_fails_leaves_the_checkpoint_of_all_unnamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    runs = processes(tmp_path, monkeypatch, 3)
    together(runs, 110)
    assert "" not in together(runs, 120, fails=fails)
    assert read_progress(tmp_path)["checkpoint"] == 110
    assert files(tmp_path / "checkpoints") == {f"step-110/rank-{rank}.pt" for rank in range(3)}

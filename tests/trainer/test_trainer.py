"""What a trainer saves with the module is whole or absent, named once it is whole, and the next one begins after that."""

from __future__ import annotations

import ast
import json
import math
import os
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from contract.reports import Progress
from localaws.testing.waiting import HANG_S
from tests.trainer.killed import DIED
from tests.trainer.saving import files
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


# Checkpoints


def test_a_checkpoint_lies_in_a_folder_of_its_own_and_is_named(run: Run, tmp_path: Path) -> None:
    save(run, 120)
    assert files(tmp_path) == {"checkpoints/step-120/model.pt", "progress.json"}
    assert read_progress(tmp_path) == {"step": 120, "checkpoint": 120}
    assert run.newest() == (120, tmp_path / "checkpoints" / "step-120")


def test_while_it_is_written_nothing_of_it_is_in_the_folder_and_it_is_not_named(run: Run, tmp_path: Path) -> None:
    save(run, 110)
    with run.checkpoint(120) as folder:
        (folder / "model.pt").write_text("state")
        assert files(tmp_path / "checkpoints") == {"step-110/model.pt"}
        assert read_progress(tmp_path)["checkpoint"] == 110
        found = run.newest()
    assert found is not None
    assert found.step == 110


class Stopped(BaseException):
    """What no `except Exception` sees."""


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt, SystemExit, Stopped])
def test_a_checkpoint_whose_body_raises_is_neither_there_nor_named(
    run: Run, tmp_path: Path, problem: type[BaseException]
) -> None:
    save(run, 110)
    with pytest.raises(problem), run.checkpoint(120) as folder:
        raise problem((folder / "model.pt").write_text("half"))
    assert files(tmp_path) == {"checkpoints/step-110/model.pt", "progress.json"}
    assert read_progress(tmp_path)["checkpoint"] == 110
    save(run, 120)


def test_a_checkpoint_that_cannot_be_renamed_is_not_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("read-only")

    save(run, 110)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="read-only"):
        save(run, 120)
    assert read_progress(tmp_path)["checkpoint"] == 110


def test_a_checkpoint_without_files_is_rejected(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing was written"), run.checkpoint(120) as folder:
        (folder / "empty").mkdir()
    assert files(tmp_path) == set()


@pytest.mark.parametrize("target", ["absolute", "..", "../step-110", "/etc/passwd", "deep/../.."])
def test_a_link_out_of_the_checkpoint_is_rejected_because_it_would_not_be_committed(run: Run, target: str) -> None:
    def write(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "deep" / "model.pt").write_text("120")
        (folder / "model.pt").symlink_to(folder / "deep" / "model.pt" if target == "absolute" else target)

    with pytest.raises(ValueError, match="is a link out of"), run.checkpoint(120) as folder:
        write(folder)
    assert run.newest() is None


def test_a_link_within_the_checkpoint_is_a_part_of_it(run: Run) -> None:
    with run.checkpoint(120) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "model.pt").write_text("120")
        (folder / "model.pt").symlink_to("deep/model.pt")
        (folder / "also").symlink_to("deep")
    found = run.newest()
    assert found is not None
    assert [(found.folder / name).read_text() for name in ("model.pt", "also/model.pt")] == ["120", "120"]


def test_a_file_of_the_checkpoint_before_under_a_second_name_is_rejected_because_its_removal_would_date_it_anew(
    run: Run,
) -> None:
    save(run, 120)
    before = run.newest()
    assert before is not None
    with pytest.raises(ValueError, match="several names"), run.checkpoint(130) as folder:
        (folder / "embedding.pt").hardlink_to(before.folder / "model.pt")
    assert run.newest() == before


def test_the_largest_step_that_a_folder_can_have_is_found(run: Run) -> None:
    save(run, 10**18 - 1)
    assert run.newest() is not None


def test_the_next_one_is_rejected_until_the_one_before_is_named(run: Run) -> None:
    with run.checkpoint(120) as folder:
        (folder / "model.pt").write_text("state")
        with pytest.raises(RuntimeError, match="wait for that one"), run.checkpoint(130):
            pytest.fail("it began")
    save(run, 130)


def test_of_two_threads_that_save_at_once_one_is_rejected(run: Run, tmp_path: Path) -> None:
    begun, problems = threading.Barrier(2), list[str]()

    def at_once(step: int) -> None:
        try:
            with run.checkpoint(step) as folder:
                (folder / "model.pt").write_text(str(step))
                begun.wait(HANG_S)
        except RuntimeError as problem:
            problems.append(str(problem))
            begun.wait(HANG_S)

    threads = [threading.Thread(target=at_once, args=(step,)) for step in (120, 130)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(HANG_S)
    assert len(problems) == 1
    (file,) = files(tmp_path / "checkpoints")
    assert (tmp_path / "checkpoints" / file).read_text() == file.split("/")[0].removeprefix("step-")


def test_progress_that_a_thread_tells_while_another_saves_keeps_the_name(run: Run, tmp_path: Path) -> None:
    save(run, 110)
    with run.checkpoint(120) as folder:
        (folder / "model.pt").write_text("state")
        run.progress(125, metric=0.5)
        assert read_progress(tmp_path) == {"step": 125, "metric": 0.5, "checkpoint": 110}
    assert read_progress(tmp_path) == {"step": 125, "metric": 0.5, "checkpoint": 120}


@pytest.mark.parametrize("step", [119, 120])
def test_a_step_that_is_not_newer_is_rejected(run: Run, step: int) -> None:
    save(run, 120)
    with pytest.raises(ValueError, match="not newer"), run.checkpoint(step):
        pytest.fail("it began")


class Number:
    """A number of NumPy or PyTorch: JSON does not take it, Python's own functions do."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __eq__(self, other: object) -> bool:
        return self.value == other

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("step", [130.0, Number(130), Number(130.0)])
def test_a_whole_number_of_any_type_is_a_step(run: Run, tmp_path: Path, step: Any) -> None:
    run.progress(step, metric=cast("Any", Number(0.5)), world_size=cast("Any", Number(2)))
    assert read_progress(tmp_path) == {"step": 130, "metric": 0.5, "world_size": 2}
    with run.checkpoint(step) as folder:
        (folder / "model.pt").write_text("x")
    assert folder.name == "step-130"
    assert read_progress(tmp_path)["checkpoint"] == 130


def test_a_checkpoint_that_a_trainer_of_old_named_as_a_float_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text('{"step": 20.0, "checkpoint": 20.0}')
    Run(tmp_path / "checkpoints", tmp_path / "progress.json").progress(21)
    assert read_progress(tmp_path) == {"step": 21, "checkpoint": 20, "metric": None}


@pytest.mark.parametrize("step", [-1, True, 1.5, "1", None, 10**18, math.nan, math.inf, [1], Number(1.5)])
def test_what_is_no_step_is_rejected(run: Run, step: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        run.progress(step)
    with pytest.raises(ValueError, match="whole number"), run.checkpoint(step):
        pytest.fail("it began")


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_the_newest_stay(tmp_path: Path, keep: int) -> None:
    run = Run(tmp_path / "checkpoints", keep=keep)
    for step in (9, 10, 11, 100):
        save(run, step)
    kept = {f"checkpoints/step-{step}/model.pt" for step in (9, 10, 11, 100)[-keep:]}
    assert files(tmp_path) == kept


def test_no_number_of_checkpoints_to_keep_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Run(tmp_path, keep=0)


def test_folders_within_a_checkpoint_are_part_of_it(run: Run, tmp_path: Path) -> None:
    with run.checkpoint(120) as folder:
        (folder / "global_step120").mkdir()
        (folder / "global_step120" / "zero_pp_rank_0.pt").write_text("shard")
    assert "checkpoints/step-120/global_step120/zero_pp_rank_0.pt" in files(tmp_path)


# Resuming


@pytest.mark.parametrize("strange", ["step-", "step-007", "step-1.tmp", "step--1", "astep-5", "step-5x", "latest"])
def test_what_is_no_checkpoint_is_not_found(run: Run, tmp_path: Path, strange: str) -> None:
    (tmp_path / "checkpoints" / strange).mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-3").write_text("a file")
    assert run.newest() is None


def test_the_newest_is_the_one_with_the_highest_number(run: Run, tmp_path: Path) -> None:
    for step in (9, 10, 100, 99):
        (tmp_path / "checkpoints" / f"step-{step}").mkdir(parents=True)
    found = run.newest()
    assert found is not None
    assert found.step == 100


def test_what_a_dead_process_has_begun_is_removed_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "checkpoints.tmp" / "step-110").mkdir(parents=True)
    (tmp_path / "checkpoints.tmp" / "step-110" / "model.pt").write_text("half")
    save(Run(tmp_path / "checkpoints"), 120)
    assert files(tmp_path) == {"checkpoints/step-120/model.pt"}


def test_a_process_that_follows_another_keeps_what_that_one_named(run: Run, tmp_path: Path) -> None:
    save(run, 120)
    named_at = (tmp_path / "progress.json").stat().st_mtime_ns
    Run(tmp_path / "checkpoints", tmp_path / "progress.json").progress(121)
    assert read_progress(tmp_path) == {"step": 121, "metric": None, "checkpoint": 120}
    assert (tmp_path / "progress.json").stat().st_mtime_ns == named_at


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"step": 5}', '{"checkpoint": true}', '{"checkpoint": "5"}'])
def test_a_progress_file_that_names_nothing_names_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress.json").write_text(text)
    Run(tmp_path / "checkpoints", tmp_path / "progress.json").progress(1)
    assert read_progress(tmp_path) == {"step": 1, "metric": None}


# Progress


def test_progress_is_what_the_contract_says(run: Run, tmp_path: Path) -> None:
    run.progress(7, metric=0.25, world_size=4, import_s=3.5)
    assert Progress(**read_progress(tmp_path)) == Progress(step=7, metric=0.25, world_size=4, import_s=3.5)
    run.progress(8)
    assert Progress(**read_progress(tmp_path)) == Progress(step=8, metric=None, world_size=4, import_s=3.5)


@pytest.mark.parametrize("metric", [float("nan"), float("inf"), float("-inf")])
def test_a_metric_that_json_lacks_is_told_as_a_training_that_diverged(run: Run, tmp_path: Path, metric: float) -> None:
    run.progress(7, metric=metric)
    assert read_progress(tmp_path)["metric"] == str(metric)
    assert json.loads((tmp_path / "progress.json").read_text(), parse_constant=pytest.fail)["step"] == 7


def test_whoever_reads_never_finds_half_a_file(run: Run, tmp_path: Path) -> None:
    run.progress(0)
    over, wrong = threading.Event(), list[str]()

    def read() -> None:
        while not over.is_set():
            try:
                read_progress(tmp_path)
            except ValueError as problem:
                wrong.append(str(problem))

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(500):
        run.progress(step)
    over.set()
    reader.join()
    assert wrong == []


# Times: a file counts to the checkpoint that is named after it


def test_files_are_older_than_their_name_and_newer_than_the_name_before(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that stands still, as a file system's does for milliseconds, and on one that is set back."""
    times = []
    for step, now in ((110, 50), (120, 50), (130, 40)):
        monkeypatch.setattr(time, "time_ns", lambda now=now: now * 10**9)
        save(run, step)
        times.append((tmp_path / "checkpoints" / f"step-{step}" / "model.pt").stat().st_mtime_ns)
        times.append((tmp_path / "progress.json").stat().st_mtime_ns)
    assert times == sorted(set(times))
    assert all(later - earlier >= 1000 for earlier, later in pairwise(times))


def test_bytes_that_were_written_before_the_last_name_make_no_file_older(run: Run, tmp_path: Path) -> None:
    save(run, 110)
    with run.checkpoint(120) as folder:
        (folder / "model.pt").write_text("state")
        os.utime(folder / "model.pt", (5.0, 5.0))
    file = tmp_path / "checkpoints" / "step-120" / "model.pt"
    assert time.time() - 60 < file.stat().st_mtime <= (tmp_path / "progress.json").stat().st_mtime


def test_progress_that_follows_makes_the_name_no_younger(run: Run, tmp_path: Path) -> None:
    save(run, 110)
    named_at = (tmp_path / "progress.json").stat().st_mtime_ns
    time.sleep(0.02)
    run.progress(111)
    assert (tmp_path / "progress.json").stat().st_mtime_ns == named_at


# A kill at any moment


def test_a_kill_before_anything_that_it_does_to_the_disk_leaves_whole_checkpoints_and_true_names(
    tmp_path: Path,
) -> None:
    seen = set()
    for deadly in range(1, 200):
        root = tmp_path / str(deadly)
        root.mkdir()
        command = [sys.executable, "-I", str(KILLED), str(MODULE), str(root), str(deadly)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode in (0, DIED), done.stderr
        seen.add(_left_whole(root))
        if done.returncode == 0:
            break
    else:
        pytest.fail("it never came to its end")
    assert seen == {(110, 110), (110, 120), (120, 120)}
    assert deadly > 20


def _left_whole(root: Path) -> tuple[int, int]:
    """What is named, and what the next process finds; both are whole."""
    named = read_progress(root)["checkpoint"]
    found = Run(root / "checkpoints", root / "progress.json").newest()
    assert found is not None
    for step in (named, found.step):
        whole = dict.fromkeys(("model", "optimizer"), f"{step}\n{step}\n")
        assert {one.name: one.read_text() for one in (root / "checkpoints" / f"step-{step}").iterdir()} == whole
    return named, found.step


def test_it_needs_nothing_but_the_standard_library_of_an_old_python() -> None:
    ast.parse(MODULE.read_text(), feature_version=(3, 9))  # the rest of 3.9 is checked by `make types`
    alone = subprocess.run([sys.executable, "-I", "-S", str(MODULE)], capture_output=True, check=False)
    assert alone.returncode == 0, alone.stderr

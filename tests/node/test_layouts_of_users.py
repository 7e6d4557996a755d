"""Frameworks as people use them: fast saves, rotation, files of their own beside, a rank that is slow, and two ways in one job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, closed, pass_time, ranks
from tests.node.layout_worlds import (
    FOLDERS,
    LAYOUTS,
    as_torch,
    newest_closed,
    put,
    read_bytes,
    remove,
    restored,
    save,
    written,
)

EACH = pytest.mark.parametrize("layout", list(LAYOUTS))


def trained(root: Path, s3: FakeS3, layout: str) -> list[Rank]:
    """Two ranks with a set of checkpoint 20, whose trainers have just saved 40."""
    every = ranks(root, s3, 2)
    save(layout, every, 20)
    pass_time(every, EVERY_S + 120)
    save(layout, every, 40)
    return every


def save_lightning(rank: Rank, step: int) -> None:
    put(rank, f"epoch=0-step={step}.ckpt", as_torch(f"pytorch-lightning_version global_step {step}"))


@pytest.mark.parametrize("pause_s", [6, 8, 13])
def test_a_checkpoint_that_is_replaced_within_seconds_is_in_the_set_that_was_opened_with_it(
    tmp_path: Path, s3: FakeS3, pause_s: int
) -> None:
    """Lightning keeps one file, and removes the one before."""
    every = ranks(tmp_path, s3, 2)
    put(every[0], "hparams.yaml", "lr: 1")
    for step in range(1, int(2.5 * EVERY_S / pause_s)):
        save_lightning(every[0], step)
        (every[0].path / f"epoch=0-step={step - 1}.ckpt").unlink(missing_ok=True)
        pass_time(every, pause_s)
    step = newest_closed(every)
    assert step > 0
    assert f"epoch=0-step={step}.ckpt" in read_bytes(restored(tmp_path, every)[1])


@EACH
def test_a_trainer_that_saves_every_few_seconds_and_keeps_two_has_sets(tmp_path: Path, s3: FakeS3, layout: str) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in range(20, 20 * int(2.5 * EVERY_S / 4), 20):
        save(layout, every, step)
        remove(layout, every, step - 40)
        pass_time(every, 4)
    assert len(closed(s3)) >= 2


@EACH
def test_where_rank_0_names_the_checkpoint_for_all_files_of_other_ranks_are_in_the_set_as_they_are(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in (20, 40):
        save(layout, every, step)
        every[0].at(step, checkpoint=step)
        pass_time(every, 1.5 * EVERY_S)
    whole = written(every, 40, layout)
    for again in restored(tmp_path, every):
        assert whole.items() <= read_bytes(again).items()


@EACH
def test_so_are_they_in_the_last_set_before_which_there_was_none(tmp_path: Path, s3: FakeS3, layout: str) -> None:
    every = ranks(tmp_path, s3, 2)
    save(layout, every, 20)
    every[0].at(20, checkpoint=20)
    for rank in every:
        rank.checkpoints.finish()
    assert len(closed(s3)) == 1
    assert written(every, 20, layout).items() <= read_bytes(restored(tmp_path, every)[0]).items()


def test_a_trainer_that_named_its_checkpoints_in_an_attempt_before_need_not_go_on_doing_so(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20)
    for rank in every:
        rank.at(20, checkpoint=20)
    pass_time(every, 2 * EVERY_S)
    again = restored(tmp_path, every)
    pass_time(again, 5)
    save("transformers", again, 40)
    pass_time(again, 2 * EVERY_S)
    assert newest_closed(again) == 40


def test_another_framework_may_go_on_in_the_folder_of_one_before(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 2)
    save("transformers", every, 20)
    pass_time(every, EVERY_S + 120)
    again = restored(tmp_path, every)
    for step in (40, 60):
        save_lightning(again[0], step)
        pass_time(again, EVERY_S)
    assert newest_closed(again) >= 40


@EACH
def test_the_last_set_of_a_job_that_ended_well_has_all_that_its_ranks_left(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    every = trained(tmp_path, s3, layout)
    put(every[0], "final/model.bin", "final weights")
    every[0].clock.now += 3.0
    for rank in every:
        rank.checkpoints.finish(ended_well=True)
    found = read_bytes(restored(tmp_path, every)[1])
    assert written(every, 40, layout).items() <= found.items()
    assert "final/model.bin" in found


@EACH
def test_a_checkpoint_in_place_of_the_only_one_is_in_the_last_set_although_its_trainer_died_right_after(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    every = trained(tmp_path, s3, layout)
    remove(layout, every, 20)
    every[0].clock.now += 1.0
    for rank in every:
        rank.checkpoints.finish()
    assert written(every, 40, layout).items() <= read_bytes(restored(tmp_path, every)[0]).items()


def test_a_best_checkpoint_with_a_card_and_rotation_keep_the_later_ones_out_of_no_set(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 2)
    put(every[0], "checkpoint-20/README.md", "the best one")
    for step in range(20, 20 + 20 * int(3 * EVERY_S / 60), 20):
        save("transformers", every, step)
        remove("transformers", every, step - 20 if step > 40 else 0)
        pass_time(every, 60)
    assert newest_closed(every) > 20


def test_a_set_without_the_states_of_a_rank_of_deepspeed_is_not_closed(tmp_path: Path, s3: FakeS3) -> None:
    """Its marker comes before the barrier, and the rank hangs."""
    every = ranks(tmp_path, s3, 2)
    for rank, path, content in LAYOUTS["deepspeed"](2, 20):
        if rank == 0:
            put(every[0], path, content)
    pass_time(every, 2 * EVERY_S)
    assert closed(s3) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [("preds.json", b'{"a": 1}\n{"a": 2}\n'), ("dropped.bin", b""), ("lora_B.bin", bytes(64)), ("table.csv", b"1,2")],
)
def test_a_file_of_ones_own_in_a_checkpoint_keeps_it_out_of_no_set(
    tmp_path: Path, s3: FakeS3, name: str, content: bytes
) -> None:
    every = ranks(tmp_path, s3, 2)
    for step in (20, 40):
        put(every[0], f"checkpoint-{step}/{name}", content)
        save("transformers", every, step)
        pass_time(every, EVERY_S)
    assert newest_closed(every) >= 20


def test_a_file_beside_checkpoints_that_is_cut_off_is_in_no_set(tmp_path: Path, s3: FakeS3) -> None:
    every = ranks(tmp_path, s3, 1)
    save("transformers", every, 20)
    pass_time(every, EVERY_S - 20)
    put(every[0], "final.pt", as_torch("final")[:-30])
    pass_time(every, 60)
    assert newest_closed(every) == 20
    assert "final.pt" not in read_bytes(restored(tmp_path, every)[0])


def test_the_best_checkpoint_is_in_the_set_although_a_log_beside_it_grows_all_the_time(
    tmp_path: Path, s3: FakeS3
) -> None:
    every = ranks(tmp_path, s3, 1)
    for step in (20, 40):
        for _, path, content in LAYOUTS["transformers"](1, step):
            put(every[0], f"run1/{path}", content)
        for second in range(int(EVERY_S)):
            put(every[0], "run1/runs/status", f"{second}")
            pass_time(every, 1)
    pass_time(every, 120)
    found = read_bytes(restored(tmp_path, every)[0])
    assert {path.split("/")[1] for path in found if "checkpoint" in path} == {"checkpoint-20", "checkpoint-40"}


def test_a_layout_that_nothing_here_is_in_hides_no_files(tmp_path: Path, s3: FakeS3) -> None:
    """A trainer of one's own, whose file only sounds like DeepSpeed's."""
    first = Rank(tmp_path, s3)
    for step in range(3):
        put(first, "run/best_model_states.pt", as_torch(f"of {step}"))
        pass_time([first], EVERY_S)
    assert len(closed(s3)) >= 2


def test_folders_of_layouts_are_told_by_their_numbers() -> None:
    assert {FOLDERS[layout].format(7)[-1] for layout in LAYOUTS} == {"7"}

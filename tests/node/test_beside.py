"""Logs, tables and states beside the checkpoints of a trainer that names nothing keep no set open, and half a checkpoint stays out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.sets.closing import NeverWhole
from contract.jobs import Scope
from tests.node.fakes import FakeS3
from tests.node.folders import BEGAN, EVERY_S, Clock, Rank, closed
from tests.node.layout_worlds import as_torch, list_dcp, put, read_bytes, restored

Style = Callable[[Rank, int], None]
LATER_S = 3_700_000 * EVERY_S
"""The clock is years ahead of the kernel's: so a file that is written in place is dated as in life, no earlier than its inode."""


def begin(root: Path, s3: FakeS3, nodes: int = 1, scope: Scope = Scope.AUTO) -> list[Rank]:
    clock = Clock()
    clock.now = BEGAN + LATER_S + 10.0
    return [Rank(root, s3, rank, nodes=nodes, scope=scope, clock=clock) for rank in range(nodes)]


def append(rank: Rank, path: str, text: str) -> None:
    file = rank.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(text)
    rank._date(file)


def weights(number: int) -> bytes:
    return as_torch(f"weights {number} " + "x" * 2000)


def run(every: Sequence[Rank], seconds: int, *styles: Style) -> list[str]:
    """Trains; returns what the nodes' logs say of sets that were closed."""
    for second in range(seconds):
        every[0].clock.now += 1.0
        for rank in every:
            for style in styles:
                style(rank, second)
        for rank in every:
            rank.checkpoints.tick()
    return [note for rank in every for note in rank.notes if " is closed" in note]


def save_each(period: int, path: str = "epoch_{}.pth") -> Style:
    """Rank 0 saves in place."""

    def style(rank: Rank, second: int) -> None:
        if rank.rank == 0 and second % period == period - 1:
            put(rank, path.format(second // period), weights(second))

    return style


def each(period: int, do: Callable[[Rank, int], None], *, on: int = 0) -> Style:
    return lambda rank, second: do(rank, second) if rank.rank == on and second % period == 0 else None


BESIDE: dict[str, Style] = {
    "a log": each(2, lambda rank, _: append(rank, "train.log", "loss 1\n")),
    "a log in a folder, and lines of JSON": each(8, lambda rank, n: append(rank, "a/vis_data/scalars.json", f'{{"n":{n}}}\n')),
    "the log of a rank": each(3, lambda rank, _: append(rank, "log.txt.rank1", "[01/01 10:00:00] iter\n")),
    "a log without an ending": each(3, lambda rank, _: append(rank, "stdout", "line\n")),
    "a progress bar": each(1, lambda rank, n: append(rank, "out.txt", f"\r{n}%")),
    "a table": each(4, lambda rank, _: append(rank, "results.csv", "1,2\n")),
    "the table of a monitor": each(3, lambda rank, _: append(rank, "monitor.csv", "r,l,t\n1.5,2,3\n")),
    "metrics": each(5, lambda rank, n: append(rank, "metrics.json", json.dumps({"iteration": n}) + "\n")),
    "events": each(2, lambda rank, n: append(rank, "tb/events.out.tfevents.1.h.2.0", f"{n}\0\0")),
    "a run": each(2, lambda rank, n: append(rank, "wandb/run-1/run-1.wandb", f":W&B{n}\0")),
    "a packed log": each(2, lambda rank, n: append(rank, "app.log.gz", f"\x1f{n}")),
    "a state each second": each(1, lambda rank, n: put(rank, "trainer_state.json", json.dumps({"step": n}, indent=1))),
    "a state that is no JSON": each(5, lambda rank, n: put(rank, "state.json", f"{{'step': {n}}}")),
    "a sign of life": each(1, lambda rank, n: put(rank, "heartbeat.txt", str(n % 7))),
    "the name of the newest": each(7, lambda rank, n: put(rank, "last_checkpoint", f"/ckpt/epoch_{n % 9}.pth")),
    "a table that is written anew": each(6, lambda rank, n: put(rank, "history.csv", "epoch,loss\n" + f"{n},2\n" * (n // 6 % 9))),
    "a picture": each(3, lambda rank, n: put(rank, "results.png", b"\x89PNG\r\n\x1a\n" + bytes([n % 200]))),
    "a database": each(2, lambda rank, n: put(rank, "optuna.db", b"SQLite format 3\0" + bytes([n % 200]))),
    "a process id": each(10**6, lambda rank, _: put(rank, "train.pid", "17")),
    "an empty lock": each(10**6, lambda rank, _: put(rank, "train.lock", "")),
    "metrics without a line yet": each(10**6, lambda rank, _: put(rank, "metrics.json", "")),
    "a parameter": each(10**6, lambda rank, _: put(rank, "mlruns/0/params/lr", "0.1")),
    "a configuration": each(10**6, lambda rank, _: put(rank, "config.yaml", "lr: 1\nlayers: 2\n")),
}  # fmt: skip


def some(*quick: str, without: Sequence[str] = ()) -> list[Any]:
    """Returns what lies beside; all but a few are tried at length."""
    others = (name for name in BESIDE if name not in (*quick, *without))
    return [*quick, *(pytest.param(name, marks=pytest.mark.at_length) for name in others)]


@pytest.mark.parametrize("name", BESIDE)
def test_what_a_trainer_writes_beside_its_checkpoints_keeps_no_set_open(tmp_path: Path, s3: FakeS3, name: str) -> None:
    (rank,) = begin(tmp_path, s3)
    assert len(run([rank], 4 * int(EVERY_S), save_each(300), BESIDE[name])) >= 3
    (again,) = restored(tmp_path, [rank])
    found = {path: data for path, data in read_bytes(again).items() if path.endswith(".pth")}
    assert "epoch_6.pth" in found
    assert all(data == weights(300 * int(path[6:-4]) + 299) for path, data in found.items())


@pytest.mark.parametrize("name", some("a table", "a state each second", "a sign of life"))
def test_so_it_does_not_while_one_file_is_saved_in_place_every_nine_seconds(
    tmp_path: Path, s3: FakeS3, name: str
) -> None:
    (rank,) = begin(tmp_path, s3)
    best: Style = each(1200, lambda rank, n: put(rank, "weights/best.pt", weights(n)))
    assert len(run([rank], 4 * int(EVERY_S), save_each(9, "weights/last.pt"), best, BESIDE[name])) >= 3


@pytest.mark.parametrize(
    "name", some("the log of a rank", "a configuration", "a parameter", "events", without=["the name of the newest"])
)
def test_what_another_rank_writes_without_weights_keeps_no_set_open(tmp_path: Path, s3: FakeS3, name: str) -> None:
    every = begin(tmp_path, s3, 2)
    other = BESIDE[name]

    def style(rank: Rank, second: int) -> None:
        if rank.rank == 1:
            rank.rank = 0
            other(rank, second)
            rank.rank = 1

    assert len(run(every, 4 * int(EVERY_S), save_each(300), style)) >= 3
    again = restored(tmp_path, every)
    assert "epoch_6.pth" in read_bytes(again[0])
    assert "epoch_6.pth" in read_bytes(again[1])


def test_a_log_that_is_rotated_keeps_no_set_open(tmp_path: Path, s3: FakeS3) -> None:
    (rank,) = begin(tmp_path, s3)

    def style(rank: Rank, second: int) -> None:
        append(rank, "run.log", "line\n")
        if second % 60 == 59:
            (rank.path / "run.log").rename(rank.path / "run.log.1")

    assert len(run([rank], 4 * int(EVERY_S), save_each(300), style)) >= 3


def test_a_log_alone_is_no_checkpoint(tmp_path: Path, s3: FakeS3) -> None:
    """Each set of new files would count as progress, and a job that fails again and again would go on for ever."""
    (rank,) = begin(tmp_path, s3)
    assert run([rank], 3 * int(EVERY_S), BESIDE["a log"]) == []


def test_logs_of_all_ranks_are_no_checkpoint_and_end_no_job(tmp_path: Path, s3: FakeS3) -> None:
    every = begin(tmp_path, s3, 2)
    log: Style = lambda rank, _: append(rank, f"log.txt.rank{rank.rank}", "line\n")  # noqa: E731
    assert run(every, 6 * int(EVERY_S), log) == []
    assert len(run(every, 2 * int(EVERY_S), log, save_each(300))) >= 1


def test_a_log_that_has_more_lines_is_no_new_checkpoint(tmp_path: Path, s3: FakeS3) -> None:
    (rank,) = begin(tmp_path, s3)
    put(rank, "model.pt", weights(0))
    assert len(run([rank], 5 * int(EVERY_S), BESIDE["a log"])) == 1


@pytest.mark.parametrize("name", ["a log", "a table", "metrics", "events", "a state each second", "a picture"])
def test_after_an_orderly_notice_what_lies_beside_keeps_the_last_set_open_no_more(
    tmp_path: Path, s3: FakeS3, name: str
) -> None:
    (rank,) = begin(tmp_path, s3)
    run([rank], int(EVERY_S) + 700, save_each(300), BESIDE[name])
    before = len(closed(s3))
    run([rank], 300, save_each(300), BESIDE[name])
    BESIDE[name](rank, 0)
    rank.checkpoints.finish()
    assert len(closed(s3)) >= min(before + 1, 3)
    (again,) = restored(tmp_path, [rank])
    assert read_bytes(again).keys() >= read_bytes(rank).keys()


# Half a checkpoint


HALVES: dict[str, tuple[str, Callable[[int], str]]] = {
    "a model of LightGBM": ("model_{}.txt", lambda n: "tree\nversion=v4\n" + f"Tree={n}\nleaf=1\n" * (n + 1)),
    "a model of XGBoost": ("model_{}.json", lambda n: '{"learner": [' + "1,\n" * (n + 1)),
    "an index": ("model-{}.index.json", lambda n: '{\n "weights": {\n' + '"a": "b",\n' * (n + 1)),
    "word vectors": ("vectors_{}.vec", lambda n: "900 3\n" + "word 1 2 3\n" * (n + 1)),
    "raw bytes": ("model_{}.bin", lambda n: "\x01" * 100 * (n + 1)),
    "raw bytes with the name of a log": ("model_{}.log", lambda n: "\x01\n" * 100 * (n + 1)),
    "text without lines": ("model_{}", lambda n: "half" * (n + 1)),
    "an archive": ("model_{}.pt", lambda n: weights(1)[: n + 1].decode("latin-1")),
}


@pytest.mark.parametrize("name", HALVES)
def test_what_is_written_for_longer_than_an_interval_is_in_no_set(tmp_path: Path, s3: FakeS3, name: str) -> None:
    """It grows as a log does."""
    (rank,), (path, half) = begin(tmp_path, s3), HALVES[name]
    put(rank, "other.pt", weights(0))
    run([rank], int(EVERY_S) + 60)
    style: Style = lambda rank, second: put(rank, path.format(2), half(second).encode("latin-1"))  # noqa: E731
    run([rank], 2 * int(EVERY_S), style)
    again = Rank(tmp_path, s3, attempt=2, clock=rank.clock)
    again.restore()
    assert set(read_bytes(again)) == {"other.pt"}


@pytest.mark.parametrize("name", HALVES)
def test_what_its_trainer_wrote_when_it_was_stopped_hides_no_set(tmp_path: Path, s3: FakeS3, name: str) -> None:
    (rank,), (path, half) = begin(tmp_path, s3), HALVES[name]
    put(rank, path.format(1), half(999).encode("latin-1") + b"]}" * name.endswith("XGBoost"))
    put(rank, "other.pt", weights(0))
    run([rank], int(EVERY_S) + 200, BESIDE["a log"])
    put(rank, path.format(2), half(20).encode("latin-1"))
    rank.checkpoints.finish()
    again = Rank(tmp_path, s3, attempt=2, clock=rank.clock)
    again.restore()
    assert path.format(2) not in read_bytes(again)


def test_a_save_that_is_always_in_progress_keeps_the_ones_before_it_in_sets(tmp_path: Path, s3: FakeS3) -> None:
    """One begins when the other ends, and takes longer than any rest."""
    (rank,) = begin(tmp_path, s3)

    def style(rank: Rank, second: int) -> None:
        whole = weights(second // 400)
        put(rank, f"ckpt-{second // 400}.pt", whole[: len(whole) * (second % 400 + 1) // 400])

    assert len(run([rank], 6 * int(EVERY_S), style)) >= 3
    (again,) = restored(tmp_path, [rank])
    found = read_bytes(again)
    assert all(data == weights(int(path[5:-3])) for path, data in found.items())
    assert "ckpt-6.pt" in found


def test_half_a_save_of_two_files_is_left_out_as_a_whole(tmp_path: Path, s3: FakeS3) -> None:
    (rank,) = begin(tmp_path, s3)
    for step in (1, 2):
        put(rank, f"step_{step}/model.pt", weights(step))
        put(rank, f"step_{step}/optimizer.pt", weights(step))
        run([rank], int(EVERY_S))
    put(rank, "step_3/model.pt", weights(3))
    put(rank, "step_3/optimizer.pt", weights(3)[:-9])
    put(rank, "notes.txt", "three\n")
    run([rank], 2 * int(EVERY_S))
    (again,) = restored(tmp_path, [rank])
    assert set(read_bytes(again)) == {
        "notes.txt",
        *(f"step_{n}/{one}.pt" for n in (1, 2) for one in ("model", "optimizer")),
    }


def test_shards_of_a_first_save_are_not_taken_for_saves(tmp_path: Path, s3: FakeS3) -> None:
    (rank,) = begin(tmp_path, s3)
    put(rank, "part-1.pt", weights(1))
    put(rank, "part-2.pt", weights(2)[:-9])
    assert run([rank], int(EVERY_S) + 100) == []


def test_weights_that_nothing_shows_to_be_whole_and_that_never_rest_are_said_to_keep_sets_open(
    tmp_path: Path, s3: FakeS3
) -> None:
    (rank,) = begin(tmp_path, s3)
    assert run([rank], 4 * int(EVERY_S), each(3, lambda rank, n: put(rank, "model.bin", bytes([1, n % 200])))) == []
    assert any("no set for" in note and "model.bin may still be written" in note for note in rank.notes)


# Several ranks


@pytest.mark.parametrize("path", ["shard-{}.npz", "shard-{}.bin", "model_{}.safetensors", "shard-{}"])
def test_shards_of_two_ranks_are_refused(tmp_path: Path, s3: FakeS3, path: str) -> None:
    every = begin(tmp_path, s3, 2)
    style: Style = lambda rank, n: put(rank, path.format(rank.rank), bytes(9)) if n % 300 == 0 else None  # noqa: E731
    if path.endswith(("npz", "safetensors")):
        style = lambda rank, n: put(rank, f"shard-{rank.rank}.pt", weights(n)) if n % 300 == 0 else None  # noqa: E731
    with pytest.raises(NeverWhole, match="ranks 0, 1 write"):
        run(every, 8 * int(EVERY_S), style)
    assert closed(s3) == []


def test_shards_of_two_ranks_that_are_small_documents_are_refused(tmp_path: Path, s3: FakeS3) -> None:
    every = begin(tmp_path, s3, 2)
    style: Style = lambda rank, n: (  # noqa: E731
        put(rank, f"shard_{rank.rank}.json", json.dumps({"of": n})) if n % 300 == 0 else None
    )
    with pytest.raises(NeverWhole, match="ranks 0, 1 write"):
        run(every, 8 * int(EVERY_S), style)
    assert closed(s3) == []


def test_a_log_of_another_rank_is_no_part_of_shards_that_are_wanted(tmp_path: Path, s3: FakeS3) -> None:
    every = begin(tmp_path, s3, 2, Scope.SHARDS)

    def style(rank: Rank, second: int) -> None:
        if rank.rank == 1:
            append(rank, "log.txt.rank1", "line\n")
        elif second % 300 == 0:
            rank.save(second + 1, **{"shard-0": f"of {second}"})

    run(every, 2 * int(EVERY_S), style)
    assert closed(s3) == []


def test_a_log_of_another_rank_keeps_no_set_open_that_rank_0_names(tmp_path: Path, s3: FakeS3) -> None:
    every = begin(tmp_path, s3, 2)

    def style(rank: Rank, second: int) -> None:
        if rank.rank == 1:
            append(rank, "log.txt.rank1", "line\n")
            put(rank, "config.yaml", "lr: 1\n")
        elif second % 100 == 0:
            rank.save(second + 1, model=f"of {second + 1}")

    assert len(run(every, 4 * int(EVERY_S), style)) >= 3


@pytest.mark.parametrize("layout", ["dcp", "zero"])
def test_a_layout_with_shards_on_every_rank_ends_a_job_that_keeps_rank_0_alone_with_its_first_set(
    tmp_path: Path, s3: FakeS3, layout: str
) -> None:
    rank = begin(tmp_path, s3, 2, Scope.RANK0)[0]

    def style(rank: Rank, second: int) -> None:
        if second == 10 and layout == "dcp":
            for one in list_dcp(2, 1):
                if one.rank == 0:
                    put(rank, one.path, one.content)
        elif second == 10:
            put(rank, "global_step1/mp_rank_00_model_states.pt", weights(1))
            put(rank, "global_step1/zero_pp_rank_0_mp_rank_00_optim_states.pt", weights(1))
            put(rank, "latest", "global_step1")

    with pytest.raises(NeverWhole, match="checkpoint_scope is rank0"):
        run([rank], int(1.5 * EVERY_S), style)
    assert closed(s3) == []


# Names and paths


def test_a_large_file_with_a_path_longer_than_a_key_is_in_its_set(tmp_path: Path, s3: FakeS3) -> None:
    (rank,) = begin(tmp_path, s3)
    path = "/".join(["d" * 200] * 6 + ["model.pt"])
    put(rank, path, as_torch("x" * 2_000_000))
    assert len(run([rank], int(EVERY_S) + 200)) == 1
    (again,) = restored(tmp_path, [rank])
    assert read_bytes(again) == read_bytes(rank)
    assert max(len(key.encode()) for _, key in s3.objects) <= 1024


def test_a_set_without_a_path_that_is_too_long_for_any_is_missed_and_said(tmp_path: Path, s3: FakeS3) -> None:
    every = begin(tmp_path, s3, 2)
    put(every[0], "model.pt", weights(1))
    here = os.open(every[0].path, os.O_RDONLY)
    for _ in range(18):
        os.mkdir("d" * 250, dir_fd=here)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("optimizer.pt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    assert run(every, int(EVERY_S) + 200) == []
    for rank in every:
        rank.checkpoints.finish(ended_well=True)
    assert closed(s3) == []
    assert any("has a path of more than" in note for note in every[0].notes)

"""What is restored is as it was: files and folders in the order in which they were written, empty folders, and holes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.restore import restore
from contract.codec import decode, encode
from contract.commits import Commit
from tests.node.engine_yard import MIB, Yard, yard
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, Rank, ranks


def restored(rank: Rank) -> Path:
    """The folder as the trainer finds it; the clock of the tests has not dated it anew."""
    assert restore([rank.store], rank.place, rank.path, rank.staging, rank.notes.append) is not None
    return rank.path


def by_time(folder: Path) -> list[str]:
    return [path.name for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)]


# Times


@pytest.mark.parametrize("size", [10, 2 * MIB, 9 * MIB])
def test_files_keep_the_order_in_which_they_were_written(tmp_path: Path, s3: FakeS3, size: int) -> None:
    """Trainers that rotate by time remove the oldest; names say nothing here."""
    first = Rank(tmp_path, s3)
    for name in ("c", "a", "d", "b"):
        first.clock.now += 5.0
        first.write(f"{name}.pt", name * size)
    assert first.commit(5) is not None
    folder = restored(Rank(tmp_path, s3, attempt=2))
    assert by_time(folder) == ["c.pt", "a.pt", "d.pt", "b.pt"]
    assert (folder / "b.pt").stat().st_mtime == pytest.approx((first.path / "b.pt").stat().st_mtime, abs=1e-6)


def test_folders_keep_the_order_in_which_they_were_written(tmp_path: Path, s3: FakeS3) -> None:
    """As HF's Trainer removes them, by the time of the folder. What lies in a folder comes back after it, and dates it anew."""
    first = Rank(tmp_path, s3)
    for name in ("checkpoint-30", "checkpoint-10", "checkpoint-20"):
        first.clock.now += 5.0
        first.write(f"{name}/deep/model", name)
        for each in ("deep", "."):
            os.utime(first.path / name / each, (first.clock.now, first.clock.now))
    assert first.commit(5) is not None
    folder = restored(Rank(tmp_path, s3, attempt=2))
    assert by_time(folder) == ["checkpoint-30", "checkpoint-10", "checkpoint-20"]
    assert (folder / "checkpoint-10" / "deep").stat().st_mtime == (folder / "checkpoint-10").stat().st_mtime


def test_the_order_survives_a_third_attempt_that_restores_what_the_second_committed_again(
    tmp_path: Path, s3: FakeS3
) -> None:
    first = Rank(tmp_path, s3)
    for name in ("b", "a"):
        first.clock.now += 5.0
        first.write(name, name)
    assert first.commit(5) is not None
    second = Rank(tmp_path, s3, attempt=2)
    second.clock.now = first.clock.now
    restored(second)
    assert second.commit(6, c="c") is not None
    assert by_time(restored(Rank(tmp_path, s3, attempt=3))) == ["b", "a", "c"]


def test_a_commit_that_knows_no_times_is_restored_all_the_same(tmp_path: Path, s3: FakeS3) -> None:
    """As agents wrote them before."""
    first = Rank(tmp_path, s3)
    assert first.commit(5, a="A") is not None
    key = (BUCKET, first.checkpoints.newest_key)
    for name in (b'"mtime_us"', b'"folders"', b'"links"', b'"ended_well"'):
        s3.objects[key] = s3.objects[key].replace(name, b'"later"')
    again = Rank(tmp_path, s3, attempt=2)
    assert (again.restore(), again.content) == (5, {"a": "A"})


def test_a_file_from_before_1970_is_committed_and_restored(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.write("a", "A")
    os.utime(first.path / "a", (-5.0, -5.0))
    assert first.commit(5) is not None
    again = Rank(tmp_path, s3, attempt=2)
    assert (again.restore(), again.content) == (5, {"a": "A"})


def test_a_file_dated_in_milliseconds_keeps_no_set_from_being_restored(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    first.write("a", "A")
    assert first.commit(5) is not None
    os.utime(first.path / "a", (1.79e12, 1.79e12))
    assert all(file.mtime_us == 0 for file in first.folder.send().files)


def test_a_link_of_one_rank_in_the_place_of_another_ones_folder_gives_way_to_the_files(
    tmp_path: Path, s3: FakeS3
) -> None:
    """As trainers that were written for a shared disk do."""
    first = ranks(tmp_path, s3, 2)
    first[0].write("step-5/model", "of 5")
    (first[0].path / "last").symlink_to("step-5")
    now = first[0].clock.now
    os.utime(first[0].path / "last", (now, now), follow_symlinks=False)
    first[1].write("last/rng-1", "rng")
    for rank in first:
        rank.at(5, checkpoint=5)
    for rank in first:
        rank.checkpoints.finish()
    for rank in ranks(tmp_path, s3, 2, attempt=2):
        assert rank.restore() == 5
        assert rank.content == {"step-5/model": "of 5", "last/rng-1": "rng"}


@pytest.mark.parametrize("other", ["folder", "link"])
def test_a_link_of_one_rank_in_the_place_of_another_ones_folder_keeps_no_set_from_being_restored(
    tmp_path: Path, s3: FakeS3, other: str
) -> None:
    first = ranks(tmp_path, s3, 2)
    for rank in first:
        rank.write(f"step-5/shard-{rank.rank}", "of 5")
    (first[0].path / "last").symlink_to("step-5")
    (first[1].path / "last").mkdir()
    if other == "folder":
        (first[1].path / "last" / "images").mkdir()
    else:
        (first[1].path / "last" / "current").symlink_to("../step-5/shard-1")
    for rank in first:
        for link in (rank.path / "last", rank.path / "last" / "current"):
            if link.is_symlink():
                os.utime(link, (rank.clock.now, rank.clock.now), follow_symlinks=False)
        rank.at(5, checkpoint=5)
    for rank in first:
        rank.checkpoints.finish()
    for rank in ranks(tmp_path, s3, 2, attempt=2):
        assert rank.restore() == 5
        assert (rank.path / "step-5" / "shard-1").read_text() == "of 5"


def test_change_times_have_the_order_of_the_files_as_well(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    for name in ("z", "a", "m"):
        first.clock.now += 5.0
        first.write(name, name)
    assert first.commit(5) is not None
    folder = restored(Rank(tmp_path, s3, attempt=2))
    changed = [(folder / name).stat().st_ctime_ns for name in ("z", "a", "m")]
    assert changed == sorted(changed)


# Folders


def test_empty_folders_come_back(tmp_path: Path, s3: FakeS3) -> None:
    first = Rank(tmp_path, s3)
    (first.path / "logs" / "images").mkdir(parents=True)
    (first.path / "logs" / "images").chmod(0o750)
    (first.path / "next.tmp").mkdir()
    assert first.commit(5, a="A") is not None
    folder = restored(Rank(tmp_path, s3, attempt=2))
    assert {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_dir()} == {"logs", "logs/images"}
    assert (folder / "logs" / "images").stat().st_mode & 0o777 == 0o750
    assert (folder / "logs").stat().st_mtime == pytest.approx((first.path / "logs").stat().st_mtime, abs=1e-6)


def test_a_folder_that_its_rank_has_removed_does_not_come_back_from_a_rank_that_only_restored_it(
    tmp_path: Path, s3: FakeS3
) -> None:
    first = ranks(tmp_path, s3, 2)
    first[0].write("checkpoint-10/model", "10")
    (first[0].path / "empty").mkdir()
    first[1].write("rng-1", "of 10")
    for rank in first:
        rank.at(10, checkpoint=10).checkpoints.finish()
    second = ranks(tmp_path, s3, 2, attempt=2)
    assert [rank.restore() for rank in second] == [10, 10]
    (second[0].path / "checkpoint-10" / "model").unlink()
    (second[0].path / "checkpoint-10").rmdir()
    (second[0].path / "empty").rmdir()
    second[0].clock.now += 5.0
    second[0].write("checkpoint-20/model", "20")
    second[1].write("rng-1", "of 20")
    for rank in second:
        rank.at(20, checkpoint=20).checkpoints.finish()
    folder = restored(Rank(tmp_path, s3, attempt=3, nodes=2))
    assert sorted(one.name for one in folder.iterdir()) == ["checkpoint-20", "rng-1"]


def test_a_folder_without_rights_is_the_trainers_again(tmp_path: Path, s3: FakeS3) -> None:
    """Nobody could put a file into a folder without its owner's rights."""
    first = Rank(tmp_path, s3)
    first.write("a/b", "B")
    (first.path / "a").chmod(0o750)
    assert first.commit(5) is not None
    key = (BUCKET, first.checkpoints.newest_key)
    raw = s3.objects[key].replace(b'"mode":488', b'"mode":0')
    assert decode(Commit, raw).folders[0].mode == 0
    s3.objects[key] = encode(decode(Commit, raw))
    assert (restored(Rank(tmp_path, s3, attempt=2)) / "a").stat().st_mode & 0o700 == 0o700


# Holes


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made


@pytest.mark.parametrize("size", [1000, MIB, 20 * MIB + 7, pytest.param(300 * MIB, marks=pytest.mark.at_length)])
@pytest.mark.parametrize("place", ["begin", "middle", "end", "nowhere"])
def test_holes_stay_holes(it: Yard, size: int, place: str) -> None:
    at = {"begin": 0, "middle": size // 2, "end": size - 1, "nowhere": None}[place]
    with (it.folder / "sparse").open("wb") as file:
        file.truncate(size)
        if at is not None:
            file.seek(at)
            file.write(b"x")
    it.engine.fetch(list(it.send().values()), it.staging)
    there = it.staging / "sparse"
    assert (there.stat().st_size, there.stat().st_blocks * 512 <= 256 * 1024) == (size, True)
    with there.open("rb") as file:
        for start in range(0, size, MIB):
            wanted = bytearray(min(MIB, size - start))
            if at is not None and start <= at < start + len(wanted):
                wanted[at - start] = ord("x")
            assert file.read(MIB) == wanted


def test_zeros_between_bytes_come_back_wherever_they_lie(it: Yard) -> None:
    """At the ends of blocks and parts, and some shorter than a hole."""
    body = bytearray()
    for length in (1, 65535, 65536, 65537, 200_000, 3, 131072, 8 * MIB, 1):
        body += bytes(length) + b"\1" * (length % 70_001 + 1)
    it.write({"mixed": bytes(body), "small": b"\0\0\1\0"})
    it.engine.fetch(list(it.send().values()), it.staging)
    assert it.restored() == {"mixed": bytes(body), "small": b"\0\0\1\0"}

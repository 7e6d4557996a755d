"""A checkpoint of another region: each of its objects crosses once for all nodes, and no trouble with that keeps a node from its files."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent.bringing import shared
from agent.failures import Ordered
from agent.position import Position
from agent.restore import restore
from agent.store import Store
from contract.codec import decode, encode
from contract.commits import Commit
from contract.jobs import Scope, Selection
from contract.timing import Timing
from localaws.testing.waiting import HANG_S
from tests.node.fakes import FakeS3, refusal
from tests.node.folders import BUCKET, Clock, Rank, closed, job, pass_time, ranks

NODES = 3
NEAR = "yard-bytes-near"


def let_others(_seconds: float) -> None:
    """A pause of a rank beside others, which are threads. None of them runs out of patience, whatever the machine has to do: a quarter
    of an hour of real time."""
    time.sleep(0.005)


class Away:
    """The next attempt's nodes, in another region."""

    def __init__(self, root: Path, s3: FakeS3, selection: Selection) -> None:
        self.root, self.s3 = root, s3
        described = job(NODES, Scope.SHARDS, selection)
        self.places = [Position(described, 2, rank) for rank in range(NODES)]
        self.notes: list[str] = []
        self.stores = [Store(s3, NEAR), Store(s3, BUCKET)]

    def restore(
        self, rank: int, pause: Callable[[float], None] = let_others, now: Callable[[], float] = time.time
    ) -> int | None:
        work = self.root / f"away-{rank}"
        found = restore(
            self.stores,
            self.places[rank],
            work / "checkpoints",
            work / "staging",
            self.notes.append,
            now=now,
            pause=pause,
        )
        return found.step if found else None

    def all(self, pause: Callable[[float], None] = let_others) -> dict[int, int | None]:
        """What the ranks restored, side by side."""
        steps: dict[int, int | None] = {}
        threads = [
            threading.Thread(target=lambda rank=rank: steps.update({rank: self.restore(rank, pause)}))
            for rank in range(NODES)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        return steps

    def content(self, rank: int) -> dict[str, str]:
        folder = self.root / f"away-{rank}" / "checkpoints"
        return {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*") if f.is_file()}

    @property
    def objects_near(self) -> list[str]:
        return sorted(key for bucket, key in self.s3.objects if bucket == NEAR)


def trained(root: Path, s3: FakeS3, selection: Selection = Selection.ALL) -> Away:
    """A checkpoint of three ranks, each with a file of its own; rank 0 has what is common besides."""
    every = ranks(root, s3, NODES, 1, Scope.SHARDS, selection)
    for step in range(10, 1000, 10):
        for rank in every:
            rank.write(f"shard-{rank.rank}", f"{rank.rank} of {step}")
        every[0].write("common", "of all")
        for rank in every:
            rank.at(step, checkpoint=step)
        pass_time(every, 200)
        if closed(s3):
            break
    s3.calls.clear()
    s3.now = time.time
    return Away(root, s3, selection)


def read_afar(away: Away, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the requests for bytes of the far bucket."""
    found, plain = Counter[str](), away.s3.get_object

    def get_object(Bucket: str, Key: str, Range: str = "") -> object:  # noqa: N803
        if Bucket == BUCKET and Range:
            found[Key] += 1
        return plain(Bucket, Key, Range)

    monkeypatch.setattr(away.s3, "get_object", get_object)
    return found


def copied(s3: FakeS3) -> Counter[str]:
    return Counter(key for call, key in s3.calls if call == "copy")


def test_each_object_crosses_once_and_every_rank_has_every_file(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = trained(tmp_path, s3)
    afar = read_afar(away, monkeypatch)
    steps = away.all()
    assert len(set(steps.values())) == 1
    assert len(steps) == NODES
    assert None not in steps.values()
    assert set(copied(s3).values()) == {1}
    assert len(copied(s3)) == NODES
    assert not afar
    assert [sorted(away.content(rank)) for rank in range(NODES)] == [
        ["common", "shard-0", "shard-1", "shard-2"]
    ] * NODES


def test_where_a_rank_reads_its_own_files_only_those_of_rank_0_are_brought(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = trained(tmp_path, s3, Selection.OWN)
    afar = read_afar(away, monkeypatch)
    away.all()
    assert [key.split("/")[-3] for key in copied(s3)] == ["rank-0000"]
    assert sorted(key.split("/")[-3] for key in afar) == ["rank-0001", "rank-0002"]
    assert sorted(away.content(2)) == ["common", "shard-0", "shard-2"]


def test_no_document_is_brought_so_that_the_set_stays_one(tmp_path: Path, s3: FakeS3) -> None:
    away = trained(tmp_path, s3)
    away.all()
    assert away.objects_near
    assert [key for key in away.objects_near if "/commits/" in key] == []


def test_a_second_restore_copies_nothing_again(tmp_path: Path, s3: FakeS3) -> None:
    away = trained(tmp_path, s3)
    away.all()
    s3.calls.clear()
    again = Away(tmp_path / "again", s3, Selection.ALL)
    assert len(again.all()) == NODES
    assert not copied(s3)


def test_a_rank_whose_peers_never_come_has_its_files_all_the_same(
    tmp_path: Path, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = trained(tmp_path, s3)
    afar = read_afar(away, monkeypatch)
    clock = Clock()
    began = clock.now
    assert away.restore(1, clock.sleep, clock) is not None
    assert clock.now - began >= Timing().boot_allowance_s
    assert len(copied(s3)) == 1
    assert len(afar) == NODES - 1
    assert sorted(away.content(1)) == ["common", "shard-0", "shard-1", "shard-2"]
    assert any("were not copied" in note for note in away.notes)


def test_where_s3_may_not_copy_nobody_waits(tmp_path: Path, s3: FakeS3) -> None:
    away = trained(tmp_path, s3)
    s3.fault = lambda call, _key: refusal("AccessDenied") if call == "copy" else None
    pauses: list[float] = []
    assert len(away.all(pauses.append)) == NODES
    assert pauses == []
    assert sorted(away.content(2)) == ["common", "shard-0", "shard-1", "shard-2"]
    assert any("S3 could not copy it (ClientError" in note for note in away.notes)


def test_a_copy_that_is_not_what_was_committed_is_fetched_from_afar(tmp_path: Path, s3: FakeS3) -> None:
    away = trained(tmp_path, s3)
    away.all()
    for key in away.objects_near:
        s3.objects[NEAR, key] = b"x" * len(s3.objects[NEAR, key])
    again = Away(tmp_path / "again", s3, Selection.ALL)
    assert None not in again.all().values()
    assert again.content(1)["common"] == "of all"
    assert any(f"the copy in {NEAR} cannot be used" in note for note in again.notes)


def test_an_object_that_is_lost_afar_makes_the_set_unusable(tmp_path: Path, s3: FakeS3) -> None:
    away = trained(tmp_path, s3)
    (lost,) = [key for bucket, key in s3.objects if bucket == BUCKET and "/checkpoints/rank-0001/" in key]
    del s3.objects[BUCKET, lost]
    for rank in range(NODES):
        clock = Clock()
        with pytest.raises(Exception, match="none of the 1 checkpoints"):
            away.restore(rank, clock.sleep, clock)


def test_a_commit_that_names_other_keys_has_nothing_copied(tmp_path: Path, s3: FakeS3) -> None:
    """Whoever runs a job can write a commit: a copy must not replace a document, or what another rank committed."""
    away = trained(tmp_path, s3)
    (key,) = [key for _, key in s3.objects if key.endswith("/r0000.json") and "/checkpoints/" in key]
    commit = decode(Commit, s3.objects[BUCKET, key])
    for other in (closed(s3)[0], key, "jobs/job-2/checkpoints/rank-0000/packs/x", "jobs/job-1/checkpoints/rank-0001/x"):
        forged = replace(commit, files=tuple(replace(file, key=other) for file in commit.files))
        s3.objects[BUCKET, key] = encode(forged)
        for place in away.places:
            assert shared([forged], place) == set()
        clock = Clock()
        with pytest.raises(Exception, match="none of the 1 checkpoints"):
            away.restore(0, clock.sleep, clock)
        assert other not in away.objects_near


def test_an_order_ends_the_wait(tmp_path: Path, s3: FakeS3) -> None:
    away = trained(tmp_path, s3)

    def ordered(_seconds: float) -> None:
        raise Ordered

    with pytest.raises(Ordered):
        away.restore(0, pause=ordered)


@pytest.mark.parametrize("selection", list(Selection))
def test_the_only_node_of_a_job_has_nothing_copied(tmp_path: Path, s3: FakeS3, selection: Selection) -> None:
    node = Rank(tmp_path, s3, nodes=1)
    node.commit(5, model="weights")
    s3.calls.clear()
    place = Position(job(1, selection=selection), 2, 0)
    found = restore([Store(s3, NEAR), Store(s3, BUCKET)], place, tmp_path / "own", tmp_path / "staging", print)
    assert found is not None
    assert (tmp_path / "own" / "model").read_text() == "weights"
    assert not copied(s3)

"""A file that is one pickle or one array may be half of a row of them: its last byte counts where its trainer writes one at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from agent.sets.evidence import FileEvidence
from agent.sets.pieces import RESTED_S, VERSIONS, Pieces
from agent.sets.resting import Resting
from agent.snapshot import FileState

ARRAY = (
    b"\x93NUMPY\1\0\x76\0"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }".ljust(117)
    + b"\n"
    + b"8 bytes."
)
NET, BUFFER = pickle.dumps({"net": [1.0]}), pickle.dumps({"buffer": [2]})


class Watched:
    """One file, and what its bytes say from version to version."""

    def __init__(self) -> None:
        self.data, self.now = b"", 0.0
        self.evidence = FileEvidence(lambda _, offset, size: self.data[offset : offset + size])
        self.resting = Resting(self.evidence)
        self._times: Iterator[int] = iter(range(1, 10_000))
        self.state: FileState

    def write(self, data: bytes, path: str = "ckpt.pkl") -> bool | None:
        self.data, time = data, next(self._times)
        self.state = FileState(path, len(data), time, time, 1, 1)
        return self.observe()

    def observe(self, later_s: float = 1.0) -> bool | None:
        self.now += later_s
        self.resting.observe([self.state], self.now, 600.0)
        return self.resting.has_evidence(self.state)


@pytest.mark.parametrize(("one", "path"), [(NET, "a.pkl"), (ARRAY, "a.npy")])
def test_what_is_one_piece_again_and_again_is_whole_by_its_last_byte(one: bytes, path: str) -> None:
    watched = Watched()
    assert [watched.write(one, path) for _ in range(VERSIONS)] == [None] * (VERSIONS - 1) + [True]
    assert watched.write(one[:-1], path) is not True


@pytest.mark.parametrize(("one", "path"), [(NET, "a.pkl"), (ARRAY, "a.npy")])
def test_what_rested_as_one_piece_is_whole_by_its_last_byte(one: bytes, path: str) -> None:
    watched = Watched()
    assert watched.write(one, path) is None
    assert watched.observe(RESTED_S - 1) is None
    assert watched.observe()
    assert watched.write(one, path)


def test_files_with_numbers_are_of_one_kind() -> None:
    watched = Watched()
    assert [watched.write(NET, f"step_{number}.pkl") for number in range(VERSIONS)][-1]


@pytest.mark.parametrize(("half", "whole"), [(NET, NET + BUFFER), (NET, NET + b"raw"), (ARRAY, ARRAY * 2)])
def test_a_file_with_several_pieces_has_to_rest_for_ever_after(half: bytes, whole: bytes) -> None:
    watched = Watched()
    path = "a.npy" if half is ARRAY else "a.pkl"
    assert watched.write(half, path) is None
    assert watched.write(whole, path) in (None, False)
    assert {watched.write(half, path) for _ in range(2 * VERSIONS)} == {None}
    assert watched.observe(2 * RESTED_S) is None


def test_a_number_alone_is_no_whole_file_of_torch() -> None:
    watched = Watched()
    assert {watched.write(pickle.dumps(0x1950A86A20F9469CFC6C, 2), "a.pth") for _ in range(2 * VERSIONS)} == {None}
    assert watched.evidence.count_pieces(watched.state) is Pieces.SEVERAL


@pytest.mark.parametrize("size", [100, 300_000])
def test_a_document_that_begins_as_before_is_written_anew(size: int) -> None:
    watched = Watched()
    watched.resting = Resting(watched.evidence, is_alone=False)
    for more in range(12):
        watched.write(b'{"loss": [' + b"0.1, " * (size // 5 + more) + b"0.2]}", "history.json")
    doubt = watched.resting.find_doubt(
        [watched.state], {"history.json": 998.0}, 1000.0, every_s=600.0, due_s=0.0, late=True
    )
    assert doubt == ""

"""Code of a job exchanges a folder for a link while the agent looks at it and sends it: nothing outside of the job's folders is read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.disk.watch import written
from agent.snapshot import Changed
from agent.symlinks import Links, Source
from contract.commits import Contents
from tests.node.fakes import FakeS3
from tests.node.folders import Rank, artifacts

CALLS = ("open", "scandir", "readlink", "stat", "lstat")
"""Of the file system, by path: between any two of them a folder may become a link."""
ROUNDS = 40


class Swapper:
    """Exchanges a folder for a link right before the agent's `at`th call, and brings it back after so many calls."""

    def __init__(self, folder: Path, outside: Path, at: int, calls: float) -> None:
        self._folder, self._aside, self._outside = folder, outside.with_name("aside"), outside
        self._at, self._until, self._count, self._busy = at, at + calls, 0, False
        self.happened = False

    def before(self) -> None:
        if self._busy:
            return
        self._count += 1
        self._busy = True
        if self._count == self._at:
            self.swap()
        elif self._count == self._until and self.happened:
            self.restore()
        self._busy = False

    def swap(self) -> None:
        self._folder.rename(self._aside)
        self._folder.symlink_to(self._outside)
        self.happened = True

    def restore(self) -> None:
        self._folder.unlink()
        self._aside.rename(self._folder)


@contextmanager
def swapping(swapper: Swapper) -> Iterator[None]:
    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **more: Any) -> Any:
            swapper.before()
            return call(*given, **more)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, wrap(getattr(os, name)))
        yield


def tree(rank: Rank, outside: Path) -> None:
    """A folder of a trainer, and one of the same names that is not the job's."""
    for path in ("step-5/model", "step-5/deep/model"):
        rank.write(path, "public")
    (rank.path / "step-5" / "last").symlink_to("model")
    (outside / "deep").mkdir(parents=True)
    for path in ("model", "deep/model", "unfinished.tmp", "deep/unfinished.tmp"):
        (outside / path).write_text("secret" * 1000)
    (outside / "last").symlink_to("secret-name")
    (outside / "deep" / "last").symlink_to("secret-name")


def steps(tmp_path: Path, swapped: str, do: Callable[[Rank], object]) -> Iterator[tuple[Rank, object]]:
    """Does it once for each call that it makes of the file system, with the exchange before that call: for one call, for two, and for
    good."""
    for calls in (1, 2, float("inf")):
        for at in range(1, 1000):
            place = tmp_path / f"{at}-{calls}"
            rank = Rank(place, FakeS3())
            tree(rank, place / "outside")
            outside = place / "outside" / swapped.removeprefix("step-5").strip("/")
            swapper = Swapper(rank.path / swapped, outside, at, calls)
            with swapping(swapper):
                found = do(rank)
            if not swapper.happened:
                assert at > 3
                break
            yield rank, found


def send(rank: Rank) -> Contents | None:
    try:
        return rank.folder.send()
    except Changed:
        return None


def commit_artifacts(rank: Rank) -> object:
    made = artifacts(rank)
    (rank.path.parent / "artifacts" / "best").symlink_to(rank.path / "step-5")
    (rank.path.parent / "artifacts" / "one").symlink_to(rank.path / "step-5" / "deep" / "model")
    try:
        return made.commit(final=True)
    except Changed:
        return None


@pytest.mark.parametrize("swapped", ["step-5", "step-5/deep"])
@pytest.mark.parametrize("do", [send, commit_artifacts])
def test_at_whatever_step_a_folder_is_exchanged_no_byte_and_no_name_from_outside_is_sent(
    tmp_path: Path, swapped: str, do: Callable[[Rank], object]
) -> None:
    for rank, found in steps(tmp_path, swapped, do):
        assert "secret" not in str(found)
        assert not any(b"secret" in body for body in rank.s3.objects.values())


@pytest.mark.parametrize("swapped", ["step-5", "step-5/deep"])
def test_at_whatever_step_a_folder_is_exchanged_no_file_from_outside_counts_as_one_that_is_saved(
    tmp_path: Path, swapped: str
) -> None:
    for _, found in steps(tmp_path, swapped, lambda rank: rank.folder.is_saving):
        assert not found


@pytest.mark.parametrize("swapped", ["step-5", "step-5/deep"])
def test_at_whatever_step_a_folder_is_exchanged_no_bytes_from_outside_are_counted(tmp_path: Path, swapped: str) -> None:
    for _, found in steps(tmp_path, swapped, lambda rank: written(rank.path, 0.0, float("inf")) < 1000):
        assert found  # the files of the folder, and the link in its place


def test_at_whatever_step_a_folder_is_exchanged_no_link_from_outside_is_read(tmp_path: Path) -> None:
    def target(rank: Rank) -> str:
        return Links(str(rank.path), {str(rank.path): str(rank.path)}, keeps=True).target("step-5/last")

    assert {found for _, found in steps(tmp_path, "step-5", target)} == {"", "model"}


def test_a_folder_that_has_become_a_link_itself_is_not_read(tmp_path: Path) -> None:
    rank = Rank(tmp_path, FakeS3())
    tree(rank, tmp_path / "outside")
    rank.path.rename(tmp_path / "aside")
    rank.path.symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="Not a directory"):
        Source(str(rank.path), "model").open()
    assert send(rank) is None
    assert not rank.folder.is_saving
    assert written(rank.path, 0.0, float("inf")) == 0
    assert rank.s3.objects == {}


def test_a_folder_that_is_exchanged_all_the_time_sends_nothing_from_outside(tmp_path: Path) -> None:
    rank, over = Rank(tmp_path, FakeS3()), threading.Event()
    tree(rank, tmp_path / "outside")
    swapper = Swapper(rank.path / "step-5", tmp_path / "outside", 0, 0)

    def race() -> None:
        while not over.is_set():
            swapper.swap()
            swapper.restore()

    racer = threading.Thread(target=race)
    racer.start()
    try:
        for number in range(ROUNDS):
            found = send(rank)
            assert "secret" not in str(found)
            assert not rank.folder.is_saving
            (rank.path / f"new-{number}").write_text("public")
    finally:
        over.set()
        racer.join()
    assert not any(b"secret" in body for body in rank.s3.objects.values())

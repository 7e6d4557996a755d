"""What is committed of a workbench while it runs: each file for itself, and none that is still written."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.sets.resting import RESTS_S
from contract.workbench import Workbench
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Rank, bytes_of, closed, pass_time

BENCH = Workbench(idle_minutes=60)
HUGE = "download.bin"


@pytest.fixture
def begin(tmp_path: Path, s3: FakeS3) -> Callable[..., Rank]:
    return partial(Rank, tmp_path, s3, bench=BENCH)


def write_all_the_time(rank: Rank, seconds: float, name: str = HUGE) -> None:
    """A download into its place, which is no log: its beginning changes."""
    for second in range(round(seconds)):
        rank.write(name, f"{second} of so many")
        pass_time([rank], 1)


def committed(rank: Rank) -> dict[str, str]:
    assert rank.checkpoints.newest is not None
    return bytes_of(rank.s3, rank.checkpoints.newest)


def test_a_file_that_is_written_all_the_time_holds_no_other_back(begin: Callable[..., Rank], s3: FakeS3) -> None:
    rank = begin()
    for interval in range(4):
        rank.write("notes.ipynb", f"version {interval}")
        write_all_the_time(rank, EVERY_S)
        assert len(closed(s3)) == interval
    assert committed(rank) == {"notes.ipynb": "version 3"}
    (line,) = [one for one in rank.notes if HUGE in one]
    assert "until it rests" in line


def test_it_is_taken_once_it_rests(begin: Callable[..., Rank]) -> None:
    rank = begin()
    rank.write("notes.ipynb", "beside it")
    write_all_the_time(rank, 2 * EVERY_S)
    assert HUGE not in committed(rank)
    pass_time([rank], EVERY_S + 3 * RESTS_S)
    assert committed(rank).keys() == {"notes.ipynb", HUGE}


def test_it_is_taken_at_the_end_although_it_does_not_rest(begin: Callable[..., Rank]) -> None:
    rank = begin()
    rank.write("notes.ipynb", "beside it")
    write_all_the_time(rank, 2 * EVERY_S)
    rank.checkpoints.finish()
    assert committed(rank).keys() == {"notes.ipynb", HUGE}


def test_one_that_was_committed_before_stays_as_it_was(begin: Callable[..., Rank]) -> None:
    rank = begin()
    rank.write(HUGE, "whole")
    pass_time([rank], EVERY_S + 3 * RESTS_S)
    rank.write("notes.ipynb", "beside it")
    write_all_the_time(rank, 2 * EVERY_S)
    assert committed(rank) == {"notes.ipynb": "beside it", HUGE: "whole"}


def test_one_that_was_restored_stays_as_it_was(begin: Callable[..., Rank]) -> None:
    rank = begin()
    rank.write(HUGE, "whole")
    rank.checkpoints.finish()
    again = begin(attempt=2, clock=rank.clock)
    again.restore()
    again.write("notes.ipynb", "beside it")
    write_all_the_time(again, 2 * EVERY_S)
    assert committed(again) == {"notes.ipynb": "beside it", HUGE: "whole"}


def test_one_that_was_removed_does_not_stay(begin: Callable[..., Rank]) -> None:
    rank = begin()
    rank.write(HUGE, "whole")
    pass_time([rank], EVERY_S + 3 * RESTS_S)
    (rank.path / HUGE).unlink()
    rank.write("notes.ipynb", "beside it")
    write_all_the_time(rank, 2 * EVERY_S, name="other.bin")
    assert committed(rank) == {"notes.ipynb": "beside it"}


def test_a_folder_in_which_nothing_rests_makes_no_set(begin: Callable[..., Rank], s3: FakeS3) -> None:
    rank = begin()
    write_all_the_time(rank, 3 * EVERY_S)
    assert closed(s3) == []
    assert not any("not committed" in one or "missed" in one for one in rank.notes)


def test_a_file_that_changes_during_each_commit_holds_no_other_back(
    begin: Callable[..., Rank], monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = begin()
    rank.write("notes.ipynb", "beside it")
    rank.write(HUGE, "at rest, as it seems")
    send = rank.folder.send

    def send_while_it_changes(select: Any, **options: Any) -> Any:
        def select_and_change(own: Any) -> Any:
            chosen = select(own)
            rank.clock.now += 0.1
            rank.write(HUGE, f"{rank.clock.now}")
            rank.write(f"{HUGE}-{rank.clock.now}", "and another comes")
            return chosen

        return send(select_and_change, **options)

    monkeypatch.setattr(rank.folder, "send", send_while_it_changes)
    pass_time([rank], EVERY_S + 3 * RESTS_S)
    assert committed(rank) == {"notes.ipynb": "beside it"}


def test_a_file_dated_in_the_future_waits_for_nothing(begin: Callable[..., Rank]) -> None:
    """The clock was set back, or a program says so: it can hardly be waited for."""
    rank = begin()
    file = rank.write("notes.ipynb", "dated later")
    os.utime(file, (rank.clock.now + 10 * EVERY_S,) * 2)
    pass_time([rank], EVERY_S + 3 * RESTS_S)
    assert committed(rank) == {"notes.ipynb": "dated later"}


def test_half_a_checkpoint_of_a_framework_holds_no_other_file_back(begin: Callable[..., Rank]) -> None:
    """A person may train on a bench: to its commits that is a folder as any other."""
    rank = begin()
    rank.write("step-10/__0_0.distcp", "half")
    rank.write("notes.ipynb", "beside it")
    pass_time([rank], EVERY_S + 3 * RESTS_S)
    assert "notes.ipynb" in committed(rank)

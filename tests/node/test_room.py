"""A disk that will be too small is told before it is full, with the number that would fit, and not again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.disk.room import GIB, Habit, Naming, Room, Shortage, habit, is_news, pace, shortage

HOUR = 3600.0
ROOT = Room(size=200 * GIB, free=25 * GIB)
KEEPS_ALL = Habit(count=5, size=10 * GIB, kept=10 * GIB, period_s=HOUR)
CALM = Room(size=200 * GIB, free=100 * GIB)


def find_shortage(
    room: Room = ROOT, saves: Habit = KEEPS_ALL, falls: float = 0.0, left_s: float = 20 * HOUR
) -> Shortage | None:
    return shortage(room, saves, falls, left_s, 200)


def said(room: Room = ROOT, saves: Habit = KEEPS_ALL, falls: float = 0.0, left_s: float = 20 * HOUR) -> str:
    found = find_shortage(room, saves, falls, left_s)
    assert found is not None
    return found.text


# What is told


def test_the_last_checkpoints_that_fit_are_counted_and_the_volume_that_holds_all_is_named() -> None:
    assert said() == (
        "the root volume holds 2 more checkpoints (10.0 GiB each; 25.0 of 200.0 GiB free), and until the job's deadline there is "
        "time for 20: keep fewer, or ask for volume_gb of at least 420"
    )


def test_one_more_is_one_and_none_is_none() -> None:
    assert "holds 1 more checkpoint (" in said(replace(ROOT, free=10 * GIB))
    assert "holds 0 more checkpoints (" in said(replace(ROOT, free=9 * GIB))


def test_a_second_checkpoint_that_does_not_fit_beside_the_first_is_told_after_the_first() -> None:
    text = said(Room(size=40 * GIB, free=11 * GIB), Habit(count=1, size=12 * GIB))
    assert text.startswith(
        "the root volume has no room for a second checkpoint beside the first (12.0 GiB; 11.0 of 40.0 GiB"
    )
    assert text.endswith("volume_gb of at least 210")


def test_room_that_shrinks_without_a_named_checkpoint_is_told_half_an_hour_ahead() -> None:
    text = said(CALM, Habit(), falls=100 * GIB / 1200)
    assert text == (
        "the root volume is full in 20 min at the pace of the last minutes (100.0 of 200.0 GiB free): write less, or ask for "
        "volume_gb of at least 440"
    )


def test_a_disk_that_is_nearly_full_is_told_whatever_the_cause() -> None:
    assert said(Room(size=100 * GIB, free=4 * GIB), Habit()).startswith(
        "the root volume is nearly full (4.0 of 100.0 GiB free)"
    )


def test_on_an_instance_store_the_number_counts_what_the_root_volume_holds_besides() -> None:
    store = Room(size=100 * GIB, free=25 * GIB, beside=60 * GIB, what="the instance store")
    text = said(store)
    assert text.startswith("the instance store holds 2 more checkpoints")
    assert text.endswith("ask for volume_gb of at least 370, which is then used instead")


def test_no_number_is_named_that_no_volume_has() -> None:
    text = said(saves=replace(KEEPS_ALL, period_s=1.0), left_s=24 * HOUR)
    assert text.endswith("keep fewer; no volume is as large as this needs")


def test_the_number_is_always_more_than_what_the_job_has() -> None:
    found = shortage(Room(size=10 * GIB, free=GIB // 4), Habit(), 0.0, HOUR, 500)
    assert found is not None
    assert found.gb > 500


# What is not told


@pytest.mark.parametrize(
    ("room", "saves"),
    [
        (replace(ROOT, free=40 * GIB), KEEPS_ALL),
        (ROOT, replace(KEEPS_ALL, kept=0.0)),
        (replace(ROOT, free=9 * GIB), replace(KEEPS_ALL, kept=0.4 * GIB)),
        (ROOT, replace(KEEPS_ALL, size=0)),
        (ROOT, replace(KEEPS_ALL, period_s=0.0)),
        (ROOT, Habit(count=1, size=25 * GIB)),
        (ROOT, Habit(count=1)),
        (CALM, Habit()),
    ],
    ids=[
        "four fit",
        "old ones are removed",
        "steady although no further one would fit beside",
        "a size that nobody knows",
        "no time between them",
        "a second one fits",
        "a first one of unknown size",
        "nothing is saved",
    ],
)
def test_a_disk_that_may_well_be_enough_is_not_told(room: Room, saves: Habit) -> None:
    assert find_shortage(room, saves) is None


def test_a_job_that_ends_before_its_disk_is_full_is_left_alone() -> None:
    assert find_shortage(left_s=2 * HOUR) is None
    assert find_shortage(CALM, Habit(), falls=100 * GIB / 1200, left_s=600) is None


def test_room_that_lasts_longer_than_half_an_hour_is_not_told() -> None:
    assert find_shortage(CALM, Habit(), falls=100 * GIB / 1801) is None


def test_a_small_share_of_a_large_disk_is_not_nearly_full() -> None:
    assert find_shortage(Room(size=2000 * GIB, free=20 * GIB), Habit()) is None


def test_a_pace_needs_two_minutes_and_one_that_grows_is_none() -> None:
    assert pace([]) == 0.0
    assert pace([(0.0, 100 * GIB), (119.0, 0)]) == 0.0
    assert pace([(0.0, 0), (300.0, 100 * GIB)]) == 0.0
    assert pace([(0.0, 100 * GIB), (50.0, 10 * GIB), (200.0, 80 * GIB)]) == pytest.approx(20 * GIB / 200)


def test_a_trainers_habit_is_read_off_its_checkpoints() -> None:
    namings = [Naming(count=number, at=number * 600.0, free=(100 - 4 * number) * GIB) for number in (3, 4, 6)]
    assert habit(namings, GIB) == Habit(count=6, size=GIB, kept=4 * GIB, period_s=600.0)
    assert habit(namings[:1], GIB) == Habit(count=3, size=GIB)
    assert habit([], GIB) == Habit()


def test_a_trainer_that_frees_room_keeps_nothing() -> None:
    namings = [Naming(count=number, at=number * 600.0, free=number * GIB) for number in (1, 2)]
    assert habit(namings, GIB).kept == 0.0


# How often


FIRST = Shortage(kind="checkpoints", left=3, gb=300, text="")


def test_a_shortage_is_told_once_and_again_only_when_much_has_changed() -> None:
    assert is_news(FIRST, None)
    assert not is_news(FIRST, FIRST)
    assert not is_news(replace(FIRST, left=2, gb=370), FIRST)
    assert is_news(replace(FIRST, left=1), FIRST)
    assert is_news(replace(FIRST, gb=380), FIRST)


def test_a_disk_on_which_nothing_fits_any_more_is_not_told_for_ever() -> None:
    none = replace(FIRST, left=0)
    assert is_news(none, replace(FIRST, left=1))
    assert not is_news(none, none)

"""Which commits make a set, which set is restored first, which commits go."""

from __future__ import annotations

import itertools

from agent.retention import complete_sets, stale_commits
from contract.keys import BytesPrefix, CommitKind, commit_of

PREFIX = BytesPrefix("job-1")


def key(attempt: int, step: int, rank: int) -> str:
    return PREFIX.commit(CommitKind.CHECKPOINTS, attempt, step, rank)


def places(keys: list[str]) -> list[tuple[int, int]]:
    return [(each.attempt, each.step) for each in complete_sets(keys)]


def test_a_key_says_where_its_commit_belongs() -> None:
    assert commit_of(key(12, 345, 6)) == (12, 345, 6)
    assert commit_of(key(12345, 10**12, 10000)) == (12345, 10**12, 10000)


def test_other_keys_are_no_commits() -> None:
    assert commit_of(PREFIX.checkpoint(0, "ab" * 32, "commits/checkpoints/a0001/s1/r0000.json")) is None
    assert commit_of(key(1, 1, 1) + ".torn") is None


def test_no_keys_are_no_set() -> None:
    assert complete_sets([]) == []


def test_the_newest_attempt_comes_before_the_higher_step() -> None:
    assert places([key(1, 50, 0), key(2, 10, 0), key(2, 20, 0)]) == [(2, 20), (2, 10), (1, 50)]


def test_a_set_without_every_committing_rank_is_none() -> None:
    keys = [key(1, 10, 0), key(1, 10, 1), key(1, 20, 0)]
    assert places(keys) == [(1, 10)]


def test_a_rank_that_never_commits_is_not_missed() -> None:
    assert places([key(1, 10, 0), key(1, 20, 0)]) == [(1, 20), (1, 10)]


def test_ranks_that_never_met_at_a_step_have_no_set() -> None:
    assert places([key(1, 10, 0), key(1, 11, 1)]) == []


def test_attempts_are_judged_by_their_own_ranks() -> None:
    assert places([key(1, 10, 0), key(1, 10, 1), key(2, 20, 0)]) == [(2, 20), (1, 10)]


def test_a_set_lists_its_commits_in_the_order_of_rank() -> None:
    keys = [key(1, 10, rank) for rank in range(12)]
    assert complete_sets(reversed(keys))[0].keys == tuple(keys)


def test_fewer_than_three_sets_are_all_kept() -> None:
    assert stale_commits([key(1, step, 0) for step in (1, 2)], 0) == []


def test_only_ones_own_commits_behind_the_third_set_go() -> None:
    keys = [key(1, step, rank) for step, rank in itertools.product(range(6), range(2))]
    assert stale_commits(keys, 1) == [key(1, step, 1) for step in range(3)]


def test_incomplete_commits_count_for_nothing_and_new_ones_stay() -> None:
    whole = [key(1, step, rank) for step, rank in itertools.product(range(1, 4), range(2))]
    assert stale_commits([*whole, key(1, 4, 0), key(1, 5, 0)], 0) == []
    assert stale_commits([*whole, key(1, 0, 0)], 0) == [key(1, 0, 0)]


def test_commits_of_earlier_attempts_go_once_the_new_one_has_three_sets() -> None:
    keys = [key(1, 100, 0), *(key(2, step, 0) for step in (1, 2))]
    assert stale_commits(keys, 0) == []
    assert stale_commits([*keys, key(2, 3, 0)], 0) == [key(1, 100, 0)]

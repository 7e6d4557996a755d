"""Which sets there are, and which documents are old: decided on keys alone."""

from __future__ import annotations

from agent.retention import History, Stale, history, stale
from contract.commits import Part
from contract.keys import LAST_SET, BytesPrefix, CommitKind, commit_of, set_of

PREFIX = BytesPrefix("job-1")


def older(attempt: int, step: int, rank: int) -> str:
    """As agents named commits before sets were closed."""
    return PREFIX.commit(CommitKind.CHECKPOINTS, attempt, step, rank)


def answered(attempt: int, number: int, *parts: Part, closed: bool = True) -> list[str]:
    keys = [PREFIX.part(attempt, number, rank, part.value) for rank, part in enumerate(parts)]
    return [PREFIX.plan(attempt, number), *keys, *([PREFIX.closed(attempt, number)] if closed else [])]


def sets(known: History) -> list[tuple[int, int]]:
    return [(each.attempt, each.order) for each in known.restorable()]


def test_a_key_says_attempt_step_and_rank() -> None:
    assert commit_of(older(12, 345, 6)) == (12, 345, 6)
    assert commit_of(older(12345, 10**12, 10000)) == (12345, 10**12, 10000)


def test_a_key_of_a_set_says_attempt_and_number() -> None:
    for number in (1, 999_998, LAST_SET):
        place = set_of(PREFIX.part(12, number, 10000))
        assert place is not None
        assert (place.attempt, place.number, place.part) == (12, number, (10000, "json"))


def test_other_keys_are_no_documents_of_checkpoints() -> None:
    inside = PREFIX.checkpoint(0, "ab" * 32, "commits/checkpoints/a0001/s1/r0000.json")
    for key in (inside, older(1, 1, 1) + ".torn", PREFIX.of_set(1, 1), PREFIX.part(1, 1, 0) + "/x"):
        assert (commit_of(key), set_of(key)) == (None, None)
    assert history([inside]).restorable() == []


def test_only_closed_sets_may_be_restored() -> None:
    keys = [
        *answered(1, 1, Part.FILES, Part.FILES),
        *answered(1, 2, Part.FILES, Part.FILES, closed=False),
        *answered(2, 1, Part.FILES, Part.NOTHING),
    ]
    assert sets(history(keys)) == [(2, 1), (1, 1)]


def test_the_last_set_is_the_newest_of_its_attempt() -> None:
    keys = [*answered(1, LAST_SET, Part.FILES), *answered(1, 7, Part.FILES), *answered(2, 1, Part.FILES)]
    assert sets(history(keys)) == [(2, 1), (1, LAST_SET), (1, 7)]


def test_an_answer_that_was_taken_back_is_a_miss() -> None:
    keys = [PREFIX.part(1, 1, 0, ending) for ending in ("json", "missed")]
    assert history(keys).parts(1, 1) == {0: Part.MISSED}
    keys = [PREFIX.part(1, 1, 0, ending) for ending in ("none", "missed")]
    assert history(keys).parts(1, 1) == {0: Part.MISSED}


def test_names_that_nobody_gives_are_no_parts() -> None:
    folder = PREFIX.of_set(1, 1)
    assert history([f"{folder}rank0.json", f"{folder}r0000.jpeg", f"{folder}plan.json"]).parts(1, 1) == {}


def test_a_set_is_answered_once_every_rank_has() -> None:
    known = history(answered(1, 1, Part.FILES, Part.MISSED))
    assert list(known.answered(1, 2)) == [1]
    assert known.answered(1, 3) == {}
    assert known.answered(2, 2) == {}


def test_before_sets_were_closed_one_had_a_commit_of_every_rank_that_had_any() -> None:
    keys = [older(1, 5, 0), older(1, 5, 1), older(1, 6, 0), older(2, 3, 0)]
    assert sets(history(keys)) == [(2, 3), (1, 5)]
    assert history(reversed(keys)).restorable()[1].keys == (older(1, 5, 0), older(1, 5, 1))


def test_few_sets_are_all_kept() -> None:
    keys = [key for number in (1, 2) for key in answered(1, number, Part.FILES)]
    assert stale(history(keys), 0) == Stale()


def test_each_rank_removes_its_own_documents_and_rank_0_those_of_nobody() -> None:
    keys = [key for number in range(1, 5) for key in answered(1, number, Part.FILES, Part.FILES)]
    assert stale(history(keys), 1) == Stale((), (PREFIX.part(1, 1, 1),))
    assert stale(history(keys), 0) == Stale((PREFIX.closed(1, 1), PREFIX.plan(1, 1)), (PREFIX.part(1, 1, 0),))


def test_sets_that_were_never_closed_count_for_none_and_go_with_their_age() -> None:
    keys = [
        *answered(1, 1, Part.FILES, closed=False),
        *(key for number in (2, 3, 4) for key in answered(1, number, Part.FILES)),
        *answered(1, 5, Part.FILES, closed=False),
    ]
    old = stale(history(keys), 0)
    assert PREFIX.part(1, 1, 0) in old.parts
    assert PREFIX.part(1, 5, 0) not in old.parts
    assert not any("n000002" in key for key in (*old.closing, *old.parts))


def test_sets_of_earlier_attempts_are_old_by_their_attempt() -> None:
    keys = [*answered(1, 100, Part.FILES), *(key for number in (1, 2) for key in answered(2, number, Part.FILES))]
    assert stale(history(keys), 0) == Stale()
    keys += answered(2, 3, Part.FILES)
    assert stale(history(keys), 0) == Stale((PREFIX.closed(1, 100), PREFIX.plan(1, 100)), (PREFIX.part(1, 100, 0),))


def test_commits_from_before_there_were_sets_go_once_there_are_enough_sets() -> None:
    keys = [older(1, 5, 0), *(key for number in (1, 2, 3) for key in answered(2, number, Part.FILES))]
    assert stale(history(keys), 0) == Stale((), (older(1, 5, 0),))
    assert stale(history(keys[:-4]), 0) == Stale()


def test_a_set_that_a_rank_took_back_is_not_closed_whoever_closes_it_afterwards() -> None:
    keys = [*answered(1, 1, Part.FILES, Part.NOTHING), PREFIX.part(1, 1, 1, Part.MISSED.value)]
    assert history(keys).restorable() == []

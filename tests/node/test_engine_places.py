"""Which packs are worth freeing, and what a deletion makes an agent forget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.engine.places import PACK, Location, Memory, wasteful
from contract.commits import CommittedFile


def file(path: str, key: str, size: int, offset: int = 0) -> CommittedFile:
    return CommittedFile(path=path, size=size, sha256=f"{path:0>64}", key=key, offset=offset)


def test_a_pack_of_which_half_is_alive_stays() -> None:
    assert wasteful([file("a", "k", 50)], {"k": 100}) == set()


def test_the_living_of_an_emptier_pack_are_sent_again() -> None:
    files = [file("a", "k", 20), file("b", "k", 29, 20), file("c", "l", 90)]
    assert wasteful(files, {"k": 100, "l": 100}) == {"k"}


def test_copies_count_once() -> None:
    assert wasteful([file("a", "k", 30), file("b", "k", 30)], {"k": 100}) == {"k"}


def test_empty_files_do_not_hide_the_file_that_begins_where_they_do() -> None:
    assert wasteful([file("a", "k", 0), file("b", "k", 100), file("c", "k", 0)], {"k": 100}) == set()


def test_an_object_of_one_file_is_never_wasteful() -> None:
    assert wasteful([file("a", "k", 3 * PACK)], {"k": 3 * PACK}) == set()


def test_an_object_of_unknown_size_is_left_alone() -> None:
    assert wasteful([file("a", "k", 1)], {}) == set()


def test_the_emptiest_packs_come_first_and_the_bound_holds() -> None:
    files = [file(f"{number}", f"k{number}", number) for number in (30, 10, 20)]
    assert wasteful(files, {f"k{number}": 100 for number in (10, 20, 30)}, most=35) == {"k10", "k20"}


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(0, 60)), max_size=30),
    st.integers(0, 300),
)
def test_what_is_sent_again_stays_within_the_bound_and_frees_more_than_it_costs(
    told: list[tuple[int, int, int]], most: int
) -> None:
    files = [file(f"{at}", f"k{key}", size, offset) for at, (key, size, offset) in enumerate(told)]
    sizes = {f"k{key}": 100 for key in range(6)}
    chosen = wasteful(files, sizes, most=most)
    pieces = {(one.key, one.offset): one.size for one in files if one.key in chosen}
    assert sum(pieces.values()) <= most
    assert sum(pieces.values()) <= 50 * len(chosen)


def test_what_was_deleted_is_forgotten_and_the_rest_is_not() -> None:
    memory = Memory(places={"a": Location("k"), "b": Location("l", 5)}, objects={"k": "a", "l": "b"})
    memory.forget({"k"})
    assert (memory.places, memory.objects) == ({"b": Location("l", 5)}, {"l": "b"})

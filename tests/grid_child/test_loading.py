"""What a child loads at its start is not searched for garbage, and what comes after is."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from grid_child.loading import loading


class Ring:
    """Garbage that only a search finds."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _searched() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def searches() -> int:
    return sum(one["collections"] for one in gc.get_stats())


def test_nothing_is_searched_while_it_loads() -> None:
    before = searches()
    with loading():
        kept = [[number] for number in range(100_000)]
    assert (searches(), len(kept)) == (before, 100_000)


def test_what_was_loaded_is_not_garbage_for_ever() -> None:
    with loading():
        ring = weakref.ref(Ring())
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert ring() is None


def test_an_error_while_loading_leaves_the_search_on() -> None:
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()


def test_who_has_turned_the_search_off_finds_it_off() -> None:
    gc.disable()
    with loading():
        pass
    assert not gc.isenabled()


def test_loading_within_loading_searches_nothing_before_the_outer_end() -> None:
    with loading():
        with loading():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()

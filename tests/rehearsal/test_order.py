"""The order of the tests that share the deployment: their marks decide it, whatever their files are called."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rehearsal.conftest import place, shares_the_yard


@dataclass
class Item:
    """A test, as far as its order goes."""

    name: str
    turn: str = ""
    fixturenames: tuple[str, ...] = ("yard",)
    rehearsal: bool = True
    module: Any = None

    @property
    def nodeid(self) -> str:
        return self.name

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        marks = {"rehearsal": pytest.mark.rehearsal.mark} if self.rehearsal else {}
        if self.turn:
            marks["turn"] = pytest.mark.turn(self.turn).mark
        return marks.get(name)


def ordered(*items: Item) -> list[str]:
    return [item.name for item in sorted(items, key=place)]  # type: ignore[arg-type]


def test_what_takes_the_deployment_away_is_last_whatever_its_file_is_called() -> None:
    items = [Item("a", "destroys"), Item("b", "judges"), Item("c", "looks back"), Item("d"), Item("e", "begins")]
    assert ordered(*items) == ["e", "d", "c", "b", "a"]


def test_tests_of_one_turn_stay_as_they_were_collected() -> None:
    assert ordered(Item("z"), Item("a"), Item("m")) == ["z", "a", "m"]


def test_what_needs_no_deployment_comes_before_all_that_share_it() -> None:
    assert ordered(Item("first of these", "begins"), Item("alone", fixturenames=())) == ["alone", "first of these"]


@pytest.mark.parametrize(
    "other", [Item("of a unit test", rehearsal=False), Item("of its module", module=SimpleNamespace(yard=None))]
)
def test_a_yard_of_its_own_is_no_share_of_the_deployment(other: Item) -> None:
    assert not shares_the_yard(other)  # type: ignore[arg-type]


def test_a_turn_that_there_is_not_is_an_error_and_no_place() -> None:
    with pytest.raises(
        pytest.UsageError, match="x: turn 'afterwards': there is no such turn; allowed: begins, between"
    ):
        place(Item("x", "afterwards"))  # type: ignore[arg-type]

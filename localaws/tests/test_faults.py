"""The faults that the local AWS knows by itself: how they are asked for, and what they meet."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import localaws
from localaws.conditions import Conditions
from localaws.faults import KEYS, plan_faults

SOURCES = [path.read_text() for path in Path(localaws.__path__[0], "services").glob("*.py")]


def test_what_is_not_given_has_its_default() -> None:
    (fault,) = plan_faults("s3-failing:as=denied")
    assert (fault.text("as"), fault.text("who"), fault.seconds("after")) == ("denied", "nodes", 0.0)
    assert fault.seconds("seconds") == math.inf


def test_a_key_that_a_fault_lacks_is_a_mark_of_what_it_meets() -> None:
    (fault,) = plan_faults("slow-boot:seconds=5,rank=1,job=a")
    assert fault.seconds("seconds") == 5.0
    assert [fault.meets(marks) for marks in ({}, {"rank": "1"}, {"rank": "1", "job": "a", "x": "y"})] == [
        False,
        False,
        True,
    ]


def test_without_a_mark_it_meets_everything() -> None:
    conditions = Conditions(faults=plan_faults("response-lost"))
    assert conditions.fault("response-lost", {"any": "thing"}) is not None
    assert conditions.fault("no-capacity", {}) is None


def test_a_dead_function_is_named_by_the_beginning_of_its_handler() -> None:
    conditions = Conditions(faults=plan_faults("function-dead:handlers=reader.,how=hangs"))
    assert conditions.dead("writer.handler") is None
    found = conditions.dead("reader.handler")
    assert found is not None
    assert found.text("how") == "hangs"


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="no fault 'slow-boat'; there are abort-in-state, "):
        plan_faults("slow-boat")


@pytest.mark.parametrize("name", [name for name in KEYS if name != "function-dead"])
def test_a_service_applies_each(name: str) -> None:
    assert any(f'"{name}"' in source for source in SOURCES)

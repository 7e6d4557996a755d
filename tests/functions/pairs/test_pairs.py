"""Every fault alone, and beside every trouble of AWS: one expected end, whose name the world caused, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functions.pairs.faults import EMPTY, FAULTS, End, no_capacity
from tests.functions.pairs.played import Played, Trouble
from tests.properties.rounds import DEEP


@pytest.fixture
def world() -> Iterator[Played]:
    made = Played()
    yield made
    made.close()


def cases() -> Iterator[Any]:
    """In `make test` each fault alone, in `make test-all` beside one of the troubles in turn too, in `make test-deep` beside all."""
    troubles = [one for one in Trouble if one is not Trouble.NONE]
    for number, name in enumerate(FAULTS):
        yield name, Trouble.NONE
        for one in troubles if DEEP else [troubles[number % len(troubles)]]:
            yield pytest.param(name, one, marks=pytest.mark.at_length)


@pytest.mark.parametrize(("name", "trouble"), list(cases()), ids=str)
def test_every_fault_beside_every_trouble_has_one_end(world: Played, name: str, trouble: Trouble) -> None:
    fault = FAULTS[name]
    if fault.request is EMPTY:
        no_capacity(world)
    run = world.ask("a", nodes=2, **fault.request)
    world.play(run, fault.at)
    world.trouble(trouble, run)
    fault.strike(world, run)
    world.play_to_the_end(run)
    error = run.execution.problem[0] if run.execution.problem else ""
    ended = End(run.execution.state, error, fault.end.attempts and run.execution.attempt)
    world.run_until_quiet()
    assert world.surprises == []
    assert world.too_many() == []
    assert world.running() == []
    assert ended == fault.end

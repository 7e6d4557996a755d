"""How many examples the property tests try: a few rounds in `make test`, all of them in `make test-all`, 2,000 x 50 steps in `make
test-deep`."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
"""`make test-deep` sets it."""
ROUND = settings(
    max_examples=10 if DEEP else 5,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
"""After its tenth example hypothesis mostly varies the ones before; in rounds of ten, each is a new one."""
ROUNDS = 200 if DEEP else 6


def numbers(rounds: int, *, quick: int) -> list[Any]:
    """Returns the numbers of the rounds for `parametrize`: those after the first `quick` ones are at length."""
    return [*range(quick), *(pytest.param(number, marks=pytest.mark.at_length) for number in range(quick, rounds))]


def play(
    number: int,
    machine: type[RuleBasedStateMachine],
    *,
    examples: int = ROUND.max_examples,
    steps: int = ROUND.stateful_step_count,
) -> None:
    """The round of that number: the suite's are always the same ones, the deep run's always others."""
    round_ = settings(ROUND, max_examples=examples, stateful_step_count=steps)
    run_state_machine_as_test(machine if DEEP else seed(number)(machine), settings=round_)

"""Jobs with a cap on what they may cost, whatever happens to their nodes, their prices and their executions: after every step none has
cost more than its cap by more than a launch of its nodes (invariant I10)."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.properties.jobs_rules import CAPS, REQUEST, STARTS, Jobs
from tests.properties.rounds import DEEP, ROUND, ROUNDS, numbers, play

EXAMPLES, STEPS = (ROUND.max_examples, ROUND.stateful_step_count) if DEEP else (2, 25)
CAP = st.sampled_from(CAPS)


class CappedJobs(Jobs):
    """Two executions, each with a cap; a third one may have none."""

    @initialize(
        seed=st.integers(0, 2**32),
        first=REQUEST,
        second=REQUEST,
        caps=st.tuples(CAP, CAP),
        apart=st.sampled_from([0, 0, 1, 40]),
    )
    def two_begin(  # type: ignore[override]
        self, seed: int, first: dict[str, object], second: dict[str, object], caps: tuple[float, float], apart: int
    ) -> None:
        self.begin(seed, first | {"max_cost_usd": caps[0]}, second | {"max_cost_usd": caps[1]}, apart)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", numbers(ROUNDS if DEEP else 3, quick=1))
def test_no_job_costs_more_than_its_cap_and_one_launch_whatever_happens(number: int) -> None:
    class Round(CappedJobs):
        start = STARTS[-1 - number % len(STARTS)]

    play(number, Round, examples=EXAMPLES, steps=STEPS)

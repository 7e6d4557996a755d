"""Several jobs beside each other, step between step: each ends for a reason of its own, and none touches what is another's."""

from __future__ import annotations

import pytest

from tests.properties.jobs_rules import STARTS, Jobs
from tests.properties.rounds import DEEP, numbers, play

ROUNDS, EXAMPLES, STEPS = (100, 10, 40) if DEEP else (len(STARTS), 3, 30)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", numbers(ROUNDS, quick=2))
def test_every_job_ends_for_its_own_reason_whatever_the_others_do_between_its_steps(number: int) -> None:
    class Round(Jobs):
        start = STARTS[number % len(STARTS)]

    play(number, Round, examples=EXAMPLES, steps=STEPS)

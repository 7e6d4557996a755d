"""The synthesised Train machine, run with the real functions: what a wait costs its history."""

from __future__ import annotations

import pytest

from tests.load.history import HOUR, MOST_EVENTS, MOST_TRANSITIONS, SHORT_S, waited


@pytest.mark.at_length
def test_a_wait_costs_nothing_but_for_its_lost_heartbeats() -> None:
    short = waited(SHORT_S)
    long = waited(60 * HOUR, tick_s=HOUR, dead=[(20 * HOUR, 27 * HOUR)])
    assert (short.status, long.status) == ("SUCCEEDED", "SUCCEEDED")
    assert (short.entered, long.entered) == (1, 2)
    assert long.transitions - short.transitions == 1 <= MOST_TRANSITIONS
    assert long.events - short.events == 6 <= MOST_EVENTS

"""A region that does not answer is left alone: by whom, for how long, and who asks again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError

from aws import breaker
from aws.breaker import LATE_S, OPEN_S, Silent, ask_region
from aws.clients import IN_PASSING
from tests.builders import NOW
from tests.fakes.threads import Process, SharedClock

HERE, THERE = "eu-central-1", "eu-west-1"
PAUSE_S = 1.0
"""Between two tries of botocore's standard mode, at most."""
options: Any = IN_PASSING
TRIES = options.retries["total_max_attempts"]
LONGEST_S = TRIES * (options.connect_timeout + options.read_timeout) + (TRIES - 1) * PAUSE_S
"""From a call to a region that is silent to its error, at most."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedClock]:
    breaker.regions.clear()
    made = SharedClock(NOW)
    monkeypatch.setattr(breaker, "time", made)
    yield made
    breaker.regions.clear()


def refused(code: str = "UnauthorizedOperation") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "DescribeInstances")


def fails(
    problem: Exception | None = None, after_s: float = 0.0, clock: SharedClock | None = None
) -> Callable[[], Any]:
    def ask() -> Any:
        if clock is not None:
            clock.sleep(after_s)
        raise problem or ReadTimeoutError(endpoint_url="x")

    return ask


def falls_silent(region: str = THERE) -> None:
    with pytest.raises(ReadTimeoutError):
        ask_region(region, fails())


def lets_call_pass(region: str = THERE) -> bool:
    try:
        return ask_region(region, lambda: True)
    except Silent:
        return False


def together(clock: SharedClock, *bodies: Callable[[], Any]) -> list[Process]:
    """They all begin now, and each gets as much time as it takes."""
    made = [Process(clock, body, lambda _: None) for body in bodies]
    for one in made:
        one.start()
    return made


def test_a_region_that_gave_no_answer_is_left_alone_and_then_asked_again(clock: SharedClock) -> None:
    falls_silent()
    assert not lets_call_pass()
    clock.run(OPEN_S - 1)
    assert not lets_call_pass()
    clock.run(1)
    assert lets_call_pass()


def test_a_region_that_answers_again_is_open_for_everybody(clock: SharedClock) -> None:
    falls_silent()
    clock.run(OPEN_S)
    assert lets_call_pass()
    assert lets_call_pass()


def test_a_region_that_is_still_silent_is_left_alone_once_more(clock: SharedClock) -> None:
    falls_silent()
    clock.run(OPEN_S)
    falls_silent()
    clock.run(OPEN_S - 1)
    assert not lets_call_pass()


def test_the_next_tick_of_the_clock_asks_again_however_late_the_region_fell_silent() -> None:
    assert LATE_S + LONGEST_S + OPEN_S <= 60.0


@pytest.mark.parametrize("other", [HERE, "eu-west-2", ""])
@pytest.mark.usefixtures("clock")
def test_other_regions_are_asked_meanwhile(other: str) -> None:
    falls_silent()
    assert lets_call_pass(other)
    assert not lets_call_pass()


@pytest.mark.parametrize(
    "problem", [refused(), refused("RequestLimitExceeded"), refused("InternalError"), NoCredentialsError(), KeyError()]
)
@pytest.mark.usefixtures("clock")
def test_an_error_that_is_an_answer_or_our_own_silences_nothing(problem: Exception) -> None:
    with pytest.raises(type(problem)):
        ask_region(THERE, fails(problem))
    assert lets_call_pass()


def test_an_error_that_the_region_answers_ends_its_silence(clock: SharedClock) -> None:
    falls_silent()
    clock.run(OPEN_S)
    with pytest.raises(ClientError):
        ask_region(THERE, fails(refused()))
    asks = together(
        clock, lambda: ask_region(THERE, lambda: clock.sleep(1.0)), lambda: ask_region(THERE, lambda: "asked")
    )
    assert asks[1].result == "asked"
    clock.run(1)


@pytest.mark.parametrize("problem", [ReadTimeoutError(endpoint_url="x"), ConnectTimeoutError(endpoint_url="x")])
@pytest.mark.usefixtures("clock")
def test_no_answer_is_an_error_of_whoever_asked_and_of_nobody_else(problem: Exception) -> None:
    with pytest.raises(type(problem)):
        ask_region(THERE, fails(problem))
    with pytest.raises(Silent, match="eu-west-1 gave no answer 0 s ago, and is not asked for 40 s"):
        ask_region(THERE, lambda: True)


def test_after_a_silence_one_asks_and_the_others_do_not_wait(clock: SharedClock) -> None:
    falls_silent()
    clock.run(OPEN_S)
    first, *others = together(
        clock, lambda: ask_region(THERE, fails(after_s=LONGEST_S, clock=clock)), *[lets_call_pass] * 7
    )
    assert [one.result for one in others] == [False] * 7
    assert first.alive
    clock.run(LONGEST_S)
    assert isinstance(first.problem, ReadTimeoutError)
    assert not lets_call_pass()


def test_one_who_asks_and_dies_does_not_keep_others_from_asking(clock: SharedClock) -> None:
    falls_silent()
    clock.run(OPEN_S)
    (dead,) = together(clock, lambda: ask_region(THERE, lambda: clock.sleep(LONGEST_S)))
    assert not lets_call_pass()
    dead.kill()
    assert lets_call_pass()


def test_those_who_come_late_do_not_join_one_who_waits(clock: SharedClock) -> None:
    together(clock, lambda: ask_region(THERE, lambda: clock.sleep(LATE_S + 1)))
    clock.run(LATE_S - 1)
    assert lets_call_pass()
    clock.run(1)
    assert not lets_call_pass()
    clock.run(1)
    assert lets_call_pass()


def test_eight_who_ask_a_region_that_falls_silent_are_held_up_for_less_than_20_s(clock: SharedClock) -> None:
    """Whenever they come to it: each has 100 looks, one after the other, at jobs of that region."""
    over = list[float]()

    def looks(first_s: float) -> None:
        clock.sleep(first_s)
        for _ in range(100):
            try:
                ask_region(THERE, fails(after_s=LONGEST_S, clock=clock))
            except (ReadTimeoutError, Silent):
                clock.sleep(0.01)
        over.append(clock.now - NOW)

    together(clock, *[lambda first=one: looks(first) for one in (0.0, 0.5, 1, 2, 3, 3.9, 10, LONGEST_S - 0.1)])
    clock.run(60)
    assert len(over) == 8
    assert max(over) <= LATE_S + LONGEST_S + 100 * 0.01 <= 20.0


def test_a_call_in_passing_learns_within_15_s_that_nobody_answers() -> None:
    assert LONGEST_S <= 15.0

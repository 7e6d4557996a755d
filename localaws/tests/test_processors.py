"""Functions of the local AWS have the share of a processor that their memory buys, and no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from localaws.processors import BURST_S, WHOLE_MB, Budget, Processors, share
from localaws.testing.waiting import HANG_S, condition, until

BURNS = "while True: pass"
WORKS = "import time\nwhile time.process_time() < 0.1: pass"
WAITS = "input()"
BARELY = 0.02
"""A share that a process exceeds beside many others, too."""


@pytest.fixture
def processors() -> Iterator[Processors]:
    made = Processors()
    yield made
    made.stop()


@contextmanager
def run(code: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def stopped(process: subprocess.Popen[bytes]) -> bool:
    return condition(process.pid) == "T"


@pytest.mark.parametrize(("memory", "expected"), [(128, 128 / 1769), (512, 512 / 1769), (1769, 1.0), (10_240, 1.0)])
def test_a_share_goes_with_the_memory_up_to_a_whole_processor(memory: int, expected: float) -> None:
    assert share(memory) == expected
    assert WHOLE_MB == 1769


def test_who_spends_more_than_was_earned_is_stopped_until_it_is_earned() -> None:
    budget = Budget(share=0.25, at=0.0)
    assert not budget.allows(0.1, 0.1)  # 0.02 ahead and 0.025 earned; 0.055 are owed
    assert not budget.allows(0.3, 0.1)
    assert budget.allows(0.4, 0.1)


def test_who_waits_for_long_may_not_spend_it_all_at_once() -> None:
    budget = Budget(share=0.5, at=0.0)
    assert budget.allows(3600.0, 0.0)
    assert not budget.allows(3600.0 + BURST_S, 2 * BURST_S)


def test_a_look_that_comes_late_lets_nobody_off_what_was_spent() -> None:
    budget = Budget(share=0.5, at=0.0)
    assert not budget.allows(10.0, 10.0)
    assert not budget.allows(19.0, 10.0)
    assert budget.allows(20.0, 10.0)


def test_a_process_that_computes_is_stopped_and_goes_on_by_turns_until_it_is_done(processors: Processors) -> None:
    with run(WORKS) as process:
        processors.hold(process.pid, BARELY)
        until(lambda: stopped(process))
        assert process.wait(HANG_S) == 0


def test_who_waits_beside_one_that_computes_is_let_go_on(processors: Processors) -> None:
    with run(WAITS) as waiting, run(BURNS) as burning:
        for one in (waiting, burning):
            processors.hold(one.pid, BARELY)
        until(lambda: stopped(burning))
        waiting.communicate(b"\n", timeout=HANG_S)
        assert waiting.returncode == 0


def test_a_process_that_is_stopped_can_be_killed_and_the_next_is_held_all_the_same(processors: Processors) -> None:
    for _ in range(2):
        with run(BURNS) as process:
            processors.hold(process.pid, BARELY)
            until(lambda process=process: stopped(process))
            process.kill()
            assert process.wait(HANG_S) < 0


def test_whoever_is_stopped_at_the_end_goes_on() -> None:
    processors = Processors()
    with run(BURNS) as process:
        processors.hold(process.pid, BARELY)
        until(lambda: stopped(process))
        processors.stop()
        until(lambda: not stopped(process))


def test_a_process_that_is_no_more_is_refused(processors: Processors) -> None:
    with run("") as process:
        process.wait(HANG_S)
    with pytest.raises(ProcessLookupError):
        processors.hold(process.pid, 0.5)

"""A question that several threads ask is asked once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from job_checks.once import Once


def test_equal_questions_are_asked_once_and_others_for_themselves() -> None:
    once, asked = Once(), list[str]()

    def ask(name: str) -> str:
        return once.answer(name, lambda: asked.append(name) or name.upper())

    assert [ask(one) for one in ("a", "b", "a", "a")] == ["A", "B", "A", "A"]
    assert asked == ["a", "b"]


def test_a_thread_that_comes_meanwhile_waits_for_the_answer() -> None:
    once, begun, goes_on = Once(), Event(), Event()

    def slowly() -> str:
        begun.set()
        assert goes_on.wait(120)
        return "found"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(once.answer, "a", slowly)
        assert begun.wait(120)
        second = pool.submit(once.answer, "a", lambda: pytest.fail("was asked twice"))
        goes_on.set()
        assert (first.result(120), second.result(120)) == ("found", "found")


def test_an_error_is_everybodys_answer() -> None:
    once = Once()

    def fail() -> str:
        raise LookupError("no answer")

    for _ in range(2):
        with pytest.raises(LookupError, match="no answer"):
            once.answer("a", fail)

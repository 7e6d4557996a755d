"""Asks a question once, however many threads ask it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class Once:
    """Answers by question."""

    def __init__(self) -> None:
        self._lock, self._answers = Lock(), dict[Hashable, Future[Any]]()

    def answer(self, question: Hashable, ask: Callable[[], T]) -> T:
        """Returns the answer, which is asked for if nothing has been asked for it yet; a thread that comes meanwhile waits for it. Raises
        what `ask` raised, then and again."""
        with self._lock:
            is_first = question not in self._answers
            future = self._answers.setdefault(question, Future())
        if is_first:
            try:
                future.set_result(ask())
            except BaseException as problem:
                future.set_exception(problem)
                raise
        found: T = future.result()
        return found

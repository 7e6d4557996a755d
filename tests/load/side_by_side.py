"""A ThreadPoolExecutor on the virtual clock: its threads are processes, so that their calls overlap as they do in Lambda."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tests.fakes.threads import Process
from tests.properties.jobs_world import JobsWorld

LOOK_S = 0.01
"""How often whoever waits for a thread looks whether it has ended."""


class _Waited(Future[Any]):
    """Time passes while somebody waits for the result."""

    def __init__(self, world: JobsWorld) -> None:
        super().__init__()
        self._world = world

    def result(self, timeout: float | None = None) -> Any:  # noqa: ARG002
        while not self.done():
            self._world.clock.spend(LOOK_S)
        return super().result()


class SideBySide:
    """`at_once` threads, that belong to the function and the execution of whoever began them."""

    def __init__(self, world: JobsWorld, at_once: int) -> None:
        self._world, self._free = world, at_once
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._begun = list[Future[Any]]()

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._begun:
            while not future.done():
                self._world.clock.spend(LOOK_S)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future, task = _Waited(self._world), self._world.watch.task
        owner = task.function, task.run

        def body() -> Any:
            task.function, task.run = owner
            return function(*arguments)

        self._begun.append(future)
        self._queue.append((future, body))
        self._begin()
        return future

    def _begin(self) -> None:
        while self._free and self._queue:
            self._free -= 1
            future, body = self._queue.popleft()
            process = Process(self._world.clock, body, lambda ended, future=future: self._ended(ended, future))  # type: ignore[misc]
            self._world.clock.at(self._world.clock.now, process.start)  # by the clock itself: this thread goes on

    def _ended(self, process: Process, future: Future[Any]) -> None:
        self._free += 1
        if process.problem is None:
            future.set_result(process.result)
        else:
            future.set_exception(process.problem)
        self._begin()

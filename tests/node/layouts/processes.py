"""Runs the processes of a node side by side, one operation at a time in an order that a seed gives, with barriers between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.node.layouts.disk import Disk

BARRIER = "barrier"
Steps = Iterator[str | None]
"""Operations of a process: something after each, and BARRIER where it waits for the others."""


@dataclass(frozen=True)
class Save:
    """One checkpoint that is about to be written."""

    name: str
    expected: dict[str, bytes]
    """All that it has on this node once every process has finished."""
    steps: Steps
    beside: dict[str, bytes] = field(default_factory=dict)
    """Files that are checkpoints of their own."""


@dataclass(frozen=True)
class Saver:
    """How a framework saves."""

    name: str
    layout: str
    save: Callable[[Disk, int], Save]
    """Saves the checkpoint of a step to a disk that has those before it."""
    named: bool = False
    """Whether the layout is recognised only where the request says it."""
    reuses: bool = False
    """Whether the framework itself goes on from something that the next save changes: then there are moments without a checkpoint."""


def together(random: Random, *processes: Steps) -> Steps:
    """Runs processes side by side."""
    running, waiting = list(processes), list[Steps]()
    while running or waiting:
        if not running:
            running, waiting = waiting, []
        one = random.choice(running)
        try:
            step = next(one)
        except StopIteration:
            running.remove(one)
            continue
        if step == BARRIER:
            running.remove(one)
            waiting.append(one)
        else:
            yield None


def barrier() -> Steps:
    yield BARRIER

"""How a send ends that fails in one of its threads, or is interrupted, and what the next one makes of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.engine import engine, sending
from agent.engine.pace import Pace
from agent.snapshot import Changed
from localaws.testing.waiting import HANG_S
from tests.node.engine_yard import MIB, Yard, content, yard


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made


def test_what_ended_because_of_a_failure_does_not_hide_its_cause(it: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    cut, first = threading.Event(), threading.Lock()

    class Late(Pace):
        def wait(self) -> None:
            """The first thread sleeps until another has failed."""
            if first.acquire(blocking=False):
                cut.wait(HANG_S)
                time.sleep(0.2)

    def changed(*_: object, **__: object) -> None:
        cut.set()
        raise Changed("a file changed")

    monkeypatch.setattr(sending.Sending, "_ship", changed)
    monkeypatch.setattr(engine, "Pace", Late)
    it.write({f"file-{number}": content(MIB, number) for number in range(40)})
    with pytest.raises(Changed):
        it.send()

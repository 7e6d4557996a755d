"""How a send ends that fails in one of its threads, or is interrupted, and what the next one makes of it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.engine import engine, sending
from agent.engine.pace import Pace
from agent.engine.sending import PART
from agent.snapshot import Changed
from localaws.testing.waiting import HANG_S
from tests.node.engine_yard import MIB, Yard, content, yard


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made


def test_an_upload_that_is_interrupted_while_it_is_hashed_goes_on_with_the_right_digest(
    it: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C, which Python raises once the call that hashes has returned."""
    whole = content(3 * PART, 0)
    it.write({"model.pt": whole})

    class Hash:
        left = 2

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def copy(self) -> Hash:
            return Hash(self._inner.copy())

        def update(self, piece: memoryview) -> None:
            self._inner.update(piece)
            Hash.left -= 1
            if not Hash.left:
                raise KeyboardInterrupt

        def hexdigest(self) -> str:
            return str(self._inner.hexdigest())

    class Hashing(SimpleNamespace):
        sha256 = staticmethod(lambda *told: Hash(hashlib.sha256(*told)))

    monkeypatch.setattr(sending, "hashlib", Hashing)
    with pytest.raises(KeyboardInterrupt):
        it.send()
    assert it.send()["model.pt"].sha256 == hashlib.sha256(whole).hexdigest()


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

"""Acts beside an agent, once its trainer is at work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localaws.testing.waiting import until
from tests.node.world import Site


@contextmanager
def once_it_trains(site: Site, act: Callable[[], object]) -> Iterator[None]:
    """Does `act` beside the agent, once its trainer has said "up"."""

    def wait_and_act() -> None:
        until(lambda: "up" in site.lines)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield
    thread.join()

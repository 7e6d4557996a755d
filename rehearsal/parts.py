"""Times the parts of a rehearsal: tells of each part when it begins, and keeps how long it took."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(slots=True)
class Part:
    """One part. Seconds are since the rehearsal began. Parts may be nested and may overlap."""

    name: str
    began_s: float
    took_s: float | None = None
    """None while the part goes on."""
    note: str = ""


class Parts:
    """Collects parts; thread-safe. `tell` receives each part when it begins and when it ends."""

    def __init__(self, tell: Callable[[Part], None] = lambda _: None) -> None:
        self.began = time.monotonic()
        self.all: list[Part] = []
        self._tell = tell
        self._lock = threading.Lock()

    @contextmanager
    def part(self, name: str) -> Iterator[Part]:
        """Times a part for as long as the block lasts; a part that fails has no end."""
        part = self.begin(name)
        yield part
        self.end(name)

    def begin(self, name: str) -> Part:
        part = Part(name, self._now())
        with self._lock:
            self.all.append(part)
        self._tell(part)
        return part

    def end(self, name: str) -> None:
        """Ends a part; does nothing if no such part goes on."""
        with self._lock:
            going_on = [part for part in self.all if part.name == name and part.took_s is None]
            for part in going_on:
                part.took_s = self._now() - part.began_s
        for part in going_on:
            self._tell(part)

    def known(self, name: str, began_s: float, took_s: float) -> None:
        """Adds a part that was timed elsewhere, without printing it."""
        with self._lock:
            self.all.append(Part(name, round(began_s, 3), round(took_s, 3)))

    def going_on(self) -> list[str]:
        """Names the parts that a hanging or interrupted rehearsal was in."""
        with self._lock:
            return [part.name for part in self.all if part.took_s is None]

    def write(self, file: Path) -> None:
        """Writes the parts, with the processor time of this process and of all processes that it waited for."""
        times = os.times()
        document = {
            "parts": [asdict(part) for part in self.all],
            "own_cpu_s": round(times.user + times.system, 2),
            "children_cpu_s": round(times.children_user + times.children_system, 2),
        }
        file.write_text(json.dumps(document, indent=1) + "\n")

    def _now(self) -> float:
        return round(time.monotonic() - self.began, 3)

"""Notices nodes that write urgent reports again and again, whose looks would keep other jobs' reports waiting in the stream."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from attendant.records import Hint

WINDOW_S = 20.0
LOOKS = 4
"""Looks in WINDOW_S that the urgent reports of one node cause. A node writes one as its work ends, one with an order, one as its commits
are made, one about its machine; whatever it writes beyond that, the clock finds within a minute."""
MOST_KNOWN = 10_000
"""Nodes that are remembered."""


@dataclass
class HintFilter:
    """The times at which each node's reports caused looks. Lambda keeps it as long as the process, and each shard of the stream has one
    process at a time; a node's reports are in one shard."""

    _times: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def select(self, hints: Iterable[Hint], now: float) -> list[Hint]:
        """Returns the hints of nodes that have not caused LOOKS looks in the last WINDOW_S, and counts theirs. `now`: UTC epoch seconds."""
        with self._lock:
            return [hint for hint in hints if self._may_look(hint.instance, now)]

    def forget(self) -> None:
        """Forgets all nodes, as a new process does."""
        with self._lock:
            self._times.clear()

    def _may_look(self, instance: str, now: float) -> bool:
        times = [at for at in self._times.pop(instance, []) if now - WINDOW_S < at <= now]
        if is_quiet := len(times) < LOOKS:
            times.append(now)
        self._times[instance] = times
        if len(self._times) > MOST_KNOWN:
            self._times.popitem(last=False)
        return is_quiet


hints_seen = HintFilter()
"""Of this process."""

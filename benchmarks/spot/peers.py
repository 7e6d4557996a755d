"""What other policies make of the same trace on the same machines, by arithmetic: no code of theirs runs.

Each figure leans to their side: they see capacity within a minute, learn of a loss at once or with their next poll, and never begin
from a checkpoint that is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.spot.assumed import Assumed, Chance
from benchmarks.spot.traces import Stretch, Trace

ASKS_S = 60.0
"""Between two tries for capacity."""
HOUR_S = 3600.0
POLL_S, LAUNCH_S = 15.0, 137.0
"""SkyPilot's poll of a cluster, and its own median from the launch to a node that can be used, boot included."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Node-seconds."""

    paid_s: float = 0.0
    progress_s: float = 0.0

    @property
    def share(self) -> float:
        return self.progress_s / self.paid_s if self.paid_s else 0.0

    def plus(self, paid_s: float, progress_s: float) -> Peer:
        return Peer(self.paid_s + paid_s, self.progress_s + progress_s)


def hourly(trace: Trace, assumed: Assumed, chance: Chance) -> Peer:
    """Saves each hour; after a loss everything is launched and installed again. Notices are not heard."""

    def before_s(number: int) -> float:
        return _boot_s(trace, assumed, chance, number) + assumed.before_first_step_s() + assumed.restore_s

    return _polled(trace, assumed, chance, every_s=HOUR_S, before_s=before_s, noticed_s=lambda _: 0.0)


def skypilot_like(trace: Trace, assumed: Assumed, chance: Chance) -> Peer:
    """The trainer saves as often as ours; a loss is seen by the next poll, and what is left of the cluster is paid until then. Its launch
    has the requirements in it."""

    def noticed_s(number: int) -> float:
        return chance.of("poll", number).uniform(0.0, POLL_S)

    def before_s(_: int) -> float:
        return LAUNCH_S + assumed.restore_s + assumed.import_s

    return _polled(trace, assumed, chance, every_s=assumed.save_every_s, before_s=before_s, noticed_s=noticed_s)


def _polled(
    trace: Trace, assumed: Assumed, chance: Chance, *, every_s: float, before_s: Callable[[int], float],
    noticed_s: Callable[[int], float],
) -> Peer:  # fmt: skip
    found = Peer()
    for number, stretch in enumerate(trace.stretches):
        launched = stretch.begin + chance.of("asks", number).uniform(0.0, ASKS_S)
        if launched >= stretch.end:
            continue
        lasted = stretch.end - launched
        left_s = noticed_s(number) * (trace.nodes - stretch.lost) if stretch.lost else 0.0
        progress_s = committed_s(lasted - before_s(number), assumed, every_s=every_s, whole=not stretch.lost)
        paid_s = _paid_s(lasted, trace, assumed, chance, number)
        found = found.plus(paid_s + left_s, progress_s * trace.nodes)
    return found


def committed_s(trained_s: float, assumed: Assumed, *, every_s: float, whole: bool) -> float:
    """Of a training that went on for so long, the seconds that a checkpoint has; `whole`: it ended well, with nothing lost."""
    saves = int(max(0.0, trained_s) // every_s)
    if whole:
        return max(0.0, trained_s - saves * assumed.pause_s)
    if saves and trained_s < saves * every_s + assumed.save_s + assumed.commit_s:
        saves -= 1  # on its way when everything ended
    return saves * every_s - max(0, saves - 1) * assumed.pause_s


def bound(trace: Trace, assumed: Assumed, chance: Chance) -> Peer:
    """Whoever knows when each stretch ends: launches at once where it is worth it, never pauses, and saves just in time."""
    found = Peer()
    for number, stretch in enumerate(trace.stretches):
        useful_s = stretch.length - _before_s(trace, assumed, chance, number) - _last_s(assumed, stretch)
        if useful_s > 0:
            paid_s = _paid_s(stretch.length, trace, assumed, chance, number)
            found = found.plus(paid_s, useful_s * trace.nodes)
    return found


def _before_s(trace: Trace, assumed: Assumed, chance: Chance, number: int) -> float:
    later = number > 0
    before_s = assumed.before_first_step_s(kept=later) + assumed.restore_s * later
    return _boot_s(trace, assumed, chance, number) + before_s


def _last_s(assumed: Assumed, stretch: Stretch) -> float:
    return assumed.save_s + assumed.commit_s if stretch.lost else 0.0


def _paid_s(lasted_s: float, trace: Trace, assumed: Assumed, chance: Chance, number: int) -> float:
    """What AWS bills of nodes that were launched so long ago."""
    pending = (chance.pending_s(assumed, number, 0, rank) for rank in range(trace.nodes))
    return sum(max(0.0, lasted_s - one) for one in pending)


def _boot_s(trace: Trace, assumed: Assumed, chance: Chance, number: int) -> float:
    """Until the slowest node is there."""
    return max(chance.boot_s(assumed, number, 0, rank) for rank in range(trace.nodes))

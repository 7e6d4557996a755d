"""Decides when a set is opened, and how often a rank looks: facts and time in, verdict out."""

from __future__ import annotations

from agent.progress import Named
from contract.jobs import Scope

POLL_S, LONGEST_POLL_S, POLL_SHARE = 5.0, 300.0, 0.05
"""Between looks for a plan: a share of the time since it was due, within these bounds, of which the first is smaller in short intervals."""
FRESH_SHARE = 0.2
"""Of the time between two checkpoints: for so long other ranks surely have the newest one as well."""
OTHERS_FIRST = 0.9
"""Share of the interval for which rank 0, without files, leaves it to others to open a set."""


def waits_for_next(named: Named, now: float, due: float, every_s: float, scope: Scope) -> bool:
    """Whether to open the set with the trainer's next checkpoint and not with `named`, which the other ranks may be about to replace:
    where it is not fresh, and the next one is near. Nor with the first one, while the next may be near: only from the second one on do
    ranks know who names, unless the request says that all have files. Times are of the machine's clock."""
    if named.count == 1 and scope is Scope.AUTO:
        return now < due + every_s / 2
    if named.at >= due or named.period_s <= 0.0 or now - named.at < FRESH_SHARE * named.period_s:
        return False
    next_at = named.at + named.period_s
    return next_at - due < every_s / 2 and now < next_at + named.period_s


def poll_s(since_s: float, every_s: float) -> float:
    """Pause before the next look for a plan that was due `since_s` ago, where one is due every `every_s`."""
    return min(max(min(POLL_S, POLL_SHARE * every_s), POLL_SHARE * since_s), LONGEST_POLL_S)

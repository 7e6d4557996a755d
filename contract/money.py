"""What a job costs at most: its instances and their root volumes, by the prices of its admission.

Data transfer, S3, logs and what a reservation costs are not in it. Spot counts at the on-demand price, which bounds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from contract.intents import Intent, LaunchOutcome, Step
from contract.jobs import Job, Rung
from contract.timing import Timing

HOUR_S = 3600.0
LEAST_BILLED_S = 60.0
"""EC2 bills by the second, and a minute at least (EC2's on-demand pricing page; the same goes for gp3)."""
NEAR_CAP_PERCENT = 80.0
"""Of its max_cost_usd: a job that has cost more is near its cap, and people are told."""
MAYBE_LAUNCHED = frozenset({LaunchOutcome.LAUNCHED, LaunchOutcome.UNKNOWN, LaunchOutcome.RENEW})


def hourly_usd(nodes: int, rung: Rung) -> float | None:
    """An hour of all nodes on the rung at most, US dollars; None where a price is not known."""
    return None if rung.most_usd is None else nodes * rung.most_usd


def up_to_cents(usd: float) -> float:
    """Whole cents, rounded up: what is said to be the most must not be less. What a float adds by itself is no cent."""
    return math.ceil(round(usd * 100, 6)) / 100


def least_s(timing: Timing) -> float:
    """The shortest time for which a launch is worth its money: the notice before the deadline, in which nodes write a last checkpoint, as
    long again for the training before it, and the time in which nodes power themselves off."""
    return 2 * timing.deadline_notice_s + timing.power_off_after_deadline_s


def affords_s(job: Job, rung: Rung, spent_usd: float, beside_usd: float = 0.0) -> float:
    """Seconds for which the rest of the job's money pays for all nodes on the rung; infinite without a cap, 0 where no price is known.

    `beside_usd`: what an hour of other nodes costs that may run meanwhile.
    """
    if job.max_cost_usd is None:
        return math.inf
    own = hourly_usd(job.nodes, rung)
    if own is None:
        return 0.0
    hourly = own + beside_usd
    return max(0.0, job.max_cost_usd - spent_usd) / hourly * HOUR_S if hourly else math.inf


def launched_as(job: Job, walk: Intent, rung: Rung) -> Job:
    """The admitted job as the walk launches it on the rung. Its hours begin once it has waited, and it ends before a Capacity Block does,
    and before its money is used up. The money pays also for the minutes in which nodes end themselves if nothing else ends them, and for
    nodes of other places that may have been launched unnoticed: they end with the attempt, and not before."""
    lasts_s = affords_s(job, rung, walk.spent_usd, walk.doubted_usd)
    paid_until = walk.started_at + lasts_s - job.timing.power_off_after_deadline_s
    return job.extended(walk.waited_s, rung, paid_until=paid_until)


def describe_launch_cost(job: Job, walk: Intent, rung: Rung) -> dict[str, object]:
    """Returns what the execution shows of a launch: US dollars, "unknown" where no price is known."""
    hourly = hourly_usd(job.nodes, rung)
    return {
        "usd_an_hour_at_most": "unknown" if hourly is None else round(hourly, 4),
        "usd_spent_before": up_to_cents(walk.spent_usd) if job.max_cost_usd is not None else None,
        "max_cost_usd": job.max_cost_usd,
    }


def spent_usd(job: Job, walks: Iterable[Intent], ends: Mapping[int, float], *, now: float) -> float | None:
    """What the attempts of these walks cost at most, US dollars; None where a price is not known.

    `walks` in their order. `ends`: by attempt, when its last instance had begun to end. Where this is not known the attempt counts until
    the next one began, or until `now`. A launch counts from the beginning of its walk; one that may have launched counts
    as one that did.
    """
    total = 0.0
    for rung, seconds in _spans(walks, ends, now):
        hourly = hourly_usd(job.nodes, rung)
        if hourly is None:
            return None
        total += hourly * seconds / HOUR_S
    return total


def billed_s(walks: Iterable[Intent], ends: Mapping[int, float], *, now: float) -> float:
    """Seconds for which each node of the attempts of these walks was billed at most, as `spent_usd` counts them."""
    return math.fsum(seconds for _, seconds in _spans(walks, ends, now))


def _spans(walks: Iterable[Intent], ends: Mapping[int, float], now: float) -> Iterator[tuple[Rung, float]]:
    """Yields on which rungs nodes ran, or may have run, and for how many seconds they are billed."""
    attempts = [list(group) for _, group in groupby(walks, key=lambda one: one.attempt)]
    begins = [group[0].started_at for group in attempts]
    for group, bound in zip(attempts, [*begins, now][1:], strict=True):
        until = min(ends.get(group[0].attempt, bound), bound)
        for rung, since in _paid(group):
            yield rung, max(LEAST_BILLED_S, until - since)


def _paid(walks: Sequence[Intent]) -> list[tuple[Rung, float]]:
    """Rungs of an attempt on which instances run, ran, or may have run, and since when."""
    return [(step.rung, walk.started_at) for walk in walks for step in walk.steps if _may_have_launched(walk, step)]


def _may_have_launched(walk: Intent, step: Step) -> bool:
    """A request that was written down, and whose turn it is, may be on its way: whoever sent it may have died before the answer."""
    answer = step.answer
    if answer is None:
        is_next = walk.next_place is not None and step is walk.steps[walk.next_place]
        return step.generation > 0 or (is_next and bool(step.request))
    return step.generation > 0 or answer.doubted or answer.is_half or answer.outcome in MAYBE_LAUNCHED

"""What the attempts that run cost: from what was launched and the prices of the admission, and from nothing that a node says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attendant.rounds import AGAIN_S, LATE_S
from contract import metrics, money
from contract.intents import Intent
from contract.jobs import Job, Rung
from contract.money import HOUR_S, NEAR_CAP_PERCENT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCost:
    """An attempt whose nodes run."""

    job: str
    attempt: int
    hourly_usd: float | None
    """Of all nodes at most; None where the price is not known."""
    run_s: float
    """Since the attempt's walk began."""
    cap_usd: float | None = None
    usd: float | None = None
    """What all attempts have cost at most; None without a cap, and where a price is not known."""

    @property
    def share_percent(self) -> float | None:
        """Of the cap; None where there is none."""
        return None if self.usd is None or not self.cap_usd else 100 * self.usd / self.cap_usd


def running_cost(job: Job, attempt: int, walk: Intent, rung: Rung, *, now: float) -> RunningCost:
    """Returns what the attempt costs. `walk` launched it, on `rung`, and knows what the attempts before have cost of a job with a cap."""
    usd = None
    if job.max_cost_usd is not None:
        since = money.spent_usd(job, [walk], {}, now=now)
        usd = None if since is None else walk.spent_usd + since
    return RunningCost(
        job=job.id,
        attempt=attempt,
        hourly_usd=money.hourly_usd(job.nodes, rung),
        run_s=max(0.0, now - walk.started_at),
        cap_usd=job.max_cost_usd,
        usd=usd,
    )


def figures(costs: Iterable[RunningCost]) -> dict[str, float]:
    """Returns the values of the metrics by their names, without those for which nothing is known."""
    known = list(costs)
    shares = [one.share_percent for one in known if one.share_percent is not None]
    hourly = [one.hourly_usd for one in known if one.hourly_usd is not None]
    return {
        **({metrics.COST_SHARE: max(shares)} if shares else {}),
        **({metrics.RUNNING_USD: sum(hourly)} if hourly else {}),
    }


def is_near_cap(cost: RunningCost, gaps_s: Sequence[float]) -> bool:
    """Whether a line about it is due at this look: once when the job comes near its cap or a new attempt begins there, then once in
    AGAIN_S. What was said before is not remembered: a line is due where its moment lies between the last pass and this one (`gaps_s`:
    seconds between the passes, the newest first)."""
    if cost.cap_usd is None or cost.usd is None or not cost.hourly_usd:
        return False
    over_s = (cost.usd - cost.cap_usd * NEAR_CAP_PERCENT / 100) / cost.hourly_usd * HOUR_S
    if over_s <= 0:
        return False
    since_s = gaps_s[0] + LATE_S if gaps_s else cost.run_s
    return cost.run_s <= since_s or over_s // AGAIN_S != (over_s - since_s) // AGAIN_S

"""How old the newest checkpoint of an attempt that trains is, and what a commit takes: from the reports of its nodes alone.

Nothing is stored, so a look that comes twice or late sees the same. Nodes measure durations by their monotonic clocks, and the age of a
report is by AWS's clock: no wrong date on a machine moves a figure. A node may report what it likes of its own job, so no figure is
longer than the attempt is old.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attendant.facts import AttemptFacts
from attendant.rounds import AGAIN_S, LATE_S
from contract import metrics
from contract.environments import CheckpointLimits
from contract.reports import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAge:
    """What the reports say of the newest checkpoint of one attempt. Durations are in seconds."""

    job: str
    attempt: int
    every_s: float
    """The job's interval: its checkpoint_minutes."""
    age_s: float
    """Since the newest set was closed; before the first one, since the last node began to train."""
    step: int
    """Of that set, 0 where it has none; -1 before the first."""
    commit_s: float
    """What the newest commit took of the rank that needed longest; 0 before the first."""

    @property
    def age_percent(self) -> float:
        return 100 * self.age_s / self.every_s

    @property
    def commit_percent(self) -> float:
        return 100 * self.commit_s / self.every_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    """A line for the log about one job: what is wrong, and what to do."""

    what: str
    todo: str


OLD = Warn(
    what="the newest checkpoint is old",
    todo="Search the job's log for `set ... is missed` and `not committed`, which say why; if it has neither, the trainer saves less often "
    "than every checkpoint_minutes, or not at all. A recovery would repeat all training since that checkpoint.",
)
SLOW = Warn(
    what="a commit takes long",
    todo="The log of each rank says how many bytes its commits send, and in how many seconds. Save fewer bytes, save less often "
    "(checkpoint_minutes), or take an instance type with more network bandwidth.",
)


def checkpoint_age(facts: AttemptFacts, *, now: float) -> CheckpointAge | None:
    """Returns None where the attempt does not train: until its last node has begun, from the first one on that has ended or was ordered to,
    and where the agents are of a version that does not measure. None of a workbench: a person saves when they like. Of a job with roles,
    the nodes that decide train."""
    training = [facts.nodes[rank] for rank in facts.deciding if rank in facts.nodes]
    reports = [node.report for node in training]
    if len(training) < len(facts.deciding) or facts.obeyed is not None or facts.job.workbench is not None:
        return None
    if any(one.phase is not Phase.TRAINING or one.outcome is not None for one in reports):
        return None
    step, age_s = newest_set(facts)
    if step < 0:
        age_s = min(node.phase_s for node in training)
    if age_s is None:
        return None
    most_s = max(0.0, now - facts.launched_at)
    return CheckpointAge(
        job=facts.job.id,
        attempt=facts.attempt,
        every_s=facts.job.checkpoint_minutes * 60,
        age_s=_within(age_s, most_s),
        step=step,
        commit_s=_within(max(one.commit_s for one in reports), most_s),
    )


def newest_set(facts: AttemptFacts) -> tuple[int, float | None]:
    """Returns the step of the newest closed set, -1 before the first, and how many seconds ago it was closed, None where no node says."""
    step = max((node.report.closed_step for node in facts.nodes.values()), default=-1)
    # Of those that know it, the first one: the others learn of it with their next answer.
    knowing = [node.closed_s for node in facts.nodes.values() if node.report.closed_step == step >= 0]
    return step, max((one for one in knowing if one is not None), default=None)


def figures(ages: Iterable[CheckpointAge]) -> dict[str, float]:
    """Returns the longest of all attempts that train, by the names of their metrics; empty where none trains."""
    known = list(ages)
    if not known:
        return {}
    return {
        metrics.CHECKPOINT_AGE: max(one.age_percent for one in known),
        metrics.COMMIT_SECONDS: max(one.commit_s for one in known),
        metrics.COMMIT_SHARE: max(one.commit_percent for one in known),
    }


def warnings(age: CheckpointAge, limits: CheckpointLimits, gaps_s: Sequence[float]) -> list[Warn]:
    """Returns the lines that are due at this look: once when a checkpoint becomes too old, then once in AGAIN_S or an interval, whichever
    is longer; of a commit, once a set. `gaps_s`: seconds between the passes, the newest first.

    What was said before is not remembered: a line is due where its moment lies between the last pass and this one.
    """
    since_s = gaps_s[0] + LATE_S if gaps_s else age.age_s
    due = []
    if (over_s := age.age_s - limits.oldest * age.every_s) > 0:
        again_s = max(AGAIN_S, age.every_s)
        if over_s // again_s != (over_s - since_s) // again_s:
            due.append(OLD)
    if age.commit_s > limits.longest_commit * age.every_s and age.age_s <= since_s:
        due.append(SLOW)
    return due


def _within(reported_s: float, most_s: float) -> float:
    return min(max(0.0, reported_s), most_s)

"""Decides which security group the nodes of an attempt get: one that no other job has, as long as there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aws.facts import Instance
from contract.errors import InvalidRequest
from contract.groups import Taken

TERMINATED = "terminated"
"""Only then has an instance certainly lost its network; one that shuts down may still run its code."""
NAMED = 3
"""Of the jobs that share a group, as many are named in messages; of many attempts, all names would not fit the execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a region's security groups."""

    region: str
    pool: tuple[str, ...]
    taken: tuple[Taken, ...]
    over: frozenset[tuple[str, int]]
    """Jobs and attempts that are closed, and of which no instance can appear any more."""
    instances: tuple[Instance, ...]
    """Every instance of the deployment that EC2 shows there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The group of an attempt, and what is taken with it."""

    group: str
    shared_with: tuple[str, ...]
    """Other jobs that have it too; empty as long as the pool suffices."""
    reason: str
    taken: tuple[Taken, ...]


def choose(job: str, attempt: int, facts: Facts, *, until: float, now: float) -> Choice:
    """Chooses a group that no other job has, the job's own one first. Only where every group is in use it is one that others have too:
    the one with the fewest of them.

    Raises InvalidRequest where the region has no group at all.
    """
    if not facts.pool:
        raise InvalidRequest(f"{facts.region} names no security group; deploy its stack again, and start a new job")
    alive = find_running(facts.instances)
    kept = tuple(one for one in facts.taken if runs(one, alive) or is_kept(one, facts, now=now))
    having = {group: _having(group, kept, facts.instances) for group in facts.pool}
    others = {group: jobs - {job} for group, jobs in having.items()}
    fewest = min(map(len, others.values()))
    best = [group for group in facts.pool if len(others[group]) == fewest]
    best = [group for group in best if job in having[group]] or best
    group = best[sum(job.encode(), attempt) % len(best)]
    shared_with = tuple(sorted(others[group]))
    reason = describe_reach(group, shared_with, region=facts.region, groups=len(facts.pool))
    mine = Taken(group=group, job=job, attempt=attempt, until=until)
    return Choice(group=group, shared_with=shared_with, reason=reason, taken=_with(mine, kept))


def _with(mine: Taken, kept: Iterable[Taken]) -> tuple[Taken, ...]:
    """Adds `mine`, in the place of what the job took of the same group before. A launcher that comes late takes nothing from a later
    attempt, and another group that the job has stays its own until that attempt is over: a walk may still use it."""
    before = [one for one in kept if (one.group, one.job) == (mine.group, mine.job)]
    newest = max((*before, mine), key=lambda one: one.attempt)
    rest = (one for one in kept if one not in before)
    return tuple(sorted((*rest, newest), key=lambda one: (one.group, one.job)))


def find_running(instances: Iterable[Instance]) -> dict[str, int]:
    """Returns the lowest attempt by job of the instances that have not terminated."""
    found = dict[str, int]()
    for one in _alive(instances):
        found[one.job] = min(one.attempt, found.get(one.job, one.attempt))
    return found


def runs(one: Taken, alive: Mapping[str, int]) -> bool:
    """Whether an instance runs that may use what the job took; `alive` as `find_running` returns it."""
    return alive.get(one.job, one.attempt + 1) <= one.attempt


def is_kept(one: Taken, facts: Facts, *, now: float) -> bool:
    """Whether a job of which nothing runs may still use what it took: it may, unless it is proven that no instance of it can appear."""
    return (one.job, one.attempt) not in facts.over and now < one.until


def describe_reach(group: str, shared_with: Sequence[str], *, region: str, groups: int) -> str:
    """Words in a sentence whom the nodes can reach."""
    if not shared_with:
        return f"{group}: no other job has this security group"
    return (
        f"{group}: shared with {', '.join(shorten_jobs(shared_with))}, because all security groups of {region} ({groups}) were in use; "
        "nodes of jobs that share one can reach each other"
    )


def shorten_jobs(jobs: Sequence[str]) -> list[str]:
    """Returns the first few, and how many more there are."""
    more = [f"{len(jobs) - NAMED} more"] if len(jobs) > NAMED else []
    return [*jobs[:NAMED], *more]


def _having(group: str, taken: Iterable[Taken], instances: Iterable[Instance]) -> set[str]:
    """Jobs that have the group. An instance without a job stands for itself: it belongs to no known job."""
    using = {one.job or one.id for one in _alive(instances) if group in one.security_groups}
    return using | {one.job for one in taken if one.group == group}


def _alive(instances: Iterable[Instance]) -> list[Instance]:
    return [one for one in instances if one.state != TERMINATED]

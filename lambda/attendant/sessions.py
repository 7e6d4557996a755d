"""Gives the nodes of an attempt keys for their job, and new ones long before those expire."""

from __future__ import annotations

from aws import breaker
from aws.state import State
from aws.sts import job_session
from contract.jobs import Job
from contract.sessions import LASTS_S

RENEWED_S = LASTS_S / 2
"""Keys are renewed once they are valid for less than this: so long may STS, the table or the attendant be away."""


def is_due(until: float, now: float) -> bool:
    """Whether keys that are valid until then (0 where there are none) have to be renewed."""
    return until - now < RENEWED_S


def renew(
    state: State, job: Job, attempt: int, *, instances: tuple[str, ...], node_role: str, job_role: str, now: float
) -> bool:
    """Gives every node new keys if it is time; whether it was. May run twice at once: nodes then have the keys of either."""
    if not is_due(state.session_until(job.id, attempt), now):
        return False
    # STS that does not answer must not hold up the looks at all jobs: the next look asks again.
    keys = breaker.asked("STS", lambda: job_session(job_role, job, attempt))
    state.give_keys(job, attempt, node_role, instances, keys)
    return True

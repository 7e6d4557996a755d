"""Gives the nodes of an attempt keys for their job, and new ones long before those expire."""

from __future__ import annotations

from aws import breaker
from aws.facts import Keyed
from aws.state import State
from aws.sts import job_session
from contract.jobs import Job
from contract.sessions import LASTS_S

RENEWED_S = LASTS_S / 2
"""Keys are renewed once they are valid for less than this: so long may STS, the table or the attendant be away."""


def is_due(keyed: Keyed | None, now: float) -> bool:
    """Whether these keys have to be renewed; None where there are none."""
    return keyed is None or keyed.until - now < RENEWED_S


def renew(
    state: State,
    job: Job,
    attempt: int,
    keyed: Keyed | None,
    *,
    instances: tuple[str, ...],
    node_role: str,
    job_role: str,
    now: float,
) -> bool:
    """Gives every node new keys if it is time; whether it was. May run twice at once: nodes then have the keys of either."""
    if not is_due(keyed, now):
        return False
    # STS that does not answer must not hold up the looks at all jobs: the next look asks again.
    keys = breaker.asked("STS", lambda: job_session(job_role, job, attempt))
    state.give_keys(job, attempt, node_role, instances, keys, since=keyed.since if keyed else now)
    return True

"""Gives the nodes of an attempt keys for their job and for its training, and new ones long before they expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import breaker
from aws.state import State
from aws.sts import RoleDenied, job_session, training_session
from contract.intents import of_every_attempt, ran_in
from contract.jobs import Job
from contract.sessions import LASTS_S, AttemptSessions, Credentials, SessionCredentials

logger = Logger(service="attendant")
RENEWED_S = LASTS_S / 2
"""Keys are renewed once they are valid for less than this: so long may STS, the table or the attendant be away."""
STS = "STS"
"""STS's name in the breaker: one that does not answer must not hold up the looks at all jobs. The next look asks again."""

NO_NAME = "nothing: it was not asked, because job_roles in cdk.json no longer has the name"
"""Stands for what STS says."""


def is_due(until: float, now: float) -> bool:
    """Whether keys that are valid until then (0 where there are none) have to be renewed."""
    return until - now < RENEWED_S


def renew(
    state: State,
    job: Job,
    attempt: int,
    known: AttemptSessions,
    *,
    instances: tuple[str, ...],
    node_role: str,
    job_role: str,
    training_roles: Mapping[str, str],
    now: float,
) -> bool:
    """Gives every node new keys if it is time; whether it was. May run twice at once: nodes then have the keys of either.

    Both kinds are begun together, because a node has them in one item. One that STS denies the training is noted for the verdict, and
    keeps nobody from the keys of the job.
    """
    due = is_due(known.until, now)
    if not due and (not job.job_role or not is_due(known.training_until, now)):
        return False
    training, seen = _for_training(job, attempt, known, training_roles, now) if job.job_role else (None, known)
    if not due and training is None:
        if seen != known:
            state.note_sessions(job, attempt, seen)
        return False
    own = breaker.ask_region(STS, lambda: job_session(job_role, job, attempt))
    keys = SessionCredentials(
        **asdict(own),
        training=training,
        refusal=seen.refusal,
        ran_in=_ran_in(state, job, attempt) if attempt > 1 else (),
    )
    state.give_credentials(node_role, instances, keys)
    # Last: whoever finds it finds every copy there.
    state.note_sessions(job, attempt, replace(seen, since=known.since or now, until=own.expires))
    return True


def _ran_in(state: State, job: Job, attempt: int) -> tuple[str, ...]:
    """Returns the regions in which earlier attempts ran, sorted; none, if the launch of one of them is not known. Nodes then ask the bucket
    of every region: one that nobody asks might have the newest checkpoint."""
    launched = [walk for walk in state.walks(job.id) if walk.attempt < attempt and walk.launched]
    return tuple(sorted(ran_in(launched))) if of_every_attempt(launched, attempt - 1) else ()


def _for_training(
    job: Job, attempt: int, known: AttemptSessions, training_roles: Mapping[str, str], now: float
) -> tuple[Credentials | None, AttemptSessions]:
    """The keys, None where there are none, and what is known afterwards. No trouble with somebody else's role is one of the look."""
    role = training_roles.get(job.job_role, "")
    try:
        if not role:
            raise RoleDenied(NO_NAME)
        keys = breaker.ask_region(STS, lambda: training_session(role, job, attempt))
    except RoleDenied as problem:
        logger.warning(
            "the session for the training is denied", job=job.id, role=role or job.job_role, problem=str(problem)
        )
        seen = replace(
            known, refused_from=known.refused_from or now, refused_last=now, refusal=str(problem) or "AccessDenied"
        )
        return None, seen
    except (ClientError, BotoCoreError, breaker.Silent) as problem:  # proves nothing about the role
        logger.warning("no session for the training; the next look asks again", job=job.id, problem=str(problem))
        return None, known
    return keys, replace(known, training_until=keys.expires, refused_from=0.0, refused_last=0.0, refusal="")

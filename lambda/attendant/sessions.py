"""Gives the nodes of an attempt credentials for their job and for its training, and new ones long before they expire."""

from __future__ import annotations

from dataclasses import asdict, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant.facts import AttemptFacts
from aws import breaker
from aws.state import State
from aws.sts import SessionRefused, job_session, training_session
from contract.environments import AttendantEnvironment
from contract.intents import of_every_attempt, ran_in
from contract.jobs import Job
from contract.sessions import LASTS_S, AttemptSessions, Credentials, SessionCredentials, SessionTrial

logger = Logger(service="attendant")
RENEWED_S = LASTS_S / 2
"""Credentials are renewed once they are valid for less than this: so long may STS, the table or the attendant be away."""
STS = "STS"
"""STS's name in the breaker: one that does not answer must not hold up the looks at all jobs. The next look asks again."""

NO_NAME = "nothing: it was not asked, because job_roles in cdk.json no longer has the name"
"""Stands for what STS says."""


def is_due(until: float, now: float) -> bool:
    """Whether credentials that are valid until then (0 where there are none) have to be renewed."""
    return until - now < RENEWED_S


def renew_sessions(state: State, env: AttendantEnvironment, facts: AttemptFacts, *, now: float) -> bool:
    """Gives every node new credentials if it is time; returns whether it was. May run twice at once: nodes then have those of either.

    Both kinds are begun together, because a node has them in one item. A refusal of STS is noted for the verdict. Where STS
    refuses the training's session, the nodes still get the job's. Where it refuses the job's, this raises SessionRefused: the deployment
    or the account is at fault, and an error of the function rings the attendant's alarm.
    """
    job, attempt, known = facts.job, facts.attempt, facts.sessions
    is_job_due = is_due(known.until, now)
    if not is_job_due and (not job.job_role or not is_due(known.training_until, now)):
        return False
    training, seen = _begin_training_session(facts, now) if job.job_role else (None, known)
    if not is_job_due and training is None:
        if seen != known:
            state.note_sessions(job, attempt, seen)
        return False
    try:
        own = breaker.ask_region(STS, lambda: job_session(env.job_role, job, attempt))
    except SessionRefused as problem:
        since = seen.own_refused_from or now
        state.note_sessions(
            job, attempt, replace(seen, own_refused_from=since, own_refused_last=now, own_refusal=str(problem))
        )
        raise
    credentials = SessionCredentials(
        **asdict(own),
        training=training,
        refusal=seen.refusal,
        ran_in=list_regions(state, job, attempt) if attempt > 1 else (),
        addresses=facts.addresses,
    )
    state.give_credentials(env.node_role, facts.ids, credentials)
    # Last: whoever finds it finds every copy there.
    given = replace(seen, since=known.since or now, until=own.expires)
    state.note_sessions(job, attempt, replace(given, own_refused_from=0.0, own_refused_last=0.0, own_refusal=""))
    return True


def try_sessions(env: AttendantEnvironment, job: Job) -> SessionTrial:
    """Begins the sessions of the job's first attempt and drops them, so that Admit knows before a launch what STS would refuse."""
    role = env.training_roles.get(job.job_role, "")
    try:
        job_session(env.job_role, job, 1)
    except SessionRefused as problem:
        return SessionTrial(refused=env.job_role, said=str(problem), is_own=True, is_denied=problem.is_denied)
    if not job.job_role:
        return SessionTrial()
    try:
        if not role:
            raise SessionRefused(NO_NAME)
        training_session(role, job, 1)
    except SessionRefused as problem:
        return SessionTrial(refused=role or job.job_role, said=str(problem), is_denied=problem.is_denied)
    return SessionTrial()


def list_regions(state: State, job: Job, attempt: int) -> tuple[str, ...]:
    """Returns the regions in which earlier attempts ran, sorted; none, if the launch of one of them is not known. Nodes then ask the bucket
    of every region: one that no node asks might have the newest checkpoint."""
    launched = [walk for walk in state.walks(job.id) if walk.attempt < attempt and (walk.launched or walk.half)]
    return tuple(sorted(ran_in(launched))) if of_every_attempt(launched, attempt - 1) else ()


def _begin_training_session(facts: AttemptFacts, now: float) -> tuple[Credentials | None, AttemptSessions]:
    """Returns the training's credentials, None where there are none, and what is known afterwards. Trouble with a role that other people
    wrote does not fail the look."""
    job, known, role = facts.job, facts.sessions, facts.training_role
    try:
        if not role:
            raise SessionRefused(NO_NAME)
        credentials = breaker.ask_region(STS, lambda: training_session(role, job, facts.attempt))
    except SessionRefused as problem:
        logger.warning(
            "STS denies the session of the training", job=job.id, role=role or job.job_role, problem=str(problem)
        )
        seen = replace(known, refused_from=known.refused_from or now, refused_last=now, refusal=str(problem))
        return None, seen
    except (ClientError, BotoCoreError, breaker.Silent) as problem:  # proves nothing about the role
        logger.warning("no session for the training; the next look asks again", job=job.id, problem=str(problem))
        return None, known
    return credentials, replace(
        known, training_until=credentials.expires, refused_from=0.0, refused_last=0.0, refusal=""
    )

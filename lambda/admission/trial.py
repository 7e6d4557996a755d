"""Has the attendant begin the sessions that a job needs, and ends the admission where STS refuses one: before anything costs money."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from contract.codec import compact
from contract.environments import AdmissionEnvironment
from contract.errors import RoleRefused
from contract.jobs import Job
from contract.sessions import SessionTrial, explain_denial
from job_checks.facts import Execution
from refusals.wording import plain, refusal

MOST_WORDS = 500
"""Characters that are shown of what STS says."""
Invoke = Callable[[str, Mapping[str, Any]], Any]
"""Returns a function's answer to an event."""


class SessionPending(Exception):
    """STS denies a session, which IAM's late knowledge of a new role may explain: Admit is tried again."""


def try_sessions(
    job: Job, execution: Execution, env: AdmissionEnvironment, invoke: Invoke, *, now: float, waits: bool
) -> None:
    """Raises RoleRefused where STS denies a session of the job, InvalidRequest where the job asks for more than a session can have, and
    SessionPending as long as a denial may pass and the caller `waits`. The trust policies of roles name the attendant's role alone, so
    Admit cannot ask STS itself."""
    trial = SessionTrial(**invoke(env.attendant, {"action": "try", "job": compact(job).decode()}))
    if not trial.refused:
        return
    said = plain(trial.said, MOST_WORDS)
    if not trial.is_denied:
        raise refusal(
            [
                f"secrets: STS takes no session that names all secrets, image and mounts of the job ({said}); allowed: fewer secrets "
                "(one may hold several values as JSON), shorter names, or fewer mounts"
            ]
        )
    waited_s = now - execution.started_at
    if waits and waited_s < env.timing.role_patience_s:
        raise SessionPending(f"STS denies a session of {trial.refused}: {said}")
    field = "request" if trial.is_own else f"job_role (job_roles.{job.job_role} in cdk.json)"
    advice = explain_denial(env.deployment, "" if trial.is_own else job.job_role)
    raise RoleRefused(
        f"Nothing was started. {field}: STS denies a session of {trial.refused}, and did so {waited_s:.0f} s after the execution began "
        f"(a new role takes up to {env.timing.role_patience_s:.0f} s, by role_patience_s). {advice} STS says: {said}"
    )

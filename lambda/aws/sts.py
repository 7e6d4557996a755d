"""The one STS call of the functions: a session of the job role, for one job."""

from __future__ import annotations

from aws.clients import IN_PASSING, client
from contract import sessions
from contract.jobs import Job
from contract.sessions import SessionKeys


def job_session(role: str, job: Job, attempt: int) -> SessionKeys:
    """Keys for everything of the job, and for nothing of another; `role` is the job role's ARN."""
    found = client("sts", None, IN_PASSING).assume_role(
        RoleArn=role,
        RoleSessionName=sessions.name(job.id, attempt),
        DurationSeconds=sessions.LASTS_S,
        Tags=[{"Key": sessions.TAG, "Value": job.id}],
        Policy=sessions.policy(job.secrets.values()),
    )["Credentials"]
    return SessionKeys(
        access_key=found["AccessKeyId"],
        secret_key=found["SecretAccessKey"],
        token=found["SessionToken"],
        expires=found["Expiration"].timestamp(),
    )

"""The one STS call of the functions: sessions for one job, of the job role and of the role that its request names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import IN_PASSING, client
from contract import sessions
from contract.aws_errors import code_of
from contract.jobs import Job
from contract.sessions import Credentials

if TYPE_CHECKING:
    from types_boto3_sts.type_defs import TagTypeDef

DENIED = "AccessDenied"
"""STS's answer where the role's trust policy, or our own policy, does not allow it, and where there is no such role."""
MOST_WORDS = 500
"""Characters that are kept of what STS says."""


class RoleDenied(Exception):
    """STS denies the session; the message is what it says. A throttle, an outage and an error of our own keys are none."""


def job_session(role: str, job: Job, attempt: int) -> Credentials:
    """Keys for everything of the job, and for nothing of another but the checkpoints that it begins with; `role` is the job role's ARN."""
    source = [{"Key": sessions.SOURCE_TAG, "Value": job.resume.job}] if job.resume else []
    _, partition, _, _, account, *_ = job.execution.split(":")
    pulled = job.container.arns(partition) if job.container else ()
    own = sessions.policy(job.secrets.values(), pulled, job.mounted, partition=partition, account=account)
    return _session(role, job, attempt, source, Policy=own)


def training_session(role: str, job: Job, attempt: int) -> Credentials:
    """Keys of a role that other people wrote, with all its rights; `role` is its ARN. Raises RoleDenied."""
    try:
        return _session(role, job, attempt)
    except ClientError as problem:
        if code_of(problem) != DENIED:
            raise
        said = str(problem.response["Error"].get("Message", ""))
        raise RoleDenied(said[:MOST_WORDS]) from None


def _session(role: str, job: Job, attempt: int, tags: Sequence[TagTypeDef] = (), **further: Any) -> Credentials:
    found = client("sts", None, IN_PASSING).assume_role(
        RoleArn=role,
        RoleSessionName=sessions.name(job.id, attempt),
        DurationSeconds=sessions.LASTS_S,
        Tags=[{"Key": sessions.TAG, "Value": job.id}, *tags],
        **further,
    )["Credentials"]
    return Credentials(
        access_key=found["AccessKeyId"],
        secret_key=found["SecretAccessKey"],
        token=found["SessionToken"],
        expires=found["Expiration"].timestamp(),
    )

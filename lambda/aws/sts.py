"""The one STS call of the functions: sessions for one job, of the job role and of the role that its request names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import IN_PASSING, client
from contract import sessions
from contract.aws_errors import code_of
from contract.jobs import Job
from contract.sessions import Credentials
from contract.shapes import list_containers
from contract.text import one_line

if TYPE_CHECKING:
    from types_boto3_sts.type_defs import TagTypeDef

DENIED = frozenset({"AccessDenied", "RegionDisabledException"})
"""STS's answers where the role's trust policy, our own policy or one of the organization does not allow it, where there is no such role,
and where STS is switched off in the region. Time, or an administrator, may change them."""
TOO_MUCH = frozenset({"PackedPolicyTooLarge", "MalformedPolicyDocument", "ValidationError"})
"""STS's answers to a session policy, tags or a name that it does not take: the same again gets the same."""
MOST_WORDS = 500
"""Characters that are kept of what STS says."""


class SessionRefused(Exception):
    """STS refuses the session; the message is what it says. A throttle, an outage and an error of our own keys are none."""

    def __init__(self, said: str, *, is_denied: bool = True) -> None:
        super().__init__(said)
        self.is_denied = is_denied
        """Whether it is one of DENIED, and not of TOO_MUCH."""


def job_session(role: str, job: Job, attempt: int) -> Credentials:
    """Keys for everything of the job, and for nothing of another but the checkpoints that it begins with; `role` is the job role's ARN.
    Raises SessionRefused."""
    source = [{"Key": sessions.SOURCE_TAG, "Value": job.resume.job}] if job.resume else []
    _, partition, _, _, account, *_ = job.execution.split(":")
    pulled = dict.fromkeys(arn for one in list_containers(job) for arn in one.arns(partition))
    own = sessions.policy(job.secrets.values(), pulled, job.mounted, partition=partition, account=account)
    with _refusals(DENIED | TOO_MUCH):
        return _session(role, job, attempt, source, Policy=own)


def training_session(role: str, job: Job, attempt: int) -> Credentials:
    """Keys of a role that other people wrote, with all its rights; `role` is its ARN. Raises SessionRefused."""
    with _refusals(DENIED):
        return _session(role, job, attempt)


@contextmanager
def _refusals(codes: Collection[str]) -> Iterator[None]:
    """Turns STS's errors with one of these codes into SessionRefused."""
    try:
        yield
    except ClientError as problem:
        if (code := code_of(problem)) not in codes:
            raise
        said = str(problem.response["Error"].get("Message", "")) or code
        raise SessionRefused(one_line(said, MOST_WORDS), is_denied=code in DENIED) from None


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

"""Sessions of a job: what their credentials are, and what one of the job role may do beside what the role may do for every job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from contract import mounts, names
from contract.mounts import JobMount

TAG = "job"
"""Session tag that names the job. The job role's policy lets a session touch what has this name in its key, and nothing else; policies of
roles that trainings get (`job_role`) may use it too."""
SOURCE_TAG = "resumes"
"""Session tag that names the other job from whose checkpoint the job begins: the session may read that job's checkpoints. Sessions of
roles that trainings get never have it."""
LASTS_S = 3600
"""Seconds for which credentials are valid: the most that AWS allows for a role that another role assumes."""
MOST_POLICY = 2048
"""Characters of a session's own policy, at most (AssumeRole)."""
_WHOLE_ARN = re.compile(r"-[A-Za-z0-9]{6}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of one session."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(repr=False)
    expires: float
    """UTC epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCredentials(Credentials):
    """Credentials of a session of the job role, as nodes read them from their own partition of the table of state."""

    training: Credentials | None = None
    """Credentials for the training itself, of the role that the request names. None where it names none, or where there are no new ones:
    the training then goes on with those that it has."""
    refusal: str = ""
    """Why there are no new credentials for the training, in words for a person."""
    ran_in: tuple[str, ...] = ()
    """Regions in which earlier attempts ran, and may have left checkpoints. Empty where that is not known."""
    addresses: tuple[str, ...] = ()
    """Private addresses of the attempt's nodes by rank; empty where their launch does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSessions:
    """What the attendant keeps in mind of an attempt's sessions. Times are UTC epoch seconds."""

    since: float = 0.0
    """When the attempt's nodes got their first credentials of the job, which they need to begin and to report; 0 if they never had any."""
    until: float = 0.0
    """Until when the credentials of the job are valid that the nodes have; 0 where they have none."""
    training_until: float = 0.0
    """The same for the credentials of the role that the request names."""
    refused_from: float = 0.0
    """Since when STS denies the session of that role; 0 where it does not."""
    refused_last: float = 0.0
    """When STS denied it last."""
    refusal: str = ""
    """What STS said then."""
    own_refused_from: float = 0.0
    """Since when STS refuses the job's own session; 0 where it does not."""
    own_refused_last: float = 0.0
    """When STS refused it last."""
    own_refusal: str = ""
    """What STS said then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTrial:
    """How STS answers the sessions that a job would need, before anything of it runs."""

    refused: str = ""
    """The role that STS refuses, by its ARN, or by its name where the settings no longer have it; empty where STS refuses none."""
    said: str = ""
    """What STS said."""
    is_own: bool = False
    """Whether it is the deployment's own role of jobs, and not the one that the request names as `job_role`."""
    is_denied: bool = False
    """Whether an administrator, or time, can change the answer. Otherwise the job asks for more than a session can have."""


def policy(
    secrets: Iterable[str],
    repositories: Iterable[str] = (),
    mounted: Iterable[JobMount] = (),
    *,
    partition: str = "aws",
    account: str = "",
) -> str:
    """The session's own policy: everything that the role may do, but of secrets only those of the job, of images only those in the
    repositories of the job's own, and of file systems only those that the job mounts, all by their ARNs. `partition` and `account` are
    those of the file systems.

    Secrets Manager ends the ARN of a secret with a hyphen and six characters, which people may leave out.
    """
    named = sorted({arn if _WHOLE_ARN.search(arn) else f"{arn}-??????" for arn in secrets})
    pulled = sorted(set(repositories))
    read = "secretsmanager:GetSecretValue"
    statements: list[dict[str, object]] = [
        {"Effect": "Allow", "NotAction": [read, "ecr:*", *(f"{one}:*" for one in mounts.SERVICES)], "Resource": "*"}
    ]
    if named:
        statements.append({"Effect": "Allow", "Action": read, "Resource": named})
    if pulled:
        statements.append({"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"})
        statements.append(
            {"Effect": "Allow", "Action": ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"], "Resource": pulled}
        )
    statements += _mounting(mounted, partition, account)
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _mounting(mounted: Iterable[JobMount], partition: str, account: str) -> list[dict[str, object]]:
    """A statement for all file systems of which a session needs the same rights. One that the job also mounts to write may be written.

    Two names of the settings may be two access points of one file system: so a session is kept to those of its job, by their ids.
    """
    wanted = dict[tuple[tuple[str, ...], bool], tuple[set[str], set[str]]]()
    for one in mounted:
        point = one.file_system.access_point
        if actions := one.file_system.kind.actions(read_only=one.read_only):
            arns, points = wanted.setdefault((actions, bool(point)), (set(), set()))
            arns.add(one.arn(partition, account))
            points.add(f"*/{point}")
    return [
        {
            "Effect": "Allow",
            "Action": list(actions),
            "Resource": sorted(arns),
            **(_through(actions, points) if has_point else {}),
        }
        for (actions, has_point), (arns, points) in sorted(wanted.items())
    ]


def _through(actions: tuple[str, ...], points: Iterable[str]) -> dict[str, object]:
    """The condition that a file system is mounted through one of these access points."""
    service = actions[0].partition(":")[0]
    return {"Condition": {"StringLike": {f"{service}:AccessPointArn": sorted(points)}}}


def explain_denial(deployment: str, job_role: str = "") -> str:
    """Says what an administrator can do where STS denies sessions of the role that requests name `job_role`, or of the deployment's own
    role of jobs where that is empty."""
    caller = f"the role that the output {names.ATTENDANT_ROLE} of the stack {names.workflow_stack(deployment)} names"
    allow = f"to allow sts:AssumeRole and sts:TagSession to {caller}"
    if job_role:
        return (
            f"The role has to exist, and its trust policy has {allow} (docs/guides/job-roles.md has a policy to copy)."
        )
    return (
        f"The role is the deployment's own. Its trust policy has {allow}, as a deploy writes it, and so have the policies of the account's "
        "organization (service control policies)."
    )


def name(job: str, attempt: int) -> str:
    """Name of an attempt's sessions, which CloudTrail shows: at most 64 characters, so the end of a long job's name is missing."""
    end = f".{attempt}"
    return f"{job[: 64 - len(end)]}{end}"

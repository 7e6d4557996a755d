"""The job role: a session of it, tagged with a job, may use what belongs to that job, and nothing of another."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from contract import keys, names, sessions
from contract.keys import CommitKind
from stacks.parts import interfaces
from stacks.parts.right import Right, grant
from stacks.parts.rights import OF_THIS_ACCOUNT, Rights, arn_of, bucket_arn, objects_arn, within

JOB = f"${{aws:PrincipalTag/{sessions.TAG}}}"
"""Policy variable: the job that the session is tagged with. A statement with it allows nothing to a session without the tag."""
SOURCE = f"${{aws:PrincipalTag/{sessions.SOURCE_TAG}}}"
"""The same of the job from whose checkpoint this one begins; most sessions have no such tag."""
ROOT = f"{keys.JOBS}{JOB}/"
FROM = f"{keys.JOBS}{SOURCE}/"
KEPT = f"{keys.ENVIRONMENTS}{JOB}/"
WITH_JOB = {
    "StringLike": {f"aws:RequestTag/{sessions.TAG}": "?*"},
    "ForAllValues:StringEquals": {"aws:TagKeys": [sessions.TAG]},
}
"""Conditions of a session that begins with the tag, and with no other."""
WITH_SOURCE = {
    "StringLike": {f"aws:RequestTag/{sessions.TAG}": "?*"},
    "ForAllValues:StringEquals": {"aws:TagKeys": [sessions.TAG, sessions.SOURCE_TAG]},
}
"""The same for sessions that may name one more job, to read its checkpoints."""
WHY = "The policy variable stands for one job; its files come and go."
SECRETS = "The session's own policy names the job's secrets; this keeps to the deployment's path and regions."
METRICS = "Metrics are not resources; the condition names the one namespace."


class JobRole(iam.Role):
    """A session is begun by the attendant alone, which names the job; nodes cannot assume the role."""

    def __init__(
        self, scope: Construct, name: str, *, rights: Rights, begun_by: iam.IRole, further: Iterable[Right]
    ) -> None:
        """`further` are rights that belong to no job by themselves: the session's own policy keeps them to what the job names."""
        attendant = iam.ArnPrincipal(begun_by.role_arn).with_conditions(WITH_SOURCE)
        super().__init__(
            scope,
            name,
            role_name=names.job_role(rights.deployment, rights.home_region),
            assumed_by=interfaces.principal(iam.SessionTagsPrincipal(interfaces.principal(attendant))),
            description=f"Trainyard {rights.deployment}: what the nodes of a job may use of that job",
        )
        grant(self, *job(rights), *further)


def begin_sessions(rights: Rights, further: Iterable[str]) -> list[Right]:
    """Allows to begin sessions of the job role, and of the roles that requests may name, each for the job that its tag names."""
    actions, named = ["sts:AssumeRole", "sts:TagSession"], list(dict.fromkeys(further))
    return [
        Right("BeginSessionsForJobs", actions, [rights.job_role], conditions=WITH_SOURCE),
        *([Right("BeginSessionsForTrainings", actions, named, conditions=WITH_JOB)] if named else []),
    ]


def instance(rights: Rights) -> list[Right]:
    """What a node may do as an instance, whatever its job, beside its own items and data: fetch its agent. It has no right on EC2 or
    Step Functions."""
    return [rights.home("ReadAgents", ["s3:GetObject"], keys.ANY_AGENT)]


def job(rights: Rights) -> list[Right]:
    """What a session may do for the job that its tag names."""
    home, everywhere, here = (
        rights.home_bucket,
        rights.bytes_buckets,
        within(*sorted({rights.home_region, *rights.regions})),
    )
    group = f"log-group:{names.log_group(rights.deployment)}:log-stream:{JOB}/*"
    streams = arn_of("logs", rights.home_region, cdk.Aws.ACCOUNT_ID, group)
    # In their own namespace only: code on a node must not be able to silence an alarm of ours.
    namespace = {
        "cloudwatch:namespace": names.node_metrics(rights.deployment),
        "aws:RequestedRegion": rights.home_region,
    }
    listed = {"StringLike": {"s3:prefix": [f"{ROOT}*", f"{KEPT}*"]}} | OF_THIS_ACCOUNT
    kept = [f"{ROOT}{folder}/*" for folder in keys.BYTES_FOLDERS if folder != CommitKind.ARTIFACTS.value]
    return [
        Right(
            "ReadTheJob",
            ["s3:GetObject"],
            [objects_arn(home, f"{ROOT}job.json"), objects_arn(home, f"{ROOT}code/*")],
            WHY,
            OF_THIS_ACCOUNT,
        ),
        Right(
            "WriteAndReadCheckpoints",
            ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
            [objects_arn(everywhere, pattern) for pattern in kept],
            WHY,
            OF_THIS_ACCOUNT,
        ),
        *_began_with(everywhere),
        # A large file that changes while it is sent leaves parts behind.
        Right(
            "GiveUpUploads",
            ["s3:AbortMultipartUpload"],
            [
                objects_arn(everywhere, f"{place}*")
                for place in (*(f"{ROOT}{kind.value}/" for kind in CommitKind), KEPT)
            ],
            WHY,
            OF_THIS_ACCOUNT,
        ),
        # Of this job alone: what code of a job leaves in its environment runs in no other.
        Right(
            "KeepTheEnvironment",
            ["s3:GetObject", "s3:PutObject"],
            [objects_arn(everywhere, f"{KEPT}*")],
            WHY,
            OF_THIS_ACCOUNT,
        ),
        # Artifacts are for people: no node reads or deletes one.
        Right(
            "WriteArtifacts",
            ["s3:PutObject"],
            [objects_arn(everywhere, f"{ROOT}{CommitKind.ARTIFACTS.value}/*")],
            WHY,
            OF_THIS_ACCOUNT,
        ),
        Right(
            "ListTheJob",
            ["s3:ListBucket"],
            [bucket_arn(home), bucket_arn(everywhere)],
            "There is a bucket a region, of this account.",
            listed,
        ),
        Right("WriteTrainingLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [streams], WHY),
        Right("ReadSecrets", ["secretsmanager:GetSecretValue"], [rights.secret_arns], SECRETS, here),
        Right("PutMetrics", ["cloudwatch:PutMetricData"], ["*"], METRICS, {"StringEquals": namespace}),
    ]


def _began_with(buckets: str) -> list[Right]:
    """What a session may read of the other job from whose checkpoint its own begins. Statements of their own: a variable without a value
    makes the whole statement allow nothing."""
    folders = [f"{FROM}{CommitKind.CHECKPOINTS.value}/*", f"{FROM}commits/{CommitKind.CHECKPOINTS.value}/*"]
    listed = {"StringLike": {"s3:prefix": folders[1]}} | OF_THIS_ACCOUNT
    reason = "There is a bucket a region, of this account."
    return [
        Right(
            "ReadWhatItBeganWith",
            ["s3:GetObject"],
            [objects_arn(buckets, pattern) for pattern in folders],
            WHY,
            OF_THIS_ACCOUNT,
        ),
        Right("ListWhatItBeganWith", ["s3:ListBucket"], [bucket_arn(buckets)], reason, listed),
    ]

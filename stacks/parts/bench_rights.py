"""The way into a workbench by Session Manager: what nodes need for it, and what a person may who owns one."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from contract import names, tags
from contract.workbench import DOCUMENT
from stacks.parts.right import Right, offer
from stacks.parts.rights import Rights, arn_of, within

OWNERS = {"ByTag": "${aws:PrincipalTag/owner}", "ByName": "${aws:username}"}
"""Who owns a bench. Each has a statement of its own: IAM drops a statement with a variable that the caller does not have."""


def answer_sessions(rights: Rights) -> list[Right]:
    """Allows a node what the SSM agent on it needs for Session Manager, and nothing else of SSM (Systems Manager's user guide, "Verify or
    add instance permissions for Session Manager")."""
    channels = [f"ssmmessages:{verb}{kind}Channel" for kind in ("Control", "Data") for verb in ("Create", "Open")]
    every = arn_of("ec2", "*", cdk.Aws.ACCOUNT_ID, "instance/*")
    return [
        Right(
            "RegisterWithSessionManager",
            ["ssm:UpdateInstanceInformation"],
            [every],
            "Instances come and go; each registers itself.",
            _here(rights),
        ),
        Right("AnswerSessions", channels, ["*"], "Session Manager's channels have no ARN.", _here(rights)),
    ]


def bench_policy(scope: Construct, name: str, *, rights: Rights) -> iam.ManagedPolicy:
    """Returns the managed policy of people who have benches. It opens a port of a bench that carries the person's name or tag as its
    owner; it opens no shell, no other node and no other person's bench. Session Manager's plugin signs for its channel since 1.2.688."""
    return offer(
        scope,
        name,
        f"Open one's own workbenches of Trainyard {rights.deployment}, and nothing else",
        *(_open_own(rights, how, owner) for how, owner in OWNERS.items()),
        Right(
            "ByPortForwarding",
            ["ssm:StartSession"],
            [arn_of("ssm", "*", "", f"document/{DOCUMENT}")],
            "AWS's own document, in whatever region the bench runs.",
        ),
        Right(
            "OpenChannels",
            ["ssmmessages:OpenDataChannel"],
            ["*"],
            "Session Manager's channels have no ARN; each takes the token that StartSession returned to the person who began the session.",
            _here(rights),
        ),
        Right(
            "EndOwnSessions",
            ["ssm:ResumeSession", "ssm:TerminateSession"],
            [arn_of("ssm", "*", cdk.Aws.ACCOUNT_ID, "session/*")],
            "Sessions come and go; the condition requires that the person began them.",
            {"StringEquals": {"ssm:resourceTag/aws:ssmmessages:session-id": "${aws:userid}"}},
        ),
        managed_policy_name=names.bench_policy(rights.deployment, rights.home_region),
    )


def _open_own(rights: Rights, how: str, owner: str) -> Right:
    """Without the second condition IAM does not look at the document of a request that names none, and such a request opens a shell
    (Systems Manager's user guide, "Enforce a session document permission check")."""
    bench = {tags.DEPLOYMENT: rights.deployment, tags.WORKBENCH: "true", tags.OWNER: owner}
    return Right(
        f"OpenOwn{how}",
        ["ssm:StartSession"],
        [arn_of("ec2", "*", cdk.Aws.ACCOUNT_ID, "instance/*")],
        "Instances come and go; the conditions require the tags of a bench, and the person as its owner.",
        {
            "StringEquals": {f"ssm:resourceTag/{key}": value for key, value in bench.items()},
            "BoolIfExists": {"ssm:SessionDocumentAccessCheck": "true"},
        },
    )


def _here(rights: Rights) -> dict[str, dict[str, object]]:
    return within(*sorted(rights.regions))

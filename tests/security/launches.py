"""Which launches are denied: each differs from an allowed one in a single thing. Rows of the tables in test_rights.py."""

from __future__ import annotations

from collections.abc import Iterator

from contract import tags
from tests.security.asking import EC2, LAUNCHING, OURS, TAGGED, THEIRS, UNDER_OURS, UNDER_THEIRS, Ask
from tests.security.policies import ACCOUNT, REGION

IMAGE = f"arn:aws:ec2:{REGION}::image/ami-1"
OWNERS = [{"ec2:Owner": "amazon"}, {"ec2:Owner": ACCOUNT}]
SAFE: dict[str, dict[str, str]] = {
    "instance": TAGGED | UNDER_OURS | {"ec2:MetadataHttpTokens": "required"},
    "volume": TAGGED | {"ec2:Encrypted": "true"},
    "network-interface": TAGGED,
}
"""What IAM is told of the resources that a launch of ours makes."""
WRONG: dict[str, list[dict[str, str]]] = {
    "instance": [
        UNDER_THEIRS,
        {"ec2:InstanceProfile": f"arn:aws:iam::{ACCOUNT}:instance-profile/node-2"},
        {"ec2:MetadataHttpTokens": "optional"},
    ],
    "volume": [{"ec2:Encrypted": "false"}],
    "network-interface": [{"ec2:AssociatePublicIpAddress": "true"}],
}
EVERYWHERE = [
    {f"aws:RequestTag/{tags.DEPLOYMENT}": "other"},
    {f"aws:RequestTag/{tags.PROTECTED}": "for ever"},
    {f"aws:RequestTag/{tags.PROTECTED}": ""},
]


def _launches() -> Iterator[Ask]:
    """A safe launch with one thing changed, and with one thing left out."""
    for kind, context in SAFE.items():
        changed = [context | wrong for wrong in (*WRONG[kind], *EVERYWHERE)]
        less = [{key: value for key, value in context.items() if key != left} for left in context]
        yield from (Ask("Launcher", "ec2:RunInstances", f"{EC2}:{kind}/*", one) for one in (*changed, *less))


DENIED = [
    *_launches(),
    # What else a launch elsewhere needs is allowed: an instance is part of every launch.
    Ask("Launcher", "ec2:RunInstances", f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/*", SAFE["instance"]),
    Ask(
        "Launcher",
        "ec2:CreateTags",
        f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/i-1",
        OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]},
    ),
    *(
        Ask("Launcher", "ec2:RunInstances", IMAGE, owner)
        for owner in ({}, {"ec2:Owner": "999988887777"}, {"ec2:Owner": "aws-marketplace"}, {"ec2:Owner": "Amazon"})
    ),
    *(
        Ask(
            "Launcher",
            "ec2:CreateTags",
            f"{EC2}:{kind}/*",
            LAUNCHING | {f"aws:RequestTag/{tags.PROTECTED}": "for ever"},
        )
        for kind in (*SAFE, "spot-instances-request")
    ),
    Ask(
        "Launcher",
        "ec2:RunInstances",
        f"{EC2}:spot-instances-request/*",
        TAGGED | {f"aws:RequestTag/{tags.PROTECTED}": "for ever"},
    ),
    *(
        Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-1", context)
        for context in (OURS, OURS | UNDER_THEIRS, THEIRS | UNDER_OURS)
    ),
]

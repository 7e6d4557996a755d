"""Rights to launch instances, and to end them and what they leave behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk

from contract import names, tags
from stacks.parts.right import Right
from stacks.parts.rights import UNPROTECTED, Rights, arn_of, within

PROFILE = "ec2:InstanceProfile"
UNTAGGED = {f"aws:ResourceTag/{tags.DEPLOYMENT}": "true"}
NOT_BORN_PROTECTED = {f"aws:RequestTag/{tags.PROTECTED}": "true"}
"""For the operator Null: the request lacks this tag. Only a person protects something, and only something that exists."""
SPOT = "spot.amazonaws.com"
NEW = "What a launch makes has no id yet; the condition requires the deployment's tag on it."
KNOWN = "Their ids are known in their region alone; the condition requires the deployment's tag on each."


def launch(
    rights: Rights, *, instance_profile: str, image_owners: Sequence[str], subnets: Sequence[str] = ()
) -> list[Right]:
    """Allows launches as ours are: from an image of AWS, of this account or of `image_owners`, under our instance profile (an ARN),
    with IMDSv2, on encrypted volumes, without a public address, and never protected.

    A launch may leave out whether an interface has a public address, because EC2 rejects the parameter for several interfaces. Then the
    subnet decides: launches get into our subnets alone, and none of these gives public addresses. `subnets` are ARNs of those of the
    account's own networks that the settings name: they have no tag of ours, and the region check wants them private.

    RunInstances is authorised for every resource of the request: if one type is missing here, all launches fail. So our regions are
    named for the instance alone: with forty of them in every statement, the role had more policy than IAM takes.
    """
    return [
        _new(
            rights,
            "LaunchWithOurTags",
            "instance",
            {
                **_here(rights, {"ec2:MetadataHttpTokens": "required"}),
                "ArnEquals": {PROFILE: instance_profile},
            },
        ),
        _new(rights, "MakeEncryptedVolumes", "volume", {"Bool": {"ec2:Encrypted": "true"}}),
        _new(
            rights,
            "MakePrivateInterfaces",
            "network-interface",
            {"BoolIfExists": {"ec2:AssociatePublicIpAddress": "false"}},
        ),
        Right(
            "LaunchIntoOurNetwork",
            ["ec2:RunInstances"],
            _arns("subnet", "security-group", "launch-template", "placement-group", "capacity-reservation"),
            KNOWN,
            {"StringEquals": _ours(rights)},
        ),
        *([_into(subnets)] if subnets else []),
        Right(
            "LaunchFromImages",
            ["ec2:RunInstances"],
            # The ARN of an image has no account.
            [arn_of("ec2", "*", "", "image/*")],
            "The id behind a parameter changes, and Admit pins it; the condition names the owners of images.",
            {"StringEquals": {"ec2:Owner": [names.AWS_IMAGES, cdk.Aws.ACCOUNT_ID, *image_owners]}},
        ),
        Right(
            "TagWhileLaunching",
            ["ec2:CreateTags"],
            _arns("instance", "volume", "network-interface", "spot-instances-request"),
            NEW,
            {
                "StringEquals": {"ec2:CreateAction": "RunInstances"} | _tag_in_request(rights),
                "Null": NOT_BORN_PROTECTED,
            },
        ),
        Right(
            "TagTheMaster",
            ["ec2:CreateTags"],
            _arns("instance"),
            KNOWN,
            # Without the Null condition, ForAllValues is true for a request without keys.
            {
                **_here(rights, _ours(rights)),
                "ForAllValues:StringEquals": {"aws:TagKeys": list(tags.AFTER_LAUNCH)},
                "Null": {"aws:TagKeys": "false"},
            },
        ),
    ]


def _into(subnets: Sequence[str]) -> Right:
    """Allows launches into subnets by their ARNs, which leave the account open: a shared subnet belongs to the account that shares it."""
    return Right(
        "LaunchIntoSubnetsOfTheSettings", ["ec2:RunInstances"], subnets, "Each is named by its id, of whatever account."
    )


def launch_spot() -> list[Right]:
    """Allows spot launches beside `launch`. An account's first spot launch creates the role of AWS's spot service."""
    role = f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/{names.SPOT_ROLE}"
    return [
        Right(
            "RequestSpot",
            ["ec2:RunInstances"],
            _arns("spot-instances-request"),
            "A spot request has no id before the launch, and the instances that come of it carry our tag.",
            {"Null": NOT_BORN_PROTECTED},
        ),
        Right(
            "CreateTheSpotRole",
            ["iam:CreateServiceLinkedRole"],
            [role],
            conditions={"StringEquals": {"iam:AWSServiceName": SPOT}},
        ),
    ]


def terminate(rights: Rights, instance_profile: str) -> Right:
    """Allows to end instances of our regions that have our tag and our profile (an ARN). No right ends a protected instance."""
    return Right(
        "TerminateOurInstances",
        ["ec2:TerminateInstances"],
        _arns("instance"),
        "Instances come and go; the condition requires the deployment's tag and profile on each.",
        {**_here(rights, _ours(rights)), "ArnEquals": {PROFILE: instance_profile}, "Null": UNPROTECTED},
    )


def terminate_everywhere(rights: Rights, instance_profile: str) -> Right:
    """Allows the same in every region."""
    right = _end(rights, "TerminateOurInstances", "ec2:TerminateInstances", "instance")
    return Right(
        right.name,
        right.actions,
        right.resources,
        "Instances come and go, in regions that may have left the settings; the condition requires our tag and profile on each.",
        {**right.conditions, "ArnEquals": {PROFILE: instance_profile}},
    )


def terminate_under(instance_profile: str) -> Right:
    """Allows to end instances in every region that have this profile (an ARN) and no deployment's tag."""
    return Right(
        "TerminateUntaggedUnderOurProfile",
        ["ec2:TerminateInstances"],
        _arns("instance"),
        "Instances come and go, in regions that may have left the settings; the condition requires our profile and no tag.",
        {"ArnEquals": {PROFILE: instance_profile}, "Null": UNTAGGED | UNPROTECTED},
    )


def remove_leftovers(rights: Rights) -> list[Right]:
    """Allows to delete what our instances may leave behind, in every region."""
    return [
        _end(rights, "DeleteVolumes", "ec2:DeleteVolume", "volume"),
        _end(rights, "DeleteInterfaces", "ec2:DeleteNetworkInterface", "network-interface"),
        cancel_spot_requests(rights),
    ]


def cancel_spot_requests(rights: Rights) -> Right:
    """Allows to cancel our spot requests in every region, but for those that a person protects."""
    return _end(rights, "CancelSpotRequests", "ec2:CancelSpotInstanceRequests", "spot-instances-request")


def _new(rights: Rights, name: str, kind: str, wanted: Mapping[str, Mapping[str, object]]) -> Right:
    """Allows RunInstances to make resources of one kind, with our tag and as `wanted` says (conditions by operator)."""
    equal = _tag_in_request(rights) | dict(wanted.get("StringEquals", {}))
    return Right(
        name, ["ec2:RunInstances"], _arns(kind), NEW, {**wanted, "StringEquals": equal, "Null": NOT_BORN_PROTECTED}
    )


def _end(rights: Rights, name: str, action: str, kind: str) -> Right:
    reason = (
        "Such things come and go, in regions that may have left the settings; the condition requires our tag on each."
    )
    return Right(name, [action], _arns(kind), reason, {"StringEquals": _ours(rights), "Null": UNPROTECTED})


def _ours(rights: Rights) -> dict[str, object]:
    return {f"aws:ResourceTag/{tags.DEPLOYMENT}": rights.deployment}


def _tag_in_request(rights: Rights) -> dict[str, object]:
    return {f"aws:RequestTag/{tags.DEPLOYMENT}": rights.deployment}


def _here(rights: Rights, also: Mapping[str, object] | None = None) -> dict[str, Mapping[str, object]]:
    """Conditions that limit a request to our regions, and to `also`."""
    regions = within(*sorted({rights.home_region, *rights.regions}))
    return {"StringEquals": {**(also or {}), **regions["StringEquals"]}}


def _arns(*kinds: str) -> list[str]:
    """In every region: conditions limit the regions where a right does not reach them all."""
    return [arn_of("ec2", "*", cdk.Aws.ACCOUNT_ID, f"{kind}/*") for kind in kinds]

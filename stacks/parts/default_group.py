"""Closes the default security group of a network: CloudFormation can add rules to it, and takes none of AWS's own away."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from contract.environments import DefaultGroupEnvironment
from stacks.parts.custom_resource import add_custom_resource
from stacks.parts.function import Function, Layer
from stacks.parts.right import Right
from stacks.parts.rights import arn_of

CLOUDFORMATION_WAITS = cdk.Duration.minutes(5)


class ClosedDefaultGroup(Construct):
    """A function of ours and not that of the CDK's `restrictDefaultSecurityGroup`, which is in JavaScript, of a runtime that the CDK
    chooses, with a policy of its own: ours is tested, scanned and rehearsed like every other."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        vpc: ec2.Vpc,
        deployment: str,
        region: str,
        log_retention_days: int,
    ) -> None:
        super().__init__(scope, name)
        function = Function(
            scope,
            "DefaultGroup",
            package="default_group",
            description="Takes every rule out of the network's default security group",
            environment=DefaultGroupEnvironment(deployment=deployment, region=region),
            layer=Layer(self, "Libraries"),
            timeout=cdk.Duration.minutes(2),
            log_retention_days=log_retention_days,
            rights=close_group(vpc.vpc_default_security_group, region),
        )
        add_custom_resource(
            self,
            "Closed",
            kind="ClosedDefaultGroup",
            function_arn=function.function_arn,
            wait=CLOUDFORMATION_WAITS,
            properties={"Group": vpc.vpc_default_security_group},
            after=(function,),
        )


def close_group(group: str, region: str) -> list[Right]:
    """Allows to read the rules of security groups in a region, and to take those of this one away."""
    reason = (
        "A Describe call, which supports no resource-level permissions; the condition keeps it to the stack's region."
    )
    here = {"StringEquals": {"aws:RequestedRegion": region}}
    revoking = ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"]
    return [
        Right("DescribeSecurityGroups", ["ec2:DescribeSecurityGroups"], ["*"], reason, here),
        Right("CloseTheDefaultGroup", revoking, [arn_of("ec2", region, cdk.Aws.ACCOUNT_ID, f"security-group/{group}")]),
    ]

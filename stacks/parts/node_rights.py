"""The right on what nodes say beside their reports: the console output that EC2 keeps."""

from __future__ import annotations

import aws_cdk as cdk

from contract import tags
from stacks.parts.right import Right
from stacks.parts.rights import Rights


def read_consoles(rights: Rights) -> Right:
    """Allows to read the consoles of the deployment's instances, in its regions."""
    every = f"arn:{cdk.Aws.PARTITION}:ec2:*:{cdk.Aws.ACCOUNT_ID}:instance/*"
    reason = "Instances come and go; the condition requires the deployment's tag on each."
    conditions = {
        f"aws:ResourceTag/{tags.DEPLOYMENT}": rights.deployment,
        "aws:RequestedRegion": sorted({rights.home_region, *rights.regions}),
    }
    return Right("ReadConsoleOutput", ["ec2:GetConsoleOutput"], [every], reason, {"StringEquals": conditions})

"""Says how many zones of a region every account has, and looks their names up while the region is deployed."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from contract import names
from contract.environments import ZoneLookupEnvironment
from stacks.parts.custom_resource import add_custom_resource
from stacks.parts.function import Function, Layer
from stacks.parts.network import zones_of
from stacks.parts.right import Right

MORE = {"us-east-1": 6, "us-west-2": 4, "ap-northeast-2": 4}
"""Regions in which every account has more than three zones, by AWS's list of regions and zones in its guide to the global
infrastructure (https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html)."""
ELSEWHERE = 3
"""Zones of every other region, by the same list: newer accounts see three of the four in ap-northeast-1 too. us-west-1, where they see
two, is never looked up: the settings must name its zones."""
CLOUDFORMATION_WAITS = cdk.Duration.minutes(5)


def looked_up(region: str, cidr: str) -> int:
    """Returns the number of zones in which nodes run where the settings name none: all that every account has, and the network fits.

    It is a number in the template, because CloudFormation decides how many subnets exist before it asks any function.
    """
    return min(MORE.get(region, ELSEWHERE), zones_of(cidr))


class ZoneLookup(Construct):
    """`names` has `count` names, which CloudFormation learns at deploy. The answer stays the same while the resource exists."""

    def __init__(
        self, scope: Construct, name: str, *, deployment: str, region: str, count: int, log_retention_days: int
    ) -> None:
        super().__init__(scope, name)
        function = Function(
            scope,
            "ZoneLookup",
            package="zone_lookup",
            description="Looks up the availability zones of the region",
            environment=ZoneLookupEnvironment(deployment=deployment, region=region),
            layer=Layer(scope, "Libraries"),
            timeout=cdk.Duration.minutes(2),
            log_retention_days=log_retention_days,
            rights=[look_for_zones(region)],
        )
        zones = add_custom_resource(
            self,
            "Names",
            kind="Zones",
            function_arn=function.function_arn,
            wait=CLOUDFORMATION_WAITS,
            properties={"Count": count},
            after=(function,),
        )
        self.names = tuple(zones.get_att_string(names.zone_attribute(number)) for number in range(1, count + 1))


def look_for_zones(region: str) -> Right:
    reason = (
        "A Describe call, which supports no resource-level permissions; the condition keeps it to the stack's region."
    )
    here = {"StringEquals": {"aws:RequestedRegion": region}}
    return Right("DescribeZones", ["ec2:DescribeAvailabilityZones"], ["*"], reason, here)

"""Flow logs of a network: who spoke with whom, how much and whether it was let through; never what was said."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.parts.acknowledged import acknowledge
from stacks.parts.logs import log_group
from stacks.parts.right import Right, role

SUMMED_S = 600
"""One record for each flow of ten minutes, the longest that EC2 offers: training's few long flows are few records."""


class FlowLogs(Construct):
    """Accepted and rejected traffic, in a log group of the stack."""

    def __init__(self, scope: Construct, name: str, *, vpc: ec2.Vpc, log_retention_days: int) -> None:
        super().__init__(scope, name)
        log = log_group(self, "Log", days=log_retention_days)
        writing = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
        writer = role(
            self,
            "Role",
            "vpc-flow-logs.amazonaws.com",
            "Writes the flow logs of the network",
            Right("WriteFlowLogs", writing, [log.log_group_arn]),
        )
        flows = ec2.CfnFlowLog(
            self,
            "Flows",
            resource_id=vpc.vpc_id,
            resource_type="VPC",
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=log.log_group_name,
            deliver_logs_permission_arn=writer.role_arn,
            max_aggregation_interval=SUMMED_S,
        )
        flows.node.add_dependency(writer)
        acknowledge(flows, "The role's policy has to be there before EC2 tries to write.", "W3005")

"""A request as IAM sees it, and the names of what a deployment has in the account of these tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contract import keys, names, sessions, tags
from localaws.iam.simulator import Request
from stacks.settings import BLOCK, Settings
from tests.security.policies import ACCOUNT, REGION, role
from tools.synthesis import CONTEXT

HOME = f"arn:aws:s3:::{names.home_bucket('trainyard', ACCOUNT, REGION)}"
BYTES = f"arn:aws:s3:::{names.bytes_bucket('trainyard', ACCOUNT, REGION)}"
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
STATES = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine"
EXECUTIONS = f"arn:aws:states:{REGION}:{ACCOUNT}:execution"
SSM = f"arn:aws:ssm:{REGION}"
SECRETS = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret"
OURS = {f"aws:ResourceTag/{tags.DEPLOYMENT}": "trainyard"}
THEIRS = {f"aws:ResourceTag/{tags.DEPLOYMENT}": "other"}
PROTECTED = {f"aws:ResourceTag/{tags.PROTECTED}": "ann looks at it"}
TAGGED = {f"aws:RequestTag/{tags.DEPLOYMENT}": "trainyard"}
LAUNCHING = TAGGED | {"ec2:CreateAction": "RunInstances"}
NODE_ROLE = role("Node")
JOB_ROLE = f"arn:aws:iam::{ACCOUNT}:role/{names.job_role('trainyard', REGION)}"
SPOT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
NODES_LOG = names.log_group("trainyard")
ARM_IMAGE, X86_IMAGE = (Settings.parse(CONTEXT[BLOCK]).images[family] for family in ("arm64", "x86_64"))
JOB = keys.JobPrefix("resnet")
HERE = {"aws:RequestedRegion": REGION}
TAGGED_SESSION = {f"aws:PrincipalTag/{sessions.TAG}": "resnet"}
"""Of every session of the job role."""
OWN = {"aws:ResourceAccount": ACCOUNT}
"""Of every bucket but those that say otherwise."""


@dataclass(frozen=True)
class Ask:
    """A request as IAM sees it."""

    role: str
    action: str
    resource: str
    context: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.role} {self.action} {self.resource.split(':')[-1]} {sorted(map(str, self.context.values()))}"

    @property
    def request(self) -> Request:
        there = self.resource.split(":")[3] if self.resource.startswith("arn:") else ""
        context = (
            {"aws:RequestedRegion": there or REGION}
            | (OWN if self.action.startswith("s3:") else {})
            | (TAGGED_SESSION if self.role == "Job" else {})
            | dict(self.context)
        )
        return Request(principal=role(self.role), action=self.action, resource=self.resource, context=context)

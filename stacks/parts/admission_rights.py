"""What Admit may do: look things up, and write what a job is made of."""

from __future__ import annotations

from collections.abc import Iterable

from contract import keys
from stacks.parts import item_rights
from stacks.parts.agent import Agent
from stacks.parts.container_rights import ContainerRights
from stacks.parts.function import Function
from stacks.parts.git_rights import GitHosts
from stacks.parts.right import Right
from stacks.parts.rights import READ, Rights


def admit(
    rights: Rights,
    agent: Agent,
    containers: ContainerRights,
    git: GitHosts,
    session_function: Function,
    *,
    images: Iterable[str],
    data_buckets: tuple[str, ...],
) -> list[Right]:
    """Returns the rights of the admission. `session_function` tries the sessions of a job; `images` are names of the parameters that hold
    image ids."""
    return [
        # One statement: IAM takes 10,240 characters of a role's policies.
        rights.home("WriteJobsAndAgents", ["s3:GetObject", "s3:PutObject"], keys.ANY_DESCRIPTION, keys.ANY_AGENT),
        rights.home("CopyCode", ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], keys.ANY_CODE),
        rights.home("ReadUploads", READ, f"{keys.UPLOADS}*"),
        *item_rights.admit(rights),
        Right("ReadTheAgentAsset", ["s3:GetObject"], [agent.arn]),
        rights.bytes("ReadClosedSets", ["s3:GetObject"], keys.ANY_CLOSED),
        rights.list_bytes(),
        rights.executions("DescribeExecutions", "states:DescribeExecution"),
        rights.list_home(),
        *rights.data(data_buckets),
        rights.look_at(
            "DescribeTypesAndImages",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstanceTypeOfferings",
            "ec2:DescribeImages",
            "ec2:DescribeSpotPriceHistory",
            "ec2:GetEbsDefaultKmsKeyId",
            "ec2:DescribeCapacityReservations",
        ),
        rights.prices(),
        rights.parameters(sorted(images)),
        rights.secrets_and_groups(),
        Right("TrySessions", ["lambda:InvokeFunction"], [session_function.function_arn]),
        *containers.find_images(),
        *git.read,
    ]

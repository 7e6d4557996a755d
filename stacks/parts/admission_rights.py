"""What Admit may do: look things up, and write what a job is made of; and what Plan may look up, which judges lines as Admit would."""

from __future__ import annotations

from dataclasses import replace

from contract import keys
from contract.job_settings import JobSettings
from stacks.parts import item_rights
from stacks.parts.agent import Agent
from stacks.parts.common import Common
from stacks.parts.container_rights import ContainerRights, list_containers
from stacks.parts.function import Function
from stacks.parts.git_rights import GitHosts
from stacks.parts.right import Right
from stacks.parts.rights import READ, Rights

LOOKS = (
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeImages",
    "ec2:GetEbsDefaultKmsKeyId",
    "ec2:DescribeCapacityReservations",
)
"""What decides where a job may run."""
ORDERS = ("ec2:DescribeSpotPriceHistory",)
"""What only orders its places."""


def admit(
    rights: Rights,
    agent: Agent,
    containers: ContainerRights,
    git: GitHosts,
    session_function: Function,
    *,
    jobs: JobSettings,
    data_buckets: tuple[str, ...],
) -> list[Right]:
    """Returns the rights of the admission. `session_function` tries the sessions of a job."""
    return [
        # One statement: IAM takes 10,240 characters of a role's policies.
        rights.home("WriteJobsAndAgents", ["s3:GetObject", "s3:PutObject"], keys.ANY_DESCRIPTION, keys.ANY_AGENT),
        rights.home("CopyCode", ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], keys.ANY_CODE),
        rights.home("ReadUploads", READ, f"{keys.UPLOADS}*"),
        *item_rights.admit(rights),
        Right("ReadTheAgentAsset", ["s3:GetObject"], [agent.arn]),
        rights.list_bytes(),
        rights.list_home(),
        *rights.data(data_buckets),
        rights.prices(),
        *_look_up(rights, jobs, *LOOKS, *ORDERS),
        Right("TrySessions", ["lambda:InvokeFunction"], [session_function.function_arn]),
        containers.find_images(),
        *list_containers(containers.base_accounts),
        *git.read,
    ]


def judge_lines(common: Common, repositories: tuple[str, ...]) -> list[Right]:
    """Returns what functions of grids need beside their own rights to judge the jobs of lines as Admit would; nothing of it changes
    anything. They are managed policies: a function of grids has so many other rights that IAM would not take these among them."""
    rights, jobs = common.rights, common.jobs
    looks = [
        rights.home("ReadJobs", ["s3:GetObject"], keys.ANY_DESCRIPTION),
        item_rights.query_launches(rights),
        *_look_up(rights, jobs, *LOOKS),
    ]
    images = ContainerRights.of_jobs(rights, jobs, repositories).read_images()
    apart = {"JobChecks": looks, "JobImages": images}
    return [replace(one, apart=name, managed=True) for name, every in apart.items() for one in every]


def _look_up(rights: Rights, jobs: JobSettings, *actions: str) -> list[Right]:
    """Looks at what requests name: types and machine images, secrets, reservations, and jobs to go on from."""
    return [
        rights.look_at("DescribeTypesAndImages", *actions),
        rights.parameters(sorted({*jobs.images.values(), *jobs.machine_images.values()})),
        rights.secrets_and_groups(),
        rights.bytes("ReadClosedSets", ["s3:GetObject"], keys.ANY_CLOSED),
        rights.executions("DescribeExecutions", "states:DescribeExecution"),
    ]

"""The managed policy of people who start and watch jobs, grids and builds, and who may do nothing else."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from contract import grid, keys, names, search
from stacks.parts.right import Right, offer
from stacks.parts.rights import Rights, arn_of, below

UPLOADED = f"{keys.UPLOADS}*"
RESULTS = (keys.ANY_DESCRIPTION, keys.ANY_RESULT, keys.ANY_PAGE, keys.ANY_LIST, grid.ANY_GRID, search.ANY_SEARCH)
"""What the control plane writes for people, in the home bucket."""
BYTES = (f"{keys.JOBS}*", grid.ANY_GRID)
"""Checkpoints, artifacts and models, in the buckets of bytes."""


def people_policy(scope: Construct, name: str, *, rights: Rights) -> iam.ManagedPolicy:
    """Returns the policy. It ends no instance, writes nothing that the control plane reads but uploads, and passes no role: what starts
    and ends machines are the functions, which check every request."""
    return offer(
        scope,
        name,
        f"Start and watch jobs, grids, searches and builds of Trainyard {rights.deployment}, and nothing else",
        *_executions(rights),
        *_files(rights),
        _logs(rights),
        _outputs(rights),
        managed_policy_name=names.people_policy(rights.deployment, rights.home_region),
    )


MACHINES = (names.machine, names.grid_machine, names.search_machine, names.build_machine)
"""Machines that people start."""


def _executions(rights: Rights) -> list[Right]:
    started = [machine(rights.deployment) for machine in MACHINES]
    every = [arn_of("states", rights.home_region, cdk.Aws.ACCOUNT_ID, f"execution:{one}:*") for one in started]
    looking = ["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"]
    return [
        Right(
            "StartExecutions",
            ["states:StartExecution", "states:ListExecutions", "states:DescribeStateMachine"],
            [rights.machine(one) for one in started],
        ),
        Right("WatchAndStopExecutions", looking, every, "Executions come and go; the machines are ours."),
    ]


def _files(rights: Rights) -> list[Right]:
    uploading = ["s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    return [
        rights.home("Upload", uploading, UPLOADED),
        rights.bytes("UploadData", uploading, UPLOADED),
        rights.home("ReadResults", ["s3:GetObject"], *RESULTS),
        rights.bytes("ReadBytes", ["s3:GetObject"], *BYTES),
        below(rights.list_home(), UPLOADED, f"{keys.JOBS}*", grid.ANY_GRID, search.ANY_SEARCH),
        below(rights.list_bytes(), UPLOADED, *BYTES),
    ]


def _logs(rights: Rights) -> Right:
    deployment = rights.deployment
    groups = (names.log_group(deployment), names.build_log_group(deployment), names.child_log_group(deployment))
    return Right(
        "ReadLogs",
        ["logs:GetLogEvents", "logs:FilterLogEvents", "logs:DescribeLogStreams"],
        [arn_of("logs", rights.home_region, cdk.Aws.ACCOUNT_ID, f"log-group:{group}:*") for group in groups],
        "Nodes, builds and children have streams of their own in these groups.",
    )


def _outputs(rights: Rights) -> Right:
    stacks = (names.foundation_stack, names.workflow_stack, names.grid_stack, names.search_stack)
    return Right(
        "ReadOutputs",
        ["cloudformation:DescribeStacks"],
        [
            arn_of("cloudformation", rights.home_region, cdk.Aws.ACCOUNT_ID, f"stack/{stack(rights.deployment)}/*")
            for stack in stacks
        ],
        "A stack has an id of its own behind its name.",
    )

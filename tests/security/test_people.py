"""The managed policy of people: they start, watch and stop jobs, grids and builds, and do nothing else."""

from __future__ import annotations

import json

import pytest

from contract import items, keys, names, tags
from contract.grid import GridPrefix
from contract.keys import BytesPrefix, CommitKind
from localaws.iam.simulator import Policies, simulate
from tests.security.asking import BYTES, EC2, EXECUTIONS, HERE, HOME, JOB, NODES_LOG, OURS, SECRETS, STATES, TAGGED, Ask
from tests.security.policies import ACCOUNT, REGION, TABLE, function, log_stream, of_people, role
from tools.synthesis import Synthesised

MINE = (names.machine("trainyard"), names.grid_machine("trainyard"), names.build_machine("trainyard"))
OTHERS = (
    names.drain_machine("trainyard"),
    names.image_machine("trainyard"),
    names.platform_machine("trainyard"),
    "other-train",
)
GRID = GridPrefix("sweep")
FILES = BytesPrefix("resnet")
TAG = names.child_image_tag("0" * 32)
STACKS = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack"
ALLOWED = [
    *(Ask("People", "states:StartExecution", f"{STATES}:{one}") for one in MINE),
    *(Ask("People", "states:ListExecutions", f"{STATES}:{one}") for one in MINE),
    *(
        Ask("People", f"states:{action}", f"{EXECUTIONS}:{one}:resnet")
        for one in MINE
        for action in ("DescribeExecution", "GetExecutionHistory", "StopExecution")
    ),
    *(
        Ask("People", f"s3:{action}Object", f"{bucket}/{keys.UPLOADS}ann/code.zip")
        for action in ("Put", "Get", "Delete")
        for bucket in (HOME, BYTES)
    ),
    *(
        Ask("People", "s3:GetObject", f"{HOME}/{one}")
        for one in (JOB.description, JOB.result, JOB.page, JOB.artifacts(1))
    ),
    *(Ask("People", "s3:GetObject", f"{HOME}/{one}") for one in (GRID.description, GRID.results_csv, GRID.failed)),
    *(Ask("People", "s3:GetObject", f"{BYTES}/{one}") for one in (FILES.artifact(0, "model.pt"), f"{GRID.bytes(0)}x")),
    *(
        Ask("People", "s3:ListBucket", bucket, {"s3:prefix": prefix})
        for bucket in (HOME, BYTES)
        for prefix in (keys.UPLOADS, JOB.root, GRID.root)
    ),
    *(
        Ask("People", "logs:GetLogEvents", log_stream(group, "resnet/1/0"))
        for group in (NODES_LOG, names.build_log_group("trainyard"), names.child_log_group("trainyard"))
    ),
]
ALLOWED += [
    Ask("People", "cloudformation:DescribeStacks", f"{STACKS}/{stack('trainyard')}/0a1b2c3d")
    for stack in (names.foundation_stack, names.workflow_stack, names.grid_stack, names.search_stack)
]
DENIED = [
    # Machines.
    Ask("People", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("People", "ec2:StopInstances", f"{EC2}:instance/i-1", OURS),
    Ask("People", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("People", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.PROTECTED]}),
    Ask("People", "ec2:DescribeInstances", "*", HERE),
    Ask("People", "ssm:StartSession", f"{EC2}:instance/i-1", {}),
    Ask("People", "sagemaker:StopTrainingJob", f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/trainyard-x", OURS),
    Ask(
        "People",
        "sagemaker:CreateTrainingJob",
        f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/trainyard-x",
        TAGGED,
    ),
    Ask(
        "People",
        "codebuild:StartBuild",
        f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/{names.build_project('trainyard')}",
    ),
    Ask(
        "People",
        "batch:SubmitJob",
        f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/{names.grid_queue('trainyard')}",
        TAGGED,
    ),
    # What the control plane decides by.
    *(
        Ask("People", f"s3:{action}Object", f"{HOME}/{one}")
        for action in ("Put", "Delete")
        for one in (JOB.description, JOB.result, JOB.code("code.zip"), JOB.artifacts(1), keys.agent("a" * 64))
    ),
    *(Ask("People", "s3:PutObject", f"{HOME}/{one}") for one in (GRID.description, GRID.record(0), GRID.stopped)),
    *(
        Ask("People", "s3:PutObject", f"{HOME}/{one}")
        for one in (keys.own_context(TAG), keys.own_provenance(TAG, "sha256:" + "a" * 64), keys.own_base("x.y/z:1"))
    ),
    *(
        Ask("People", "s3:PutObject", f"{BYTES}/{one}")
        for one in (
            FILES.checkpoint(0, "f" * 64, "a"),
            FILES.commit(CommitKind.CHECKPOINTS, 1, 1, 0),
            f"{GRID.bytes(0)}x",
        )
    ),
    *(
        Ask("People", f"dynamodb:{action}", TABLE, {"dynamodb:LeadingKeys": [partition]})
        for action in ("GetItem", "PutItem", "DeleteItem", "Query")
        for partition in (
            items.WAITING,
            items.ADMISSION,
            items.job("resnet").partition,
            items.order("resnet", 1).partition,
        )
    ),
    Ask("People", "dynamodb:Scan", TABLE),
    # What others own, or what opens more.
    *(Ask("People", "states:StartExecution", f"{STATES}:{one}") for one in OTHERS),
    *(Ask("People", "states:StopExecution", f"{EXECUTIONS}:{one}:x") for one in OTHERS),
    Ask("People", "states:UpdateStateMachine", f"{STATES}:{MINE[0]}"),
    Ask("People", "states:DeleteStateMachine", f"{STATES}:{MINE[0]}"),
    *(Ask("People", f"states:SendTask{what}", f"{STATES}:{MINE[0]}") for what in ("Success", "Failure", "Heartbeat")),
    *(
        Ask("People", "lambda:InvokeFunction", function(one))
        for one in ("Terminator", "Launcher", "Drain", "OwnImages")
    ),
    *(
        Ask("People", "iam:PassRole", role(one), {"iam:PassedToService": service})
        for one, service in (
            ("Node", "ec2.amazonaws.com"),
            ("Training", "sagemaker.amazonaws.com"),
            ("Build", "codebuild.amazonaws.com"),
        )
    ),
    *(Ask("People", "sts:AssumeRole", role(one)) for one in ("Job", "Node", "Launcher")),
    Ask("People", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("People", "secretsmanager:PutSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("People", "ecr:PutImage", f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.repository('trainyard')}"),
    Ask("People", "logs:DeleteLogStream", log_stream(NODES_LOG, "resnet/1/0")),
    Ask("People", "logs:PutLogEvents", log_stream(NODES_LOG, "resnet/1/0")),
    Ask("People", "logs:GetLogEvents", log_stream("AttendantLog", "x")),
    Ask("People", "s3:ListBucket", HOME),
    Ask("People", "s3:ListBucket", HOME, {"s3:prefix": ""}),
    Ask("People", "s3:ListBucket", HOME, {"s3:prefix": keys.OWN_IMAGES}),
    Ask("People", "s3:DeleteObjectVersion", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("People", "s3:PutBucketPolicy", HOME),
    Ask("People", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip", {"aws:ResourceAccount": "444455556666"}),
    Ask("People", "s3:GetObject", f"arn:aws:s3:::{names.home_bucket('other', ACCOUNT, REGION)}/{JOB.result}"),
    Ask("People", "cloudformation:DescribeStacks", f"{STACKS}/{names.foundation_stack('other')}/0a1b2c3d"),
    Ask("People", "cloudformation:DescribeStacks", f"{STACKS}/{names.region_stack('trainyard', REGION)}/0a1b2c3d"),
    Ask("People", "cloudformation:GetTemplate", f"{STACKS}/{names.foundation_stack('trainyard')}/0a1b2c3d"),
    Ask("People", "cloudformation:DeleteStack", f"{STACKS}/{names.foundation_stack('trainyard')}/0a1b2c3d"),
    Ask("People", "cloudwatch:DeleteAlarms", f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:trainyard-reaper-silent"),
]


@pytest.fixture(scope="module")
def people(deployment: Synthesised) -> dict[str, Policies]:
    return of_people(deployment)


def test_people_may_start_watch_and_stop_what_is_theirs(people: dict[str, Policies]) -> None:
    answers = simulate(people, [ask.request for ask in ALLOWED])
    assert [
        str(ask) for ask, one in zip(ALLOWED, answers, strict=True) if one.error or one.ignored or not one.allowed
    ] == []


def test_people_may_do_nothing_else(people: dict[str, Policies]) -> None:
    answers = simulate(people, [ask.request for ask in DENIED])
    assert [(str(ask), one.error) for ask, one in zip(DENIED, answers, strict=True) if one.error or one.allowed] == []
    assert len({ask.request.identity for ask in DENIED}) == len(DENIED) > len(ALLOWED)


def test_every_statement_is_what_allows_something(people: dict[str, Policies]) -> None:
    answers = simulate(people, [ask.request for ask in ALLOWED])
    useful = {index for one in answers for _, index in one.by}
    assert useful == set(range(len(people[role("People")]["People"]["Statement"])))


def test_the_policy_is_as_short_as_iam_wants_it(wide: Synthesised) -> None:
    """IAM takes 6,144 characters of a managed policy."""
    ((_, policies),) = of_people(wide).items()
    assert len(json.dumps(policies["People"], separators=(",", ":"))) < 4000


def test_nobody_has_the_policy_before_somebody_attaches_it(deployment: Synthesised) -> None:
    (policy,) = (
        one["Properties"]
        for one in deployment.template("foundation")["Resources"].values()
        if one["Type"] == "AWS::IAM::ManagedPolicy"
    )
    assert not {"Roles", "Users", "Groups"} & policy.keys()
    assert policy["ManagedPolicyName"] == names.people_policy("trainyard", REGION)

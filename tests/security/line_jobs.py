"""What Plan and the search may look up to judge the jobs of lines as Admit would, and what they may not: rows of test_rights.py."""

from __future__ import annotations

from contract import keys, names
from tests.security.asking import (
    BYTES,
    EC2,
    EXECUTIONS,
    HERE,
    HOME,
    JOB,
    SECRETS,
    SSM,
    TAGGED,
    X86_IMAGE,
    Ask,
)
from tests.security.grids import AWAY, CONTAINERS, IMAGES
from tests.security.policies import ACCOUNT, REGION, function

EXECUTION = f"{EXECUTIONS}:{names.machine('trainyard')}:{JOB.job}"
CLOSED = keys.BytesPrefix(JOB.job).closed(1, 1)
SECRET = f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"
GROUP = f"arn:aws:resource-groups:{REGION}:{ACCOUNT}:group/g"
PLACE = f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"
ELSEWHERE = {"aws:RequestedRegion": AWAY}
JUDGES = ("GridPlan", "Search")


def _looking(who: str) -> list[Ask]:
    return [
        Ask(who, "ec2:DescribeInstanceTypes", "*", HERE),
        Ask(who, "ec2:DescribeInstanceTypeOfferings", "*", HERE),
        Ask(who, "ec2:DescribeImages", "*", HERE),
        Ask(who, "ec2:GetEbsDefaultKmsKeyId", "*", HERE),
        Ask(who, "ec2:DescribeCapacityReservations", "*", HERE),
        Ask(who, "ssm:GetParameter", PLACE),
        Ask(who, "ssm:GetParameter", f"{SSM}::parameter{X86_IMAGE}"),
        Ask(who, "secretsmanager:DescribeSecret", SECRET),
        Ask(who, "resource-groups:ListGroupResources", GROUP, HERE),
        Ask(who, "s3:GetObject", f"{HOME}/{JOB.description}"),
        Ask(who, "s3:GetObject", f"{BYTES}/{CLOSED}"),
        Ask(who, "states:DescribeExecution", EXECUTION),
        Ask(who, "ecr:GetDownloadUrlForLayer", IMAGES),
        Ask(who, "ecr:GetDownloadUrlForLayer", CONTAINERS),
    ]


def _not_looking(who: str) -> list[Ask]:
    return [
        Ask(who, "ec2:DescribeInstances", "*", HERE),
        Ask(who, "ec2:DescribeSpotPriceHistory", "*", HERE),
        Ask(who, "ec2:DescribeInstanceTypeOfferings", "*", ELSEWHERE),
        Ask(who, "ec2:DescribeImages", "*", ELSEWHERE),
        Ask(who, "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
        Ask(who, "ec2:ModifyEbsDefaultKmsKeyId", "*", HERE),
        Ask(who, "ec2:CreateCapacityReservation", f"{EC2}:capacity-reservation/*", TAGGED),
        Ask(who, "ssm:GetParameter", PLACE.replace("/trainyard/", "/other/")),
        Ask(who, "ssm:PutParameter", PLACE),
        Ask(who, "secretsmanager:GetSecretValue", SECRET),
        Ask(who, "secretsmanager:DescribeSecret", SECRET.replace("trainyard/trainyard", "trainyard/other")),
        Ask(who, "resource-groups:GroupResources", GROUP, HERE),
        Ask(who, "s3:PutObject", f"{HOME}/{JOB.description}"),
        Ask(who, "s3:GetObject", f"{HOME}/{JOB.result}"),
        Ask(who, "s3:GetObject", f"{HOME}/{JOB.code('code.tar.gz')}"),
        Ask(who, "s3:PutObject", f"{BYTES}/{CLOSED}"),
        Ask(who, "s3:GetObject", f"{BYTES}/{keys.JOBS}resnet/artifacts/a"),
        Ask(who, "states:StopExecution", EXECUTION),
        Ask(who, "states:DescribeExecution", EXECUTION.replace("trainyard-train", "trainyard-two-train")),
        Ask(who, "ecr:GetDownloadUrlForLayer", IMAGES.replace(REGION, AWAY)),
        Ask(who, "ecr:GetDownloadUrlForLayer", IMAGES.replace("trainyard/", "other/")),
        Ask(who, "lambda:InvokeFunction", function("Attendant")),
        Ask(who, "sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/any"),
    ]


ALLOWED = [one for who in JUDGES for one in _looking(who)]
DENIED = [one for who in JUDGES for one in _not_looking(who)]

"""What the roles of the Builds stack may and may not do, asked of an IAM simulator."""

from __future__ import annotations

import pytest

from contract import keys
from localaws.iam.simulator import Policies, Request, simulate
from tests.security.policies import ACCOUNT, REGION, log_stream, of_roles, role
from tests.stacks.builds import WIDE, built
from tools.synthesis import Synthesised

BUILD, FUNCTION, MACHINE = role("Build"), role("ImageBuild"), role("Images")
HOME = f"arn:aws:s3:::yard-home-{ACCOUNT}-{REGION}"
FETCHED = f"{HOME}/{keys.fetched_context('https://git.example.com/owner/good.git', 'a' * 40)}"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret"
ASSETS = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
LOG = log_stream("/trainyard/yard/builds", "s")
PROJECT = f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/yard-build"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventForCodeBuildStartBuildRule"


def repository(name: str, region: str = REGION, account: str = ACCOUNT) -> str:
    return f"arn:aws:ecr:{region}:{account}:repository/{name}"


ALLOWED = [
    (BUILD, "ecr:GetAuthorizationToken", "*"),
    *((BUILD, action, repository("yard/images", "us-east-1")) for action in ("ecr:PutImage", "ecr:UploadLayerPart")),
    (BUILD, "ecr:CompleteLayerUpload", repository("yard/grid", "ap-south-1")),
    (BUILD, "ecr:InitiateLayerUpload", repository("yard/build-cache")),
    (BUILD, "ecr:PutImage", repository("yard/build-cache")),
    (BUILD, "ecr:BatchGetImage", repository("yard/build-cache")),
    (BUILD, "ecr:DescribeImages", repository("yard/images", "ap-south-1")),
    (BUILD, "ecr:BatchGetImage", repository("pytorch-training", account="763104351884")),
    (BUILD, "ecr:GetDownloadUrlForLayer", repository("pytorch-training", account="763104351884")),
    (BUILD, "ecr:BatchGetImage", repository("lab/x", "eu-west-3", "444455556666")),
    (BUILD, "s3:GetObject", f"{HOME}/uploads/context.tar.gz"),
    (BUILD, "s3:GetObjectVersion", f"{HOME}/uploads/context.tar.gz"),
    (BUILD, "s3:GetObjectVersion", "arn:aws:s3:::imagenet/context.zip"),
    *((BUILD, f"s3:{action}", ASSETS) for action in ("GetBucketAcl", "GetBucketLocation")),
    (BUILD, "logs:PutLogEvents", LOG),
    (FUNCTION, "ecr:DescribeImages", repository("yard/images", "us-east-1")),
    (FUNCTION, "ecr:BatchGetImage", repository("pytorch-training", account="763104351884")),
    (FUNCTION, "s3:GetObject", f"{HOME}/uploads/context.tar.gz"),
    (FUNCTION, "s3:PutObject", FETCHED),
    (FUNCTION, "s3:GetObject", FETCHED),
    (FUNCTION, "secretsmanager:GetSecretValue", f"{SECRET}:git-token-a1b2c3"),
    (BUILD, "s3:GetObjectVersion", FETCHED),
    (FUNCTION, "s3:ListBucket", HOME),
    (FUNCTION, "codebuild:BatchGetBuilds", PROJECT),
    (FUNCTION, "logs:GetLogEvents", LOG),
    *((MACHINE, f"codebuild:{action}", PROJECT) for action in ("StartBuild", "StopBuild", "BatchGetBuilds")),
    *((MACHINE, f"events:{action}", RULE) for action in ("PutRule", "PutTargets", "DescribeRule")),
]
DENIED = [
    (BUILD, "ecr:PutImage", repository("lab/images")),
    (BUILD, "ecr:PutImage", repository("yard/images", "eu-west-3")),
    (BUILD, "ecr:PutImage", repository("yard/build-cache", "us-east-1")),
    (BUILD, "ecr:PutImage", repository("yard/images", account="444455556666")),
    (BUILD, "ecr:PutImage", repository("pytorch-training", account="763104351884")),
    (BUILD, "ecr:BatchGetImage", repository("lab/images")),
    (BUILD, "ecr:BatchGetImage", repository("lab/images", account="999988887777")),
    (BUILD, "ecr:BatchDeleteImage", repository("yard/images")),
    (BUILD, "ecr:DeleteRepository", repository("yard/images")),
    (BUILD, "ecr:SetRepositoryPolicy", repository("yard/images")),
    (BUILD, "ecr:PutImageTagMutability", repository("yard/images")),
    (BUILD, "s3:GetBucketAcl", HOME),
    (BUILD, "s3:PutBucketAcl", ASSETS),
    (BUILD, "s3:ListBucket", ASSETS),
    (BUILD, "s3:GetObject", f"{HOME}/jobs/resnet/job.json"),
    (BUILD, "s3:GetObject", f"{HOME}/control/tokens/resnet/1-a.json"),
    (BUILD, "s3:PutObject", f"{HOME}/uploads/context.tar.gz"),
    (BUILD, "s3:DeleteObject", f"{HOME}/uploads/context.tar.gz"),
    (BUILD, "s3:GetObject", "arn:aws:s3:::elsewhere/context.tar.gz"),
    (BUILD, "logs:PutLogEvents", log_stream("/trainyard/yard/nodes", "s")),
    (BUILD, "codebuild:StartBuild", PROJECT),
    (BUILD, "lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:ImageBuild"),
    (BUILD, "ec2:RunInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/*"),
    (BUILD, "iam:PassRole", BUILD),
    (FUNCTION, "ecr:PutImage", repository("yard/images")),
    (FUNCTION, "ecr:GetAuthorizationToken", "*"),
    (FUNCTION, "codebuild:StartBuild", PROJECT),
    (FUNCTION, "codebuild:BatchGetBuilds", f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/other"),
    (FUNCTION, "s3:PutObject", f"{HOME}/uploads/context.tar.gz"),
    (FUNCTION, "s3:DeleteObject", FETCHED),
    (FUNCTION, "s3:PutObject", f"{HOME}/jobs/resnet/job.json"),
    (FUNCTION, "secretsmanager:GetSecretValue", f"{SECRET}:git-token"),
    (FUNCTION, "secretsmanager:GetSecretValue", f"{SECRET}:git-token-of-others-a1b2c3"),
    (FUNCTION, "secretsmanager:PutSecretValue", f"{SECRET}:git-token-a1b2c3"),
    (BUILD, "secretsmanager:GetSecretValue", f"{SECRET}:git-token-a1b2c3"),
    (BUILD, "s3:PutObject", FETCHED),
    (MACHINE, "s3:PutObject", FETCHED),
    (FUNCTION, "s3:GetObject", f"{HOME}/jobs/resnet/job.json"),
    (FUNCTION, "logs:GetLogEvents", log_stream("/trainyard/yard/nodes", "s")),
    (MACHINE, "codebuild:StartBuild", f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/other"),
    (MACHINE, "codebuild:UpdateProject", PROJECT),
    (MACHINE, "events:PutRule", f"arn:aws:events:{REGION}:{ACCOUNT}:rule/other"),
    (MACHINE, "events:DeleteRule", RULE),
    (MACHINE, "lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:Terminator"),
]


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policies]:
    folder = tmp_path_factory.mktemp("builds")
    built(folder, **WIDE)
    return of_roles(Synthesised(folder))


def list_requests(table: list[tuple[str, str, str]]) -> list[Request]:
    """With the region that a call goes to, and the account of a bucket, which IAM always knows."""
    return [
        Request(
            principal=who,
            action=action,
            resource=resource,
            context={"aws:RequestedRegion": (resource.split(":") + [""] * 4)[3] or REGION}
            | ({"aws:ResourceAccount": ACCOUNT} if action.startswith("s3:") else {}),
        )
        for who, action, resource in table
    ]


def test_the_roles_may_do_their_work(policies: dict[str, Policies]) -> None:
    answers = simulate(policies, list_requests(ALLOWED))
    assert [(row, one.error) for row, one in zip(ALLOWED, answers, strict=True) if one.error or not one.allowed] == []


def test_the_roles_may_do_nothing_else(policies: dict[str, Policies]) -> None:
    answers = simulate(policies, list_requests(DENIED))
    assert [(row, one.error) for row, one in zip(DENIED, answers, strict=True) if one.error or one.allowed] == []
    assert len(DENIED) > len(ALLOWED)


def test_the_tables_name_every_role(policies: dict[str, Policies]) -> None:
    assert {row[0] for row in ALLOWED} == {row[0] for row in DENIED} == set(policies)

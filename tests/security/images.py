"""What the roles that bring images in, and the one that asks what stands, may and may not do: rows of test_rights.py."""

from __future__ import annotations

from contract import keys, names
from contract.grid import GridPrefix
from tests.security.asking import (
    ARM_IMAGE,
    BYTES,
    EC2,
    EXECUTIONS,
    HERE,
    HOME,
    JOB,
    OURS,
    SECRETS,
    SPOT_ROLE,
    SSM,
    STATES,
    Ask,
)
from tests.security.policies import ACCOUNT, REGION, function, log_stream, role

AWAY = "eu-west-1"
CONTAINERS = f"arn:aws:ecr:{REGION}:763104351884:repository"
"""AWS's Deep Learning Containers."""
OURS_OF_IMAGES = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.repository('trainyard', 'images')}"
THEIRS_OF_IMAGES = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/other/images"
CACHE = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.build_cache('trainyard')}"
PROJECT = f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/{names.build_project('trainyard')}"
BUILDS_LOG = names.build_log_group("trainyard")
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventForCodeBuildStartBuildRule"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/trainyard-workflow/1"
CONTEXT = f"{HOME}/{keys.UPLOADS}image.tar.gz"
FETCHED = f"{HOME}/{keys.fetched_context('https://github.com/o/r.git', 40 * 'a')}"
BUILD = f"{STATES}:{names.build_machine('trainyard')}"
OWN_BUILD = f"{STATES}:{names.platform_machine('trainyard')}"
BUILDING = f"{EXECUTIONS}:{names.platform_machine('trainyard')}:grid-child-0-1"
OWN_PROJECT = f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/{names.platform_project('trainyard')}"
OWN_LOG = names.platform_log_group("trainyard")
PLATFORM = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.repository('trainyard', names.PLATFORM)}"
OWN_CACHE = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.platform_cache('trainyard')}"
CHILD_TAG = names.child_image_tag("0" * 32)
RECORD = f"{HOME}/{keys.own_provenance(CHILD_TAG, 'sha256:' + 'a' * 64)}"
BASE = f"{HOME}/{keys.own_base('public.ecr.aws/docker/library/python:3.13')}"
LINKED = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role"
ECS_ROLE = f"{LINKED}/ecs.amazonaws.com/AWSServiceRoleForECS"
BATCH_ROLE = f"{LINKED}/batch.amazonaws.com/AWSServiceRoleForBatch"
ASSETS = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
OWN_CONTEXT = f"{HOME}/{keys.own_context(CHILD_TAG)}"

ALLOWED = [
    Ask("Build", "s3:GetObject", CONTEXT),
    Ask("ServiceRoles", "iam:GetRole", ECS_ROLE),
    Ask("ServiceRoles", "iam:GetRole", BATCH_ROLE),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", ECS_ROLE, {"iam:AWSServiceName": "ecs.amazonaws.com"}),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", BATCH_ROLE, {"iam:AWSServiceName": "batch.amazonaws.com"}),
    Ask("ServiceRoles", "logs:PutLogEvents", log_stream("ServiceRolesLog", "x")),
    Ask("ZoneLookup", "ec2:DescribeAvailabilityZones", "*", HERE),
    Ask("ZoneLookup", "logs:PutLogEvents", log_stream("ZoneLookupLog", "x")),
    Ask("Build", "s3:GetBucketAcl", ASSETS),
    Ask("Build", "s3:GetBucketLocation", ASSETS),
    Ask("Build", "ecr:GetAuthorizationToken", "*"),
    Ask("Build", "ecr:PutImage", OURS_OF_IMAGES),
    Ask("Build", "ecr:InitiateLayerUpload", CACHE),
    Ask("Build", "ecr:BatchGetImage", f"{CONTAINERS}/pytorch-training"),
    Ask("Build", "logs:PutLogEvents", log_stream(BUILDS_LOG, "x")),
    Ask("ImageBuild", "s3:GetObject", CONTEXT),
    Ask("ImageBuild", "s3:ListBucket", HOME),
    Ask("ImageBuild", "s3:PutObject", FETCHED),
    Ask("ImageBuild", "s3:GetObject", FETCHED),
    Ask("Build", "s3:GetObjectVersion", FETCHED),
    Ask("ImageBuild", "ecr:DescribeImages", OURS_OF_IMAGES),
    Ask("ImageBuild", "ecr:BatchGetImage", f"{CONTAINERS}/pytorch-training"),
    Ask("ImageBuild", "codebuild:BatchGetBuilds", PROJECT),
    Ask("ImageBuild", "logs:GetLogEvents", log_stream(BUILDS_LOG, "x")),
    Ask("ImageBuild", "logs:PutLogEvents", log_stream("ImageBuildLog", "x")),
    Ask("Images", "lambda:InvokeFunction", function("ImageBuild")),
    Ask("Images", "codebuild:StartBuild", PROJECT),
    Ask("Images", "events:PutRule", RULE),
    Ask("RegionCheck", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
    Ask(
        "RegionCheck",
        "ssm:GetParameter",
        f"arn:aws:ssm:{AWAY}:{ACCOUNT}:parameter{names.region_parameter('trainyard', AWAY)}",
    ),
    Ask("RegionCheck", "cloudformation:DescribeStacks", STACK),
    Ask("RegionCheck", "logs:PutLogEvents", log_stream("RegionCheckLog", "x")),
    Ask("OwnImages", "s3:ListBucket", ASSETS),
    Ask("OwnImages", "s3:PutObject", OWN_CONTEXT),
    Ask("OwnImages", "states:StartExecution", OWN_BUILD),
    Ask("OwnImages", "s3:GetObject", OWN_CONTEXT),
    Ask("OwnImages", "s3:GetObject", RECORD),
    Ask("OwnImages", "s3:GetObject", BASE),
    Ask("OwnImages", "s3:ListBucket", HOME),
    Ask("OwnImages", "ecr:DescribeImages", PLATFORM),
    Ask("OwnImages", "codebuild:BatchGetBuilds", OWN_PROJECT),
    Ask("OwnImages", "logs:GetLogEvents", log_stream(OWN_LOG, "x")),
    Ask("OwnImages", "states:StartExecution", f"{STATES}:{names.image_machine('trainyard')}"),
    Ask("OwnImages", "states:DescribeExecution", BUILDING),
    Ask("OwnImages", "logs:PutLogEvents", log_stream("OwnImagesLog", "x")),
    Ask("OwnImagesMachine", "lambda:InvokeFunction", function("OwnImages")),
    Ask("PlatformBuild", "s3:GetObjectVersion", OWN_CONTEXT),
    Ask("PlatformBuild", "s3:PutObject", RECORD),
    Ask("PlatformBuild", "s3:PutObject", BASE),
    Ask("PlatformBuild", "s3:GetBucketAcl", ASSETS),
    Ask("PlatformBuild", "ecr:GetAuthorizationToken", "*"),
    Ask("PlatformBuild", "ecr:PutImage", PLATFORM),
    Ask("PlatformBuild", "ecr:PutImage", OWN_CACHE),
    Ask("PlatformBuild", "logs:PutLogEvents", log_stream(OWN_LOG, "x")),
    Ask("PlatformImages", "lambda:InvokeFunction", function("OwnImages")),
    Ask("PlatformImages", "codebuild:StartBuild", OWN_PROJECT),
    Ask("PlatformImages", "events:PutRule", RULE),
]

PUSHES = ("ecr:PutImage", "ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload")
DENIED = [
    # What people build can become no part of the platform: not by its tag, its cached layers, its context, its base or its record.
    *(Ask("Build", action, one) for action in PUSHES for one in (PLATFORM, OWN_CACHE)),
    Ask("Build", "ecr:BatchGetImage", OWN_CACHE),
    Ask("Build", "ecr:BatchDeleteImage", PLATFORM),
    Ask("Build", "s3:GetObject", OWN_CONTEXT),
    *(Ask("Build", "s3:PutObject", one) for one in (OWN_CONTEXT, RECORD, BASE)),
    Ask("Build", "logs:PutLogEvents", log_stream(OWN_LOG, "x")),
    Ask("ImageBuild", "ecr:DescribeImages", PLATFORM),
    Ask("ImageBuild", "s3:GetObject", OWN_CONTEXT),
    Ask("Images", "codebuild:StartBuild", OWN_PROJECT),
    Ask("Images", "lambda:InvokeFunction", function("OwnImages")),
    *(
        Ask(one, "s3:PutObject", place)
        for one in ("Node", "Training", "Child", "Admission", "GridPlan", "ImageBuild")
        for place in (OWN_CONTEXT, RECORD, BASE)
    ),
    # And a build of the platform touches nothing else.
    Ask("PlatformBuild", "ecr:PutImage", OURS_OF_IMAGES),
    Ask("PlatformBuild", "ecr:PutImage", CACHE),
    Ask("PlatformBuild", "ecr:BatchGetImage", CACHE),
    Ask("PlatformBuild", "ecr:BatchDeleteImage", PLATFORM),
    Ask("PlatformBuild", "ecr:PutImage", PLATFORM.replace(REGION, AWAY)),
    Ask("PlatformBuild", "ecr:BatchGetImage", f"{CONTAINERS}/pytorch-training"),
    Ask("PlatformBuild", "s3:GetObject", CONTEXT),
    Ask("PlatformBuild", "s3:PutObject", OWN_CONTEXT),
    Ask("PlatformBuild", "s3:DeleteObject", RECORD),
    Ask("PlatformBuild", "s3:PutObject", f"{HOME}/{JOB.description}"),
    Ask("PlatformBuild", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("PlatformImages", "codebuild:StartBuild", PROJECT),
    Ask("PlatformImages", "lambda:InvokeFunction", function("ImageBuild")),
    Ask("PlatformImages", "events:PutRule", RULE.replace("StepFunctions", "Other")),
    Ask("OwnImages", "s3:PutObject", RECORD),
    Ask("OwnImages", "s3:PutObject", BASE),
    Ask("OwnImages", "states:StartExecution", BUILD),
    Ask("OwnImages", "codebuild:StartBuild", OWN_PROJECT),
    Ask("OwnImages", "ecr:PutImage", PLATFORM),
    Ask("Build", "ecr:PutImage", THEIRS_OF_IMAGES),
    Ask("Build", "ecr:PutImage", OURS_OF_IMAGES.replace(REGION, AWAY)),
    Ask("Build", "ecr:PutImage", CACHE.replace(REGION, AWAY)),
    Ask("Build", "ecr:PutImage", f"{CONTAINERS}/pytorch-training"),
    Ask("Build", "ecr:BatchDeleteImage", OURS_OF_IMAGES),
    Ask("Build", "ecr:SetRepositoryPolicy", OURS_OF_IMAGES),
    Ask("Build", "s3:GetObject", f"{HOME}/{JOB.description}"),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", ECS_ROLE),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", ECS_ROLE, {"iam:AWSServiceName": "batch.amazonaws.com"}),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", SPOT_ROLE, {"iam:AWSServiceName": "spot.amazonaws.com"}),
    Ask("ServiceRoles", "iam:DeleteServiceLinkedRole", ECS_ROLE),
    Ask("ServiceRoles", "iam:CreateRole", ECS_ROLE),
    Ask("ServiceRoles", "iam:GetRole", role("Node")),
    Ask("ServiceRoles", "iam:PassRole", ECS_ROLE, {"iam:PassedToService": "ecs-tasks.amazonaws.com"}),
    Ask("ZoneLookup", "ec2:DescribeAvailabilityZones", "*", {"aws:RequestedRegion": AWAY}),
    Ask("ZoneLookup", "ec2:ModifyAvailabilityZoneGroup", "*", HERE),
    Ask("ZoneLookup", "ec2:DescribeInstances", "*", HERE),
    Ask("ZoneLookup", "ec2:CreateSubnet", f"{EC2}:subnet/*"),
    Ask("ZoneLookup", "ec2:CreateTags", f"{EC2}:subnet/subnet-1", OURS),
    Ask("ZoneLookup", "ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
    Ask("Build", "s3:PutObject", CONTEXT),
    Ask("Build", "s3:GetBucketAcl", HOME),
    Ask("Build", "s3:ListBucket", ASSETS),
    Ask("Build", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("ImageBuild", "ecr:PutImage", OURS_OF_IMAGES),
    Ask("ImageBuild", "codebuild:StartBuild", PROJECT),
    Ask("ImageBuild", "s3:PutObject", CONTEXT),
    Ask("Build", "s3:PutObject", FETCHED),
    Ask("Node", "s3:PutObject", FETCHED),
    Ask("Training", "s3:PutObject", FETCHED),
    Ask("Images", "codebuild:StartBuild", PROJECT.replace("trainyard-build", "other-build")),
    Ask("Images", "events:PutRule", RULE.replace("StepFunctions", "Other")),
    Ask("Images", "lambda:InvokeFunction", function("Launcher")),
    Ask("RegionCheck", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/trainyard/other/regions/{REGION}"),
    Ask("RegionCheck", "ssm:GetParameter", f"{SSM}::parameter{ARM_IMAGE}"),
    Ask(
        "RegionCheck", "ssm:DeleteParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"
    ),
    Ask("RegionCheck", "cloudformation:DeleteStack", STACK),
    Ask("RegionCheck", "cloudformation:DescribeStacks", STACK.replace("trainyard-workflow", "other-workflow")),
    # Our regions alone, by the region of the request, and buckets of this account alone, whatever they are called.
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2.replace(REGION, AWAY)}:instance/i-1", OURS),
    Ask("Admission", "ssm:GetParameter", f"arn:aws:ssm:{AWAY}::parameter{ARM_IMAGE}"),
    Ask("Node", "secretsmanager:GetSecretValue", f"{SECRETS.replace(REGION, AWAY)}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Node", "s3:PutObject", f"{BYTES}/jobs/resnet/artifacts/a", {"aws:ResourceAccount": "444455556666"}),
    Ask("ArtifactCheck", "s3:GetObject", f"{BYTES}/jobs/resnet/artifacts/a", {"aws:ResourceAccount": "444455556666"}),
    Ask("Attendant", "states:StartExecution", BUILD),
    Ask("OwnImages", "s3:GetObject", f"{ASSETS}/{'0' * 64}.zip"),
    Ask("OwnImages", "s3:PutObject", f"{ASSETS}/{'0' * 64}.zip"),
    Ask("OwnImages", "s3:PutObject", CONTEXT),
    Ask("OwnImages", "s3:PutObject", f"{HOME}/{GridPrefix('sweep').description}"),
    Ask("OwnImages", "s3:PutObject", OWN_CONTEXT.replace("trainyard-home", "other-home")),
    Ask("OwnImages", "s3:DeleteObject", OWN_CONTEXT),
    Ask("OwnImages", "states:StartExecution", f"{STATES}:{names.grid_machine('trainyard')}"),
    Ask("OwnImages", "states:StartExecution", f"{STATES}:{names.machine('trainyard')}"),
    Ask("OwnImages", "states:StopExecution", BUILDING),
    Ask("OwnImages", "codebuild:StartBuild", PROJECT),
    Ask("OwnImages", "ecr:PutImage", OURS_OF_IMAGES),
    Ask("OwnImages", "iam:PassRole", role("Build"), {"iam:PassedToService": "codebuild.amazonaws.com"}),
    Ask("OwnImagesMachine", "lambda:InvokeFunction", function("ImageBuild")),
    Ask("OwnImagesMachine", "lambda:InvokeFunction", f"{function('OwnImages')}:1"),
    Ask("OwnImagesMachine", "states:StartExecution", BUILD),
]

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
    NODES_LOG,
    OURS,
    SECRETS,
    SPOT_ROLE,
    SSM,
    STATES,
    Ask,
    asks,
)
from tests.security.policies import ACCOUNT, REGION, function, log_stream, role

AWAY, STRANGER = "eu-west-1", "999988887777"
CONTAINERS = f"arn:aws:ecr:{REGION}:763104351884:repository"
"""AWS's Deep Learning Containers."""
OURS_OF_IMAGES = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.repository('trainyard', 'images')}"
THEIRS_OF_IMAGES = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/other/images"
CACHE = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.build_cache('trainyard')}"
PROJECT = f"arn:aws:codebuild:{REGION}:{ACCOUNT}:project/{names.build_project('trainyard')}"
OTHER_PROJECT = PROJECT.replace("trainyard-build", "other-build")
BUILDS_LOG = names.build_log_group("trainyard")
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/StepFunctionsGetEventForCodeBuildStartBuildRule"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/trainyard-workflow/1"
CONTEXT = f"{HOME}/{keys.UPLOADS}image.tar.gz"
BUILD = f"{STATES}:{names.build_machine('trainyard')}"
BUILDING = f"{EXECUTIONS}:{names.build_machine('trainyard')}:grid-child-0-1"
LINKED = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role"
ECS_ROLE = f"{LINKED}/ecs.amazonaws.com/AWSServiceRoleForECS"
BATCH_ROLE = f"{LINKED}/batch.amazonaws.com/AWSServiceRoleForBatch"
ASSETS = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
NOTED, NOTED_AWAY = (
    f"arn:aws:ssm:{one}:{ACCOUNT}:parameter{names.region_parameter('trainyard', one)}" for one in (REGION, AWAY)
)
"""Parameters in which regions describe themselves."""
OWN_CONTEXT = f"{HOME}/{keys.own_context(names.child_image_tag('0' * 32))}"

ALLOWED = [
    *asks("Build", "s3:GetObject GetObjectVersion", CONTEXT, OWN_CONTEXT),
    *asks("Build", "s3:GetBucketAcl GetBucketLocation", ASSETS),
    Ask("Build", "ecr:GetAuthorizationToken", "*"),
    Ask("Build", "ecr:PutImage", OURS_OF_IMAGES),
    *asks("Build", "ecr:InitiateLayerUpload PutImage BatchGetImage", CACHE),
    *asks("Build", "ecr:BatchGetImage GetDownloadUrlForLayer", f"{CONTAINERS}/pytorch-training"),
    Ask("Build", "logs:PutLogEvents", log_stream(BUILDS_LOG, "x")),
    *asks("ServiceRoles", "iam:GetRole", ECS_ROLE, BATCH_ROLE),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", ECS_ROLE, {"iam:AWSServiceName": "ecs.amazonaws.com"}),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", BATCH_ROLE, {"iam:AWSServiceName": "batch.amazonaws.com"}),
    Ask("ServiceRoles", "logs:PutLogEvents", log_stream("ServiceRolesLog", "x")),
    Ask("ZoneLookup", "ec2:DescribeAvailabilityZones", "*", HERE),
    Ask("ZoneLookup", "logs:PutLogEvents", log_stream("ZoneLookupLog", "x")),
    Ask("ImageBuild", "s3:GetObject", CONTEXT),
    Ask("ImageBuild", "s3:ListBucket", HOME),
    Ask("ImageBuild", "ecr:DescribeImages", OURS_OF_IMAGES),
    Ask("ImageBuild", "ecr:BatchGetImage", f"{CONTAINERS}/pytorch-training"),
    Ask("ImageBuild", "codebuild:BatchGetBuilds", PROJECT),
    Ask("ImageBuild", "logs:GetLogEvents", log_stream(BUILDS_LOG, "x")),
    Ask("ImageBuild", "logs:PutLogEvents", log_stream("ImageBuildLog", "x")),
    Ask("Images", "lambda:InvokeFunction", function("ImageBuild")),
    *asks("Images", "codebuild:StartBuild StopBuild BatchGetBuilds", PROJECT),
    *asks("Images", "events:PutRule PutTargets DescribeRule", RULE),
    Ask("RegionCheck", "s3:ListBucket", HOME, {"s3:prefix": keys.LAUNCHED_REGIONS}),
    *asks("RegionCheck", "ssm:GetParameter", NOTED, NOTED_AWAY),
    Ask("RegionCheck", "cloudformation:DescribeStacks", STACK),
    Ask("RegionCheck", "logs:PutLogEvents", log_stream("RegionCheckLog", "x")),
    Ask("OwnImages", "s3:ListBucket", ASSETS),
    Ask("OwnImages", "s3:PutObject", OWN_CONTEXT),
    *asks("OwnImages", "states:StartExecution", BUILD, f"{STATES}:{names.image_machine('trainyard')}"),
    Ask("OwnImages", "states:DescribeExecution", BUILDING),
    Ask("OwnImages", "logs:PutLogEvents", log_stream("OwnImagesLog", "x")),
    Ask("OwnImagesMachine", "lambda:InvokeFunction", function("OwnImages")),
]

DENIED = [
    *asks("Build", "ecr:PutImage", THEIRS_OF_IMAGES, OURS_OF_IMAGES.replace(REGION, AWAY), CACHE.replace(REGION, AWAY)),
    *asks("Build", "ecr:PutImage", f"{CONTAINERS}/pytorch-training", OURS_OF_IMAGES.replace(ACCOUNT, STRANGER)),
    *asks("Build", "ecr:BatchGetImage", THEIRS_OF_IMAGES, THEIRS_OF_IMAGES.replace(ACCOUNT, STRANGER)),
    *asks("Build", "ecr:BatchDeleteImage SetRepositoryPolicy PutImageTagMutability DeleteRepository", OURS_OF_IMAGES),
    *asks("Build", "s3:GetObject", f"{HOME}/{JOB.description}", f"{HOME}/{keys.TOKENS}resnet/1.json"),
    Ask("Build", "s3:GetObject", "arn:aws:s3:::elsewhere/context.tar.gz"),
    *asks("Build", "s3:PutObject DeleteObject", CONTEXT),
    Ask("Build", "s3:GetBucketAcl", HOME),
    *asks("Build", "s3:ListBucket PutBucketAcl", ASSETS),
    Ask("Build", "logs:PutLogEvents", log_stream(NODES_LOG, "x")),
    Ask("Build", "codebuild:StartBuild", PROJECT),
    Ask("Build", "lambda:InvokeFunction", function("ImageBuild")),
    Ask("Build", "ec2:RunInstances", f"{EC2}:instance/*"),
    Ask("Build", "iam:PassRole", role("Build")),
    Ask("Build", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    *asks("ServiceRoles", "iam:CreateServiceLinkedRole DeleteServiceLinkedRole CreateRole", ECS_ROLE),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", ECS_ROLE, {"iam:AWSServiceName": "batch.amazonaws.com"}),
    Ask("ServiceRoles", "iam:CreateServiceLinkedRole", SPOT_ROLE, {"iam:AWSServiceName": "spot.amazonaws.com"}),
    Ask("ServiceRoles", "iam:GetRole", role("Node")),
    Ask("ServiceRoles", "iam:PassRole", ECS_ROLE, {"iam:PassedToService": "ecs-tasks.amazonaws.com"}),
    Ask("ZoneLookup", "ec2:DescribeAvailabilityZones", "*", {"aws:RequestedRegion": AWAY}),
    *asks("ZoneLookup", "ec2:ModifyAvailabilityZoneGroup DescribeInstances", "*", context=HERE),
    Ask("ZoneLookup", "ec2:CreateSubnet", f"{EC2}:subnet/*"),
    Ask("ZoneLookup", "ec2:CreateTags", f"{EC2}:subnet/subnet-1", OURS),
    Ask("ZoneLookup", "ssm:PutParameter", NOTED),
    Ask("ImageBuild", "ecr:PutImage", OURS_OF_IMAGES),
    Ask("ImageBuild", "ecr:GetAuthorizationToken", "*"),
    Ask("ImageBuild", "codebuild:StartBuild", PROJECT),
    Ask("ImageBuild", "codebuild:BatchGetBuilds", OTHER_PROJECT),
    Ask("ImageBuild", "s3:PutObject", CONTEXT),
    Ask("ImageBuild", "s3:GetObject", f"{HOME}/{JOB.description}"),
    Ask("ImageBuild", "logs:GetLogEvents", log_stream(NODES_LOG, "x")),
    Ask("Images", "codebuild:StartBuild", OTHER_PROJECT),
    Ask("Images", "codebuild:UpdateProject", PROJECT),
    Ask("Images", "events:PutRule", RULE.replace("StepFunctions", "Other")),
    Ask("Images", "events:DeleteRule", RULE),
    *asks("Images", "lambda:InvokeFunction", function("Launcher"), function("Terminator")),
    Ask("RegionCheck", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/trainyard/other/regions/{REGION}"),
    Ask("RegionCheck", "ssm:GetParameter", f"{SSM}::parameter{ARM_IMAGE}"),
    Ask("RegionCheck", "ssm:DeleteParameter", NOTED),
    Ask("RegionCheck", "cloudformation:DeleteStack", STACK),
    Ask("RegionCheck", "cloudformation:DescribeStacks", STACK.replace("trainyard-workflow", "other-workflow")),
    Ask("RegionCheck", "s3:PutObject", f"{HOME}/{keys.launched_region(REGION)}"),
    # Our regions alone, by the region of the request, and buckets of this account alone, whatever they are called.
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2.replace(REGION, AWAY)}:instance/i-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2.replace(REGION, AWAY)}:subnet/subnet-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"arn:aws:ec2:{AWAY}::image/ami-1"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2.replace(REGION, AWAY)}:spot-instances-request/*"),
    Ask("Admission", "ssm:GetParameter", f"arn:aws:ssm:{AWAY}::parameter{ARM_IMAGE}"),
    Ask("Node", "secretsmanager:GetSecretValue", f"{SECRETS.replace(REGION, AWAY)}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Node", "s3:PutObject", f"{BYTES}/jobs/resnet/artifacts/a", {"aws:ResourceAccount": "444455556666"}),
    Ask("ArtifactCheck", "s3:GetObject", f"{BYTES}/jobs/resnet/artifacts/a", {"aws:ResourceAccount": "444455556666"}),
    Ask("Attendant", "states:StartExecution", BUILD),
    *asks("OwnImages", "s3:GetObject PutObject", f"{ASSETS}/{'0' * 64}.zip"),
    *asks("OwnImages", "s3:PutObject", CONTEXT, f"{HOME}/{GridPrefix('sweep').description}"),
    Ask("OwnImages", "s3:PutObject", OWN_CONTEXT.replace("trainyard-home", "other-home")),
    Ask("OwnImages", "s3:DeleteObject", OWN_CONTEXT),
    Ask("OwnImages", "states:StartExecution", f"{STATES}:{names.grid_machine('trainyard')}"),
    Ask("OwnImages", "states:StartExecution", f"{STATES}:{names.machine('trainyard')}"),
    Ask("OwnImages", "states:StopExecution", BUILDING),
    Ask("OwnImages", "codebuild:StartBuild", PROJECT),
    Ask("OwnImages", "ecr:PutImage", OURS_OF_IMAGES),
    Ask("OwnImages", "iam:PassRole", role("Build"), {"iam:PassedToService": "codebuild.amazonaws.com"}),
    *asks("OwnImagesMachine", "lambda:InvokeFunction", function("ImageBuild"), f"{function('OwnImages')}:1"),
    Ask("OwnImagesMachine", "states:StartExecution", BUILD),
]

# Where the settings name more: regions of our own, a bucket of data, an account whose images are copied (tests/security/conftest.py).
GRID_CHILD = OURS_OF_IMAGES.replace("trainyard/images", "trainyard/grid-child")
ALLOWED_WIDE = [
    *asks("Build", "ecr:PutImage UploadLayerPart", OURS_OF_IMAGES.replace(REGION, "us-east-1")),
    *asks("Build", "ecr:CompleteLayerUpload DescribeImages", GRID_CHILD.replace(REGION, "ap-south-1")),
    Ask("Build", "ecr:BatchGetImage", "arn:aws:ecr:eu-west-3:777788889999:repository/lab/x"),
    Ask("Build", "s3:GetObjectVersion", "arn:aws:s3:::imagenet/context.zip"),
    Ask("ImageBuild", "ecr:DescribeImages", OURS_OF_IMAGES.replace(REGION, "us-east-1")),
]
DENIED_WIDE = [
    *asks("Build", "ecr:PutImage", OURS_OF_IMAGES.replace(REGION, "eu-west-3"), CACHE.replace(REGION, "us-east-1")),
    Ask("Build", "ecr:PutImage", "arn:aws:ecr:eu-central-1:777788889999:repository/lab/x"),
    Ask("Build", "ecr:BatchGetImage", THEIRS_OF_IMAGES.replace(ACCOUNT, STRANGER)),
    Ask("Build", "s3:GetObject", "arn:aws:s3:::elsewhere/context.tar.gz"),
]

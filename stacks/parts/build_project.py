"""The CodeBuild project that runs image_builder/build.sh, so that people need no Docker of their own."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks.parts.acknowledged import acknowledge
from stacks.parts.assembled import CONTRACT, ROOT, Assembled
from stacks.parts.right import Right, grant, role
from stacks.parts.rights import READ

IMAGE = codebuild.LinuxBuildImage.AMAZON_LINUX_2023_5
"""Has Docker 27 with buildx 0.17, Python and the AWS command line."""
ARM_IMAGE = codebuild.LinuxArmBuildImage.AMAZON_LINUX_2023_STANDARD_3_0
"""The same for arm64: a build for these processors runs on such a machine, as nothing emulates them."""
SCRIPT = {"version": "0.2", "phases": {"build": {"commands": ["bash build.sh"]}}}
SOURCE_BUCKET = ("s3:GetBucketAcl", "s3:GetBucketLocation")
"""What CodeBuild asks the source's bucket, with the project's role, before it fetches anything."""
KEPT_DAYS = 30
"""A layer that no build has used for so many days is deleted."""


class BuildCache(ecr.Repository):
    """The repository to which builds push their image first, and in which they find earlier layers; its tags move."""

    def __init__(self, scope: Construct, name: str, *, physical_name: str) -> None:
        super().__init__(
            scope,
            name,
            repository_name=physical_name,
            image_scan_on_push=False,
            image_tag_mutability=ecr.TagMutability.MUTABLE,
            encryption=ecr.RepositoryEncryption.AES_256,
            lifecycle_rules=[
                ecr.LifecycleRule(
                    description=f"Images of the last {KEPT_DAYS} days", max_image_age=cdk.Duration.days(KEPT_DAYS)
                )
            ],
            removal_policy=cdk.RemovalPolicy.DESTROY,
            empty_on_delete=True,
        )
        acknowledge(
            self, "A cache is found by a name that stays; what is copied from it is named by its digest.", "CKV_AWS_51"
        )
        acknowledge(self, "The same image is scanned in each repository that it is copied to.", "CKV_AWS_163")
        acknowledge(
            self,
            "ECR encrypts with a key of its own; the builds read everything here, so another key would hide nothing.",
            "CKV_AWS_136",
        )


class BuildProject(Construct):
    """`project` takes its order from an environment variable of each build, and may push where `rights` allow it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        physical_name: str,
        starter: str,
        rights: Sequence[Right],
        log: logs.LogGroup,
        compute: codebuild.ComputeType,
        timeout: cdk.Duration,
        queued_timeout: cdk.Duration,
    ) -> None:
        super().__init__(scope, name)
        """`starter` is the machine that starts the project's builds, in words."""
        script = assets.Asset(
            self,
            "Script",
            path=str(ROOT / "image_builder"),
            asset_hash_type=cdk.AssetHashType.OUTPUT,
            bundling=Assembled({".": ROOT / "image_builder", "contract": CONTRACT}).options(),
        )
        builder = role(
            self, "Role", "codebuild.amazonaws.com", "Builds images and pushes them to the deployment's repositories"
        )
        log.grant_write(builder)
        grant(
            builder,
            Right("ReadTheScript", READ, [script.bucket.arn_for_objects(script.s3_object_key)]),
            Right("ReadBucketProperties", SOURCE_BUCKET, [script.bucket.bucket_arn]),
            *rights,
        )
        self.project = codebuild.Project(
            self,
            "Project",
            project_name=physical_name,
            description=f"Builds or copies one image and pushes it to every region; started by {starter}",
            source=codebuild.Source.s3(bucket=script.bucket, path=script.s3_object_key),
            build_spec=codebuild.BuildSpec.from_object_to_yaml(SCRIPT),
            environment=codebuild.BuildEnvironment(build_image=IMAGE, compute_type=compute, privileged=True),
            logging=codebuild.LoggingOptions(cloud_watch=codebuild.CloudWatchLoggingOptions(log_group=log)),
            timeout=timeout,
            queued_timeout=queued_timeout,
            # Otherwise the CDK would add rights on report groups and on whole buckets of assets.
            role=builder.without_policy_updates(),
            grant_report_group_permissions=False,
        )
        self.project.node.add_dependency(builder)
        acknowledge(
            self.project,
            "Docker runs in the build, which is what the build is for; the machine is CodeBuild's and lives for one build.",
            "AwsSolutions-CB3",
            "CKV_AWS_316",
        )
        acknowledge(
            self.project,
            "A build has no artifacts of its own: what it makes goes to registries, which encrypt with keys of their own.",
            "AwsSolutions-CB4",
            "CKV_AWS_147",
        )
        acknowledge(self.project, "CDK writes a dependency that a reference makes already.", "W3005")

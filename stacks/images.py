"""The Images stack (home region): builds the platform's own images during the deploy; no local Docker is needed.

They have a machine, a project, a role, a cache and an S3 prefix of their own, which nothing that people or jobs start can write.

It is deployed last and nothing depends on it: if a build fails, the deploy reports it, and all other stacks stay.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from contract import errors, keys, names
from contract.image_environments import OwnImagesEnvironment
from contract.timing import Timing
from contract.timings import OwnImagesTiming
from stacks.parts.answering_machine import INPUT, AnsweringMachine, Waiting
from stacks.parts.assembled import Assembled
from stacks.parts.build_machine import BuildMachine, project_arn
from stacks.parts.build_project import BuildCache, BuildProject
from stacks.parts.common import Common
from stacks.parts.custom_resource import add_custom_resource
from stacks.parts.function import Function, Layer
from stacks.parts.image_rights import ImageRights
from stacks.parts.logs import log_group
from stacks.parts.own_images import CHILD, child_tag
from stacks.parts.right import Right
from stacks.parts.rights import READ

LONGEST_BUILD = cdk.Duration.minutes(30)
LONGEST_WAIT = cdk.Duration.hours(1)
"""The longest wait in CodeBuild's queue: a new account runs one build at a time."""
CLOUDFORMATION_WAITS = cdk.Duration.hours(1)
"""The longest wait of CloudFormation for a custom resource."""


class ImagesStack(cdk.Stack):
    """Depends on every region's repositories, which builds push to."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        child_base: str,
    ) -> None:
        """When a region is added, the deploy copies the images there. `child_base` is the address of the child's base image."""
        rights, timing, deployment = common.rights, common.timing, common.deployment
        super().__init__(scope, name, env=common.env, description=f"Trainyard {deployment}: the platform's own images")
        context = assets.Asset(
            self,
            "ChildContext",
            path=str(CHILD["."]),
            asset_hash_type=cdk.AssetHashType.OUTPUT,
            bundling=Assembled(CHILD).options(),
        )
        images = ImageRights(
            deployment=deployment,
            home_region=rights.home_region,
            regions=common.regions,
            repositories=(names.PLATFORM,),
            base_account="",
            copy_accounts=(),
            cache=names.PLATFORM_CACHE,
        )
        project = self._project(common, images)
        function = self._function(common, images, context)
        build = BuildMachine(
            self,
            "PlatformImages",
            physical_name=names.platform_machine(deployment),
            comment="Brings one of the platform's own images into every region. Started by a deploy alone.",
            function=function,
            project_name=names.platform_project(deployment),
            longest_build=LONGEST_BUILD.plus(LONGEST_WAIT),
        )
        build.node.add_dependency(project)
        waits = AnsweringMachine(
            self,
            "OwnImagesMachine",
            physical_name=names.image_machine(deployment),
            function=function,
            waiting=waiting(timing),
        )
        add_custom_resource(
            self,
            "Child",
            kind="OwnImage",
            function_arn=function.function_arn,
            wait=CLOUDFORMATION_WAITS,
            # A deploy that changes none of these properties asks and builds nothing.
            properties={
                "Tag": child_tag(child_base),
                "Base": child_base,
                "Bucket": context.s3_bucket_name,
                "Key": context.s3_object_key,
                "Regions": list(common.regions),
            },
            after=(waits, function, build),
            why="The function starts the machine by its name, which no reference says.",
        )

    def _function(self, common: Common, images: ImageRights, context: assets.Asset) -> Function:
        rights, deployment = common.rights, common.deployment
        return Function(
            self,
            "OwnImages",
            package="own_images",
            description="Has the platform's own images built, and waits for them",
            environment=OwnImagesEnvironment(
                deployment=deployment,
                bucket=rights.home_bucket,
                account=cdk.Aws.ACCOUNT_ID,
                suffix=cdk.Aws.URL_SUFFIX,
                home_region=rights.home_region,
                regions=common.regions,
                build_machine=rights.machine(names.platform_machine(deployment)),
                timing=common.timing.of(OwnImagesTiming),
            ),
            layer=Layer(self, "Libraries"),
            timeout=cdk.Duration.minutes(1),
            log_retention_days=common.log_retention_days,
            rights=[
                Right("ReadContexts", READ, [context.bucket.arn_for_objects(context.s3_object_key)]),
                Right("ListAssets", ["s3:ListBucket"], [context.bucket.bucket_arn]),
                rights.home("PutContexts", ["s3:PutObject"], keys.ANY_OWN_CONTEXT),
                rights.home(
                    "ReadRecords", ["s3:GetObject"], keys.ANY_OWN_CONTEXT, keys.ANY_OWN_RECORD, keys.ANY_OWN_BASE
                ),
                rights.list_home(),
                *rights.build_own_images(),
                images.describe(),
                Right(
                    "DescribeBuilds", ["codebuild:BatchGetBuilds"], [project_arn(names.platform_project(deployment))]
                ),
                Right("ReadBuildLogs", ["logs:GetLogEvents"], [self._log.log_group_arn]),
            ],
        )

    def _project(self, common: Common, images: ImageRights) -> BuildProject:
        """Reads contexts, writes records, and pushes to the platform's own repositories; nothing else can."""
        rights, deployment = common.rights, common.deployment
        self._log = log_group(
            self, "PlatformLog", days=common.log_retention_days, physical_name=names.platform_log_group(deployment)
        )
        BuildCache(self, "PlatformCache", physical_name=names.platform_cache(deployment))
        return BuildProject(
            self,
            "PlatformBuild",
            physical_name=names.platform_project(deployment),
            starter="a deploy",
            rights=[
                rights.home("ReadContexts", READ, keys.ANY_OWN_CONTEXT),
                rights.home("WriteRecords", ["s3:PutObject"], keys.ANY_OWN_RECORD, keys.ANY_OWN_BASE),
                *images.push(),
            ],
            log=self._log,
            compute=codebuild.ComputeType.SMALL,
            timeout=LONGEST_BUILD,
            queued_timeout=LONGEST_WAIT,
        )


def waiting(timing: Timing) -> Waiting:
    """Describes the wait for the platform's own images."""
    return Waiting(
        comment="Has one of the platform's own images built and brought into every region. Started by a deploy.",
        step="Build",
        does="Starts a build of the image's context, and asks until every region has the image.",
        unfinished=errors.StillBuilding,
        again_s=timing.image_again_s,
        patience_s=timing.image_patience_s,
        passes_on={"image": f"{{% {INPUT}.image %}}", "since": f"{{% {INPUT}.since %}}"},
        answers="Tells CloudFormation that every region has the image, or why not.",
        right="InvokeOwnImages",
        description="The machine of the platform's own images: invokes its function",
        done=("The image stands", "Every region has the image; CloudFormation goes on."),
        failed="The image does not exist in every region; the cause ends with the build's log.",
    )

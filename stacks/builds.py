"""The Builds stack (home region): the Build machine, its function, its CodeBuild project and the cache of layers."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_logs as logs
from aws_cdk import region_info
from constructs import Construct

from contract import keys, names
from contract.image_environments import ImageBuildEnvironment
from stacks.parts.build_machine import BuildMachine, project_arn
from stacks.parts.build_project import BuildCache, BuildProject
from stacks.parts.common import Common
from stacks.parts.function import Function, Layer
from stacks.parts.git_rights import GitHosts
from stacks.parts.image_rights import ImageRights
from stacks.parts.logs import log_group
from stacks.parts.outputs import started_here
from stacks.parts.right import Right
from stacks.parts.rights import READ, Rights

LONGEST_BUILD = cdk.Duration.hours(1)
LONGEST_WAIT = cdk.Duration.hours(1)
"""The longest wait in CodeBuild's queue: a new account runs one build at a time."""


HOSTS_PATIENCE = cdk.Duration.hours(24)
"""How long a build waits for the git host of its context: longer than most outages of one."""
FETCHING_MB = 2048
"""Reads a large context on a whole processor, beside the child that fetches code from git."""


class BuildsStack(cdk.Stack):
    """Brings images into the repositories of every region; the Region stacks own the repositories."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        common: Common,
        repositories: tuple[str, ...],
        data_buckets: tuple[str, ...],
        copy_accounts: tuple[str, ...],
        git: GitHosts,
        compute: codebuild.ComputeType = codebuild.ComputeType.SMALL,
    ) -> None:
        """`repositories` are short names, equal in every region, without the platform's own; private images of `copy_accounts` may be
        copied."""
        rights, regions = common.rights, common.regions
        deployment, home = rights.deployment, rights.home_region
        super().__init__(
            scope, name, env=common.env, description=f"Trainyard {deployment}: builds images into every region"
        )
        # In a region that the CDK does not know, containers have no short names, and a request that uses one is refused.
        base_account = region_info.Fact.find(home, region_info.FactName.DLC_REPOSITORY_ACCOUNT) or ""
        images = ImageRights(
            deployment=deployment,
            home_region=home,
            regions=regions,
            repositories=repositories,
            base_account=base_account,
            copy_accounts=copy_accounts,
        )
        reads = _read_contexts(rights, data_buckets)
        log = log_group(
            self, "BuildLog", days=common.log_retention_days, physical_name=names.build_log_group(deployment)
        )
        BuildCache(self, "BuildCache", physical_name=names.build_cache(deployment))
        project = BuildProject(
            self,
            "Build",
            physical_name=names.build_project(deployment),
            starter="the Build machine",
            rights=[*reads, *images.push()],
            log=log,
            compute=compute,
            timeout=LONGEST_BUILD,
            queued_timeout=LONGEST_WAIT,
        )
        environment = ImageBuildEnvironment(
            deployment=deployment,
            bucket=rights.home_bucket,
            account=cdk.Aws.ACCOUNT_ID,
            suffix=cdk.Aws.URL_SUFFIX,
            home_region=home,
            regions=regions,
            repositories=repositories,
            data_buckets=data_buckets,
            base_account=base_account,
            copy_accounts=copy_accounts,
            git_hosts=dict(git.secrets),
        )
        function = self._function(
            environment,
            common,
            *reads,
            rights.home("KeepContexts", ["s3:PutObject"], keys.ANY_CONTEXT),
            *git.read,
            rights.list_home(),
            *images.find_images(),
            *_follow_builds(deployment, log),
        )
        build = BuildMachine(
            self,
            "Images",
            physical_name=names.build_machine(deployment),
            function=function,
            comment="Brings one image into every region: builds it from a context in S3, or copies it from another registry.",
            project_name=names.build_project(deployment),
            longest_build=LONGEST_BUILD.plus(LONGEST_WAIT),
            hosts_patience=HOSTS_PATIENCE,
        )
        build.node.add_dependency(project)
        self._tell(build)

    def _tell(self, build: BuildMachine) -> None:
        arn = build.machine.state_machine_arn
        cdk.CfnOutput(self, "BuildMachine", value=arn, description="The state machine that brings images in")
        started_here(self, "BuildConsole", arn, "Open this, press Start execution, paste what image you want")

    def _function(self, environment: ImageBuildEnvironment, common: Common, *rights: Right) -> Function:
        return Function(
            self,
            "ImageBuild",
            package="image_build",
            description="Checks requests for images, and reports which region has which image",
            environment=environment,
            layer=Layer(self, "Libraries"),
            # Reads a context of 1 GB that unpacks to 10 GB to its end, which takes two to three minutes on a whole processor.
            timeout=cdk.Duration.minutes(10),
            memory_mb=FETCHING_MB,
            log_retention_days=common.log_retention_days,
            rights=rights,
        )


def _follow_builds(deployment: str, log: logs.LogGroup) -> list[Right]:
    """Sees how a build ended, and reads the end of its log."""
    return [
        Right("DescribeBuilds", ["codebuild:BatchGetBuilds"], [project_arn(names.build_project(deployment))]),
        Right("ReadBuildLogs", ["logs:GetLogEvents"], [log.log_group_arn]),
    ]


def _read_contexts(rights: Rights, data_buckets: Sequence[str]) -> list[Right]:
    return [rights.home("ReadContexts", READ, f"{keys.UPLOADS}*", keys.ANY_CONTEXT), *rights.data(data_buckets)]

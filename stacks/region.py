"""The Region stack (one a training region): network, placement groups, launch template, bucket of bytes, images.

It takes nothing from home: role, user data and tags come with each launch.
"""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from contract import names
from contract.codec import encode
from contract.places import Place, Zone
from stacks.parts.acknowledged import acknowledge
from stacks.parts.bucket import Bucket
from stacks.parts.launch_template import LaunchTemplate
from stacks.parts.network import Network

KEPT_IMAGES = 100


class RegionStack(cdk.Stack):
    """Describes itself in one SSM parameter, which is all that the rest of the deployment knows of it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        env: cdk.Environment,
        deployment: str,
        cidr: str,
        nat_gateways: int,
        interface_endpoints: tuple[str, ...],
        placement_groups_per_zone: int,
        keep_data: bool,
    ) -> None:
        region = env.region
        assert region is not None
        super().__init__(scope, name, env=env, description=f"Trainyard {deployment}: where nodes run in {region}")
        network = Network(
            self,
            "Network",
            region=region,
            cidr=cidr,
            nat_gateways=nat_gateways,
            interface_endpoints=interface_endpoints,
        )
        template = LaunchTemplate(self, "Nodes", deployment=deployment)
        bucket = Bucket(
            self,
            "Bytes",
            physical_name=names.bytes_bucket(deployment, cdk.Aws.ACCOUNT_ID, region),
            days=1,  # thinned checkpoints are large, and were thinned on purpose
            keep=keep_data,
        )
        repository = self._repository(deployment)
        place = Place(
            region=region,
            bucket=bucket.bucket_name,
            security_group=network.security_group.security_group_id,
            launch_template=template.id,
            launch_template_version=template.version,
            zones=tuple(
                Zone(
                    name=subnet.availability_zone,
                    subnet=subnet.subnet_id,
                    placement_groups=self._placement_groups(index, placement_groups_per_zone),
                )
                for index, subnet in enumerate(network.node_subnets, start=1)
            ),
        )
        ssm.StringParameter(
            self,
            "Place",
            parameter_name=names.region_parameter(deployment, region),
            string_value=self.to_json_string(json.loads(encode(place))),
            description="What a launch in this region needs to know (contract.places.Place)",
        )

        cdk.CfnOutput(self, "BytesBucket", value=bucket.bucket_name, description="Checkpoints and artifacts")
        cdk.CfnOutput(self, "ImageRepository", value=repository.repository_uri, description="Push images of jobs here")

    def _placement_groups(self, zone: int, count: int) -> tuple[str, ...]:
        """A group belongs to the zone of its first instance; by number, so that a group never has to change zones."""
        return tuple(
            ec2.CfnPlacementGroup(self, f"Zone{zone}Group{number}", strategy="cluster").ref
            for number in range(1, count + 1)
        )

    def _repository(self, deployment: str) -> ecr.Repository:
        repository = ecr.Repository(
            self,
            "Images",
            repository_name=names.repository(deployment),
            image_scan_on_push=True,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            encryption=ecr.RepositoryEncryption.AES_256,
            lifecycle_rules=[
                ecr.LifecycleRule(description=f"The newest {KEPT_IMAGES} images", max_image_count=KEPT_IMAGES)
            ],
            # Images can be built again, and a repository that stayed would be in the way of the next deployment.
            removal_policy=cdk.RemovalPolicy.DESTROY,
            empty_on_delete=True,
        )
        acknowledge(
            repository,
            "ECR encrypts with a key of its own; every node may pull, so another key would hide nothing.",
            "CKV_AWS_136",
        )
        return repository

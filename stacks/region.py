"""The Region stack, one per region: bucket of bytes and images; where nodes run, also network, placement groups, launch template.

It uses nothing from home: role, user data and tags come with each launch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from contract import keys, names
from contract.campaigns import Campaign
from contract.codec import encode
from contract.mounts import FileSystem, FileSystems, Kind
from contract.places import Place, Zone
from stacks.file_system_settings import FileSystemSettings
from stacks.network_settings import NetworkSettings
from stacks.parts.access_logs import AccessLogs
from stacks.parts.bucket import Bucket
from stacks.parts.campaign_rules import forward_uploads
from stacks.parts.customer_key import CustomerKey
from stacks.parts.default_group import ClosedDefaultGroup
from stacks.parts.existing_network import ExistingNetwork
from stacks.parts.file_clients import FileClients
from stacks.parts.flow_logs import FlowLogs
from stacks.parts.launch_template import LaunchTemplate
from stacks.parts.network import Network
from stacks.parts.repository import Readers, Repository
from stacks.parts.vpc_binding import bind_jobs
from stacks.parts.zones import ZoneLookup, looked_up

ENVIRONMENT_DAYS = 14
"""For how long an environment is kept for a job's later attempts; after that they install it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRegion:
    """What a region in which nodes run has beside its bucket and its images."""

    cidr: str
    """Of the network to make; empty where the account has one."""
    zones: tuple[str, ...]
    """Names of the zones; empty for a look-up at deploy, and for a network that the account has."""
    vpc: str
    """The id of a VPC that the account has; empty where one is made."""
    subnets: Mapping[str, str]
    """Availability zone to the id of its subnet in that VPC."""
    volume_key: str
    """ARN of the key under which the settings want nodes' disks; empty for none."""
    settings: NetworkSettings
    placement_groups_per_zone: int
    tags: Mapping[str, str]
    """The settings' own, for what the CDK's Tags pass over."""
    file_systems: tuple[FileSystemSettings, ...] = ()
    """Those of the region."""


class RegionStack(cdk.Stack):
    """Describes itself in one SSM parameter, which is all that the rest of the deployment knows about it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        env: cdk.Environment,
        deployment: str,
        training: TrainingRegion | None,
        repositories: tuple[str, ...],
        image_readers: Readers,
        keep_data: bool,
        log_retention_days: int,
        job_role: str,
        others_train: bool,
        home_region: str,
        forwarded: Mapping[str, Campaign],
        compliance: bool = False,
    ) -> None:
        """Without `training` the region serves only the grid, and costs nothing while idle. `repositories` are short
        names, `job_role` is the name of the role of jobs; `others_train` says that nodes run in other regions too.
        Uploads that start one of the campaigns `forwarded`, whose buckets are in this region, are sent home. With `compliance` the
        region has a key, access logs, and for a network flow logs and a closed default security group."""
        region = env.region
        assert region is not None
        what = "where nodes run" if training else "bytes and images"
        super().__init__(scope, name, env=env, description=f"Trainyard {deployment}: {what} in {region}")
        bucket = Bucket(
            self,
            "Bytes",
            physical_name=names.bytes_bucket(deployment, cdk.Aws.ACCOUNT_ID, region),
            days=1,  # thinned checkpoints are large, and were thinned on purpose
            keep=keep_data,
            forgets={keys.ENVIRONMENTS: ENVIRONMENT_DAYS},
        )
        self._log_retention_days = log_retention_days
        self.network: Network | ExistingNetwork | None = None
        """None where no nodes run."""
        self.key: CustomerKey | None = None
        """Encrypts what the region stores, and the disks of its nodes; None without the setting `compliance`."""
        place = Place(region=region, bucket=bucket.bucket_name)
        if training:
            place = self._trains(place, deployment, training)
        forward_uploads(self, forwarded, home_region=home_region)
        vpc = self.network.vpc if self.network else None
        bind_jobs(bucket, job_role=job_role, vpc=vpc, read_elsewhere=others_train)
        if compliance:
            self.key = CustomerKey(
                self, "Key", alias=names.region_key(deployment), deployment=deployment, region=region, keep=keep_data
            )
            AccessLogs(self, "AccessLogs", buckets=[bucket], days=log_retention_days)
            if self.network:
                self.key.let_spot_launch()
                place = replace(place, volume_key=place.volume_key or self.key.key_arn)
            if isinstance(self.network, Network):  # another's network has its own flow logs, and its own rules
                self._watch(self.network, deployment, region)
        ssm.StringParameter(
            self,
            "Place",
            parameter_name=names.region_parameter(deployment, region),
            string_value=self.to_json_string(_described(place)),
            description="What a launch in this region needs to know (contract.places.Place)",
        )
        cdk.CfnOutput(self, "BytesBucket", value=bucket.bucket_name, description="Checkpoints and artifacts")
        for one in repositories:
            repository = Repository(
                self,
                f"Repository-{one}",
                physical_name=names.repository(deployment, one),
                readers=Readers() if one == names.PLATFORM else image_readers,  # only this account needs our own images
            )
            output = "".join(word.title() for word in (*one.split("-"), "repository"))
            cdk.CfnOutput(self, output, value=repository.repository_uri, description=f"Images called {one} here")

    def _trains(self, place: Place, deployment: str, training: TrainingRegion) -> Place:
        """Returns the place with everything that a launch in it needs."""
        self.network = network = self._find_network(place.region, deployment, training)
        if training.file_systems:
            self._offer(network, deployment, place.region, training.file_systems)
        template = LaunchTemplate(self, "Nodes", deployment=deployment, further_tags=training.tags)
        return replace(
            place,
            security_groups=tuple(one.security_group_id for one in network.security_groups),
            launch_template=template.id,
            launch_template_version=template.version,
            volume_key=training.volume_key,
            zones=tuple(
                Zone(
                    name=subnet.availability_zone,
                    subnet=subnet.subnet_id,
                    placement_groups=self._placement_groups(index, training.placement_groups_per_zone),
                )
                for index, subnet in enumerate(network.node_subnets, start=1)
            ),
        )

    def _find_network(self, region: str, deployment: str, training: TrainingRegion) -> Network | ExistingNetwork:
        settings = training.settings
        if training.vpc:
            return ExistingNetwork(
                self,
                "Network",
                vpc=training.vpc,
                subnets=training.subnets,
                security_groups=settings.security_groups_per_region,
            )
        return Network(
            self,
            "Network",
            cidr=training.cidr,
            zones=training.zones or self._looked_up(region, deployment, training),
            nat_gateways=settings.nat_gateways,
            interface_endpoints=settings.interface_endpoints,
            security_groups=settings.security_groups_per_region,
        )

    def _offer(
        self,
        network: Network | ExistingNetwork,
        deployment: str,
        region: str,
        file_systems: Sequence[FileSystemSettings],
    ) -> None:
        """Tells Admit of the file systems. Not in the region's own parameter, which is full at its largest."""
        offered = FileSystems(file_systems=tuple(self._reached(network, one) for one in file_systems))
        ssm.StringParameter(
            self,
            "FileSystems",
            parameter_name=names.file_systems_parameter(deployment, region),
            string_value=self.to_json_string(json.loads(encode(offered))),
            description="What jobs of this region may mount (contract.mounts.FileSystems)",
        )

    def _reached(self, network: Network | ExistingNetwork, one: FileSystemSettings) -> FileSystem:
        clients = FileClients(
            self,
            f"FileSystem-{one.name}",
            vpc=network.vpc,
            kind=Kind(one.kind),
            file_system=one.name,
            security_group=one.security_group,
        )
        return one.described(clients.id)

    def _watch(self, network: Network, deployment: str, region: str) -> None:
        FlowLogs(self, "FlowLogs", vpc=network.vpc, log_retention_days=self._log_retention_days)
        ClosedDefaultGroup(
            self,
            "ClosedDefaultGroup",
            vpc=network.vpc,
            deployment=deployment,
            region=region,
            log_retention_days=self._log_retention_days,
        )

    def _looked_up(self, region: str, deployment: str, training: TrainingRegion) -> tuple[str, ...]:
        lookup = ZoneLookup(
            self,
            "Zones",
            deployment=deployment,
            region=region,
            count=looked_up(region, training.cidr),
            log_retention_days=self._log_retention_days,
        )
        return lookup.names

    def _placement_groups(self, zone: int, count: int) -> tuple[str, ...]:
        """Makes groups by zone number: a group belongs to the zone of its first instance, so it must never change zones."""
        return tuple(
            ec2.CfnPlacementGroup(self, f"Zone{zone}Group{number}", strategy="cluster").ref
            for number in range(1, count + 1)
        )


def _described(place: Place) -> dict[str, Any]:
    """Leaves out a key that there is not: the templates of a deployment without customer keys say nothing of keys."""
    described: dict[str, Any] = json.loads(encode(place))
    return described if place.volume_key else {name: value for name, value in described.items() if name != "volume_key"}

"""A deployed Trainyard on the fake: one region with its stack, the home bucket, and an admitted job."""

from __future__ import annotations

from dataclasses import replace

from contract import keys
from contract.codec import encode
from contract.jobs import Job
from tests.builders import IMAGE, JOB, NOW, PLACE
from tests.fakes.aws import Aws
from tests.fakes.ec2 import Ec2
from tests.fakes.ec2_catalogue import Catalogue, Template
from tests.fakes.functions import PROFILE
from tests.fakes.s3 import Bucket

TEMPLATE = Template(
    version=PLACE.launch_template_version,
    data={
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
    },
)


def catalogue() -> Catalogue:
    """What the Region stack of `builders.PLACE` leaves in a region."""
    return Catalogue(
        zones=tuple(zone.name for zone in PLACE.zones),
        subnets={zone.subnet: zone.name for zone in PLACE.zones},
        groups={group for zone in PLACE.zones for group in zone.placement_groups},
        security_groups={PLACE.security_group},
        templates={PLACE.launch_template: TEMPLATE},
        profiles={PROFILE},
        images={IMAGE.id: (IMAGE.root_device, IMAGE.snapshot_gb)},
    )


def deployed(*, now: float = NOW) -> Aws:
    """An account with one deployment, and nothing running."""
    fake = Aws(now=now)
    fake.open_region(PLACE.region, catalogue())
    fake.s3.buckets[JOB.home_bucket] = Bucket(region=JOB.home_region, notifies=True)
    fake.s3.buckets[PLACE.bucket] = Bucket(region=PLACE.region)
    return fake


def admitted(fake: Aws, job: Job = JOB) -> Job:
    """`job` as Admit would have written it now."""
    now = fake.clock.now
    job = replace(job, admitted_at=now, deadline=int(now + job.max_hours * 3600))
    fake.s3.write(job.home_bucket, keys.JobPrefix(job.id).description, encode(job))
    return job


def home(fake: Aws) -> Ec2:
    """EC2 of the one region."""
    return fake.ec2[PLACE.region]

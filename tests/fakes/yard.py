"""A deployed Trainyard on the fake: one region with its stack, the home bucket, and an admitted job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from contract import items, keys, names
from contract.codec import encode
from contract.jobs import Job
from contract.places import Place, Zone
from tests.builders import ADMISSION, IMAGE, JOB, NOW, PLACE
from tests.fakes.aws import Aws
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2_catalogue import Catalogue, Template
from tests.fakes.functions import PROFILE
from tests.fakes.s3 import Bucket
from tests.fakes.state import TABLE, store

TEMPLATE = Template(
    version=PLACE.launch_template_version,
    data={
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
    },
)
ABROAD = Place(
    region="eu-west-1",
    bucket="yard-bytes-123456789012-eu-west-1",
    security_groups=("sg-4", "sg-5", "sg-6"),
    launch_template="lt-2",
    launch_template_version=PLACE.launch_template_version,
    zones=(Zone(name="eu-west-1a", subnet="subnet-abroad", placement_groups=("group-abroad",)),),
)
"""A second region, of which home hears no events. By name it comes after home."""
PLACES = (PLACE, ABROAD)


def catalogue(place: Place = PLACE) -> Catalogue:
    """What the Region stack of `place` leaves in a region."""
    return Catalogue(
        zones=tuple(zone.name for zone in place.zones),
        subnets={zone.subnet: zone.name for zone in place.zones},
        groups={group for zone in place.zones for group in zone.placement_groups},
        security_groups=set(place.security_groups),
        templates={place.launch_template: TEMPLATE},
        profiles={PROFILE},
        images={IMAGE.id: (IMAGE.root_device, IMAGE.snapshot_gb)},
    )


def deployed(*, now: float = NOW, places: Iterable[Place] = (PLACE,), fake: Aws | None = None) -> Aws:
    """An account with one deployment, and nothing running."""
    fake = fake or Aws(now=now)
    fake.batch.open(names.grid_queue(JOB.deployment))
    fake.s3.buckets[JOB.home_bucket] = Bucket(region=JOB.home_region)
    fake.table.open(TABLE)
    for place in places:
        fake.open_region(place.region, catalogue(place))
        fake.s3.buckets[place.bucket] = Bucket(region=place.region)
    return fake


def admits(fake: Aws, places: Iterable[Place] = (PLACE,)) -> Aws:
    """What requests need beside: the note that each Region stack leaves, and the agent's archive of the deploy."""
    fake.s3.buckets[ADMISSION.agent_bucket] = Bucket(region=JOB.home_region)
    fake.s3.write(ADMISSION.agent_bucket, ADMISSION.agent_key, b"agent")
    for place in places:
        name = names.region_parameter(JOB.deployment, place.region)
        fake.directory.parameters[place.region, name] = encode(place).decode()
    return fake


def admitted(fake: Aws, job: Job = JOB) -> Job:
    """`job` as Admit would have written it now."""
    now = fake.clock.now
    job = replace(job, admitted_at=now, deadline=int(now + job.max_hours * 3600))
    fake.s3.write(job.home_bucket, keys.JobPrefix(job.id).description, encode(job))
    store(fake, items.job(job.id), encode(job))
    return job


def home(fake: Aws) -> FakeEc2:
    """EC2 of the home region."""
    return fake.ec2[PLACE.region]

"""Ordinary values of the contract; a test says by `replace` what is out of the ordinary."""

from __future__ import annotations

from dataclasses import replace

from contract import names, tags
from contract.environments import AdmissionEnvironment, GridLimits
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Ami, Code, Job, LaunchShape, Market, Rung
from contract.limits import Limits
from contract.mounts import FileSystem, JobMount, Kind
from contract.places import Place, Zone
from contract.roles import Role, RoleEnd
from contract.timing import Timing

NOW = 1_800_000_000.0
NODE_ROLE = "AROAEXAMPLENODE"
"""Id of the nodes' role."""
JOB_ROLE = "arn:aws:iam::123456789012:role/yard-job-eu-central-1"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:yard-topic"
JOB_ROLES = {"corpus": "arn:aws:iam::444455556666:role/corpus", "datasets": "arn:aws:iam::123456789012:role/datasets"}
IMAGE = Ami(
    id="ami-0123456789abcdef0", root_device="/dev/xvda", snapshot_gb=75, owner=names.AWS_IMAGES, architecture="x86_64"
)
ZONES = tuple(
    Zone(
        name=f"eu-central-1{letter}",
        subnet=f"subnet-{letter}",
        placement_groups=(f"group-{letter}-0", f"group-{letter}-1"),
    )
    for letter in "abc"
)
PLACE = Place(
    region="eu-central-1",
    bucket="yard-bytes-123456789012-eu-central-1",
    security_groups=("sg-1", "sg-2", "sg-3"),
    launch_template="lt-1",
    launch_template_version="3",
    zones=ZONES,
)

FILE_SYSTEMS = (
    FileSystem(name="corpus", kind=Kind.FSX, id="fs-0123456789abcdef0", clients="sg-corpus", mount_name="abcdefgh"),
    FileSystem(
        name="home", kind=Kind.EFS, id="fs-0123456789abcdef1", clients="sg-home", access_point="fsap-0123456789abcdef0"
    ),
    FileSystem(name="images", kind=Kind.S3FILES, id="fs-0123456789abcdef2", clients="sg-images"),
)
"""What jobs of a region may mount."""
MOUNTED = tuple(
    JobMount(file_system=one, region=PLACE.region, at=f"/{one.name}", read_only=True) for one in FILE_SYSTEMS
)
"""All of them, as a job has them."""


def rung(
    zone: str = "eu-central-1a", instance_type: str = "g5.xlarge", region: str = "eu-central-1", cluster: bool = True
) -> Rung:
    return Rung(
        region=region, zone=zone, instance_type=instance_type, market=Market.ON_DEMAND, image=IMAGE, cluster=cluster
    )


JOB = Job(
    id="job-1",
    deployment="yard",
    execution="arn:aws:states:eu-central-1:123456789012:execution:yard-train:job-1",
    owner="ada",
    admitted_at=NOW,
    deadline=int(NOW) + 24 * 3600,
    command=("python", "train.py"),
    code=Code(key="jobs/job-1/code/code.tar.gz", source="s3://yard-home/uploads/a.tar.gz"),
    nodes=2,
    volume_gb=100,
    checkpoint_minutes=10.0,
    max_hours=24.0,
    recoveries=2,
    home_bucket="yard-home",
    home_region="eu-central-1",
    log_group="/trainyard/yard/nodes",
    ladder=(rung(), rung("eu-central-1b"), rung("eu-central-1a", "g4dn.xlarge")),
    places={"eu-central-1": PLACE},
    timing=Timing(),
    environment={},
    secrets={},
    agent="a" * 64,
)
ROLES = (
    Role(name="chief", count=1, command=("python", "train.py")),
    Role(name="worker", count=2, command=("python", "train.py")),
    Role(name="ps", count=1, ends=RoleEnd.SERVED, checkpoints=False, command=("python", "serve.py")),
    Role(name="evaluator", count=1, ends=RoleEnd.ALONE, checkpoints=False, command=("python", "look.py")),
)


def shaped(zone: str, second: str = "m5.large") -> Rung:
    """A rung for ROLES: the chief and the workers are alike, and so are the others."""
    first = rung(zone)
    other = replace(first, instance_type=second)
    shapes = (
        LaunchShape(rung=first, first_rank=0, nodes=3, role="chief+worker"),
        LaunchShape(rung=other, first_rank=3, nodes=2, role="ps+evaluator"),
    )
    return replace(first, instance_type=f"{first.instance_type} + {second}", shapes=shapes)


WITH_ROLES = replace(JOB, nodes=5, roles=ROLES, command=(), ladder=tuple(shaped(f"eu-central-1{one}") for one in "abc"))


LIMITS = Limits(
    max_nodes=16, max_hours=100.0, recoveries=2, volume_gb=100, max_volume_gb=1000, instance_types=("g*", "c7i.*")
)
ADMISSION = AdmissionEnvironment(
    deployment="yard",
    bucket="yard-home",
    table="yard-state",
    log_group="/trainyard/yard/nodes",
    home_region="eu-central-1",
    regions=("eu-central-1",),
    images={"x86_64": "/aws/service/x", "arm64": "/aws/service/a"},
    machine_images={"digits": "/aws/service/x", "graviton": "/aws/service/a"},
    image_owners=("444455556666",),
    repositories=("images",),
    base_accounts={"": "763104351884"},
    copy_accounts=("777788889999",),
    git_hosts={"git.example.com": "", "private.example.com": "git-token"},
    data_buckets=("datasets",),
    job_roles=tuple(JOB_ROLES),
    attendant="attendant",
    instance_profile="arn:aws:iam::123456789012:instance-profile/yard-node",
    master_port=29500,
    agent="a" * 64,
    agent_bucket="assets",
    agent_key="agent.zip",
    limits=LIMITS,
    timing=Timing(),
)
LAUNCHED = LaunchAnswer(outcome=LaunchOutcome.LAUNCHED, at=NOW, instances=("i-0", "i-1"), master_address="10.0.0.4")
INTENT = Intent(
    job="job-1",
    attempt=1,
    walk=1,
    started_at=NOW,
    patience_until=NOW + 1800,
    user_data="#!/bin/bash\n",
    held_by="me",
    held_until=NOW + 300,
    steps=tuple(Step(rung=one, request={"InstanceType": one.instance_type}) for one in JOB.ladder),
)
TAGS_AT_LAUNCH = (
    tags.DEPLOYMENT,
    tags.JOB,
    tags.ATTEMPT,
    tags.EXECUTION,
    tags.OWNER,
    tags.DEADLINE,
    tags.NODES,
    tags.MASTER_PORT,
    tags.ROLE,
    tags.NAME,
)
LINKS_AT_MOST = 2600
"""Characters that all links of a job take at most, with their words: names, buckets and keys are bounded."""
GRID_LIMITS = GridLimits(
    max_lines=10_000,
    max_concurrent=1000,
    submissions_per_second=1.0,
    max_hours=72.0,
    max_instances=16,
    max_volume_gb=2000,
    instance_types=("ml.*",),
)

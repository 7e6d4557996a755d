"""The bytes of a launch: RunInstances' arguments, the user data, and the token that ties them together."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contract import tags
from contract.intents import Step
from contract.jobs import Job, LaunchShape, Market, Rung
from contract.places import Place, Zone
from contract.volumes import LEAST_IOPS, LEAST_THROUGHPUT
from launcher import interfaces

VOLUME_TYPE = "gp3"
SPOT: Mapping[str, Any] = {
    "InstanceMarketOptions": {
        "MarketType": "spot",
        "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
    }
}
"""At the price of the day, on-demand's at most. A persistent request would start a node again that powered itself off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchMarks:
    """What a deployment puts on everything that its launches make, whatever the job."""

    profile: str
    """ARN of the instance profile."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """The settings' own tags, which stand before those of the job's request. Ours stand before both."""


def build_arguments(
    job: Job,
    attempt: int,
    rung: Rung,
    *,
    group: str,
    security_group: str,
    marks: LaunchMarks,
    shape: LaunchShape | None = None,
) -> dict[str, Any]:
    """RunInstances for all nodes on one rung, or for those of one shape, whole but for UserData and ClientToken.

    `group` is a placement group's name, empty for none. Every volume is encrypted, those of the image's further devices too: IAM denies
    any other. The launch itself sets the tags: a later CreateTags could fail, and an untagged instance belongs to no job.
    """
    shape = shape or LaunchShape(rung=rung, first_rank=0, nodes=job.nodes)
    place = job.places[rung.region]
    key = {"KmsKeyId": place.volume_key} if place.volume_key else {}
    encrypted = {"Encrypted": True, "DeleteOnTermination": True, **key}
    tagged = {**job.tags, **marks.tags, **_tags(job, attempt, shape)}
    return {
        "MinCount": shape.nodes,
        "MaxCount": shape.nodes,
        "InstanceType": rung.instance_type,
        "ImageId": rung.image.id,
        "LaunchTemplate": {"LaunchTemplateId": place.launch_template, "Version": place.launch_template_version},
        "IamInstanceProfile": {"Arn": marks.profile},
        "InstanceInitiatedShutdownBehavior": "terminate",
        **(SPOT if rung.market is Market.SPOT else _target_reservation(rung)),
        "Placement": {"AvailabilityZone": rung.zone} | ({"GroupName": group} if group else {}),
        "NetworkInterfaces": interfaces.list_interfaces(
            job.interfaces_of(rung.instance_type),
            subnet=_zone(place, rung.zone).subnet,
            security_groups=[security_group, *_clients(job, rung)],
        ),
        "BlockDeviceMappings": [
            {
                "DeviceName": rung.image.root_device,
                "Ebs": {
                    "VolumeSize": job.volume_gb,
                    "VolumeType": VOLUME_TYPE,
                    **_performance(job),
                    **encrypted,
                },
            },
            *({"DeviceName": device, "Ebs": encrypted} for device in rung.image.further_devices),
        ],
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tagged.items()]}
            for kind in _tagged_kinds(rung)
        ],
    }


def security_group(step: Step) -> str:
    """Returns the job's own that a request names for its nodes, ahead of those of file systems; empty in a request that names none."""
    return next((str(group) for one in step.request.get("NetworkInterfaces", []) for group in one["Groups"]), "")


def _clients(job: Job, rung: Rung) -> list[str]:
    """Returns the groups that let nodes reach the file systems which the job mounts, each once: without them a node reaches none."""
    return list(dict.fromkeys(one.file_system.clients for one in job.mounted if one.region == rung.region))


def _performance(job: Job) -> dict[str, int]:
    """Returns what the root disk gets beyond what every gp3 volume has. Admit fitted both to the disk's size."""
    return ({"Iops": job.volume_iops} if job.volume_iops > LEAST_IOPS else {}) | (
        {"Throughput": job.volume_throughput} if job.volume_throughput > LEAST_THROUGHPUT else {}
    )


def _target_reservation(rung: Rung) -> dict[str, Any]:
    """Targets one reservation: EC2 then launches nothing elsewhere. With a group in its place it would launch on demand whatever the
    group has no room for."""
    if not rung.reservation:
        return {}
    of_its_own = (
        {} if rung.market is Market.RESERVATION else {"InstanceMarketOptions": {"MarketType": rung.market.value}}
    )
    target = {"CapacityReservationTarget": {"CapacityReservationId": rung.reservation}}
    return {**of_its_own, "CapacityReservationSpecification": target}


def _tagged_kinds(rung: Rung) -> tuple[str, ...]:
    """Returns the kinds of resources that the launch creates and tags; a spot rung also creates a spot request."""
    kinds = ("instance", "volume", "network-interface")
    return (*kinds, "spot-instances-request") if rung.market is Market.SPOT else kinds


def _zone(place: Place, name: str) -> Zone:
    return next(zone for zone in place.zones if zone.name == name)


def name_node(job: Job, attempt: int, rank: int) -> str:
    """Returns what the console shows of a node; at most 256 characters, as every tag."""
    return f"{job.id}/{attempt}/{rank}"


def _tags(job: Job, attempt: int, shape: LaunchShape) -> dict[str, str]:
    return {
        tags.NAME: name_node(job, attempt, 0) if job.nodes == 1 else f"{job.id}/{attempt}",
        tags.DEPLOYMENT: job.deployment,
        tags.JOB: job.id,
        tags.ATTEMPT: str(attempt),
        tags.EXECUTION: job.execution,
        tags.OWNER: job.owner,
        tags.DEADLINE: str(job.deadline),
        tags.NODES: str(job.nodes),
        tags.MASTER_PORT: str(job.master_port),
        tags.ROLE: shape.role or tags.WORKER_ROLE,
        **({tags.FIRST_RANK: str(shape.first_rank)} if job.roles else {}),
        **({tags.WORKBENCH: "true"} if job.workbench else {}),
        **({tags.GRID: job.grid_line.grid, tags.LINE: str(job.grid_line.index)} if job.grid_line else {}),
    }


def build_user_data(script: str, values: Mapping[str, str]) -> str:
    """Returns the node's start script with its values as quoted assignments ahead of it: data, never text within a command."""
    shebang, _, rest = script.partition("\n")
    return "\n".join([shebang, *(f"{name}={shlex.quote(value)}" for name, value in values.items()), rest])


def token(step: Step, script: str, shape: int = 0) -> str:
    """Returns the ClientToken of a step, or of one of its shapes: equal for equal bytes of the same generation and walk, 64 characters
    (EC2's most).

    EC2 remembers a refusal for want of capacity by its token, so a later walk needs another one to be a new try.
    """
    parts = [step.requests[shape], script, step.generation, *([step.walk] if step.walk else [])]
    whole = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()

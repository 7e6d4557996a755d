"""Reads a request, and says for each wrong field what it may be. Checks that need AWS are in policy."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from admission.efa import EFA_MAY_BE
from admission.git import GIT_MAY_BE
from admission.mounts import MOUNT_MAY_BE, MOUNTS_MAY_BE
from admission.request import (
    LEAST_HOURS,
    LEAST_MINUTES,
    MOST_ARGUMENTS,
    MOST_DATA,
    MOST_MINUTES,
    MOST_REGIONS,
    MOST_SECRETS,
    MOST_TYPES,
    MOST_VARIABLES,
    RESERVATION_MAY_BE,
    STALL,
    JobRequest,
)
from admission.resume import RESUME_MAY_BE
from admission.values import AUTO, MOST_BYTES, RETRIES_MAY_BE, Buying
from contract.events import Event
from contract.health import HealthCheck
from contract.jobs import Reaction, Scope, Selection
from contract.limits import Limits
from refusals.fields import ARCHIVE_MAY_BE, OWNER_MAY_BE
from refusals.wording import line


def allowed(limits: Limits) -> dict[str, str]:
    """Says for each field what it may be in this deployment."""
    return {
        "code": f"{ARCHIVE_MAY_BE}, or a commit: {GIT_MAY_BE}",
        "command": f"a list of 1 to {MOST_ARGUMENTS:,} texts, or one text of such words",
        "image": IMAGE_MAY_BE,
        "arguments": f"a list of 1 to {MOST_ARGUMENTS:,} texts",
        "instance_types": f"a list of 1 to {MOST_TYPES} different EC2 types, as in g5.xlarge",
        "accelerators": "name and number of a machine's accelerators, as in H100:8",
        "region": "a region in which the deployment trains (regions with a cidr in cdk.json), as in eu-central-1",
        "regions": f"{AUTO}, or a list of 1 to {MOST_REGIONS} different training regions, as in eu-central-1",
        "nodes": f"a whole number from 1 to {limits.max_nodes} (limits.max_nodes in cdk.json)",
        "efa": EFA_MAY_BE,
        "market": ", ".join(Buying),
        "reservation": RESERVATION_MAY_BE,
        "max_hours": f"a number from {LEAST_HOURS:g} to {limits.max_hours:g} (limits.max_hours in cdk.json)",
        "max_wait_hours": f"a number from 0 to {limits.max_wait_hours:g} (limits.max_wait_hours in cdk.json)",
        "max_cost_usd": "a number of US dollars above 0, as in 100",
        "dry_run": "true or false",
        "checkpoint_minutes": f"a number from {LEAST_MINUTES:g} to {MOST_MINUTES}",
        "checkpoint_scope": ", ".join(Scope),
        "checkpoint_restore": ", ".join(Selection),
        "resume_from": RESUME_MAY_BE,
        "retries": RETRIES_MAY_BE,
        "stall": f"an object of minutes and then, as in {STALL}",
        "notify": f"a list of different words out of {', '.join(Event)}",
        "health": ", ".join(HealthCheck),
        "environment": f"an object of up to {MOST_VARIABLES} names of variables and their texts",
        "secrets": f"an object of up to {MOST_SECRETS} names of variables and the ARNs of their secrets",
        "data": f"a list of up to {MOST_DATA} addresses, as in s3://bucket/folder/",
        "volume_gb": f"a whole number from 1 to {limits.max_volume_gb} (limits.max_volume_gb in cdk.json)",
        "machine_image": "the name of an image (machine_images in cdk.json has them), as in digits",
        "job_role": "the name of a role (job_roles in cdk.json has them), as in datasets",
        "mounts": MOUNTS_MAY_BE,
        "owner": OWNER_MAY_BE,
    }


IMAGE_MAY_BE = "repository and tag of an image, as in images:digits-1, or its whole address in a private ECR registry"
ENTRIES = {
    "command": f"texts of up to {MOST_BYTES:,} bytes",
    "arguments": f"texts of up to {MOST_BYTES:,} bytes",
    "instance_types": "EC2 types, as in g5.xlarge",
    "regions": "regions in which the deployment trains, as in eu-central-1",
    "stall": f"minutes, from {LEAST_MINUTES:g} to {MOST_MINUTES}, and then, one of {', '.join(Reaction)}",
    "notify": f"words out of {', '.join(Event)}",
    "environment": f"texts of up to {MOST_BYTES:,} bytes",
    "secrets": "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
    "data": "addresses, as in s3://bucket/folder/",
    "mounts": MOUNT_MAY_BE,
}
"""Says what the entries of a list or an object may be."""
NEEDED = ("code", "command")
"""Fields that a request without an image has to have."""


def read(raw: object, limits: Limits) -> tuple[JobRequest, list[str]]:
    """Returns the request and a line for every problem; a wrong field has its default.

    So the right fields are still judged, and a person sees every problem at once.
    """
    try:
        request, problems, given = JobRequest.model_validate(raw), list[str](), raw
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
        problems = [line(error, allowed(limits), ENTRIES) for error in errors]
        wrong = {str(error["loc"][0]) for error in errors if error["loc"]}
        given = raw if wrong else None  # without a wrong field it is no request at all
        request = _rest(given, wrong)
    both = sorted(request.environment.keys() & request.secrets.keys())
    if request.region is not None and request.regions is not None:
        problems.append("regions: region is there too; allowed: one of the two")
    problems += [f"secrets.{name}: is in environment too; allowed: one value a variable" for name in both]
    return request, [
        *_missing(given, limits),
        *problems,
        *_without_image(given, request),
        *_type_problems(given, request, limits),
    ]


def _missing(given: object, limits: Limits) -> list[str]:
    if not isinstance(given, Mapping) or given.get("image") is not None:
        return []
    return [f"{name}: is missing; allowed: {allowed(limits)[name]}" for name in NEEDED if name not in given]


def _without_image(given: object, request: JobRequest) -> list[str]:
    """Rejects arguments that no image would take. An image that is named wrongly is there, and is rejected as such."""
    if not isinstance(given, Mapping) or given.get("image") is not None or not request.arguments:
        return []
    return ["arguments: there is no image; allowed: with image, or as words of command"]


def _type_problems(given: object, request: JobRequest, limits: Limits) -> list[str]:
    if isinstance(given, Mapping) and not {"instance_types", "accelerators"} & given.keys():
        return [
            f"instance_types: is missing; allowed: {allowed(limits)['instance_types']}, or accelerators in its place, as in H100:8"
        ]
    if request.instance_types and request.accelerators:
        return ["accelerators: instance_types is there too; allowed: one of the two"]
    return []


def _rest(given: object, wrong: set[str]) -> JobRequest:
    """Reads the fields that are right."""
    fields = given if isinstance(given, Mapping) else {}
    right = {name: fields[name] for name in JobRequest.model_fields if name in fields and name not in wrong}
    return JobRequest.model_validate(right)

"""Says which instance types a deployment allows, and which family of machine images each needs."""

from __future__ import annotations

from fnmatch import fnmatchcase

from admission.request import JobRequest
from aws.facts import InstanceType
from contract.environments import AdmissionEnvironment
from contract.limits import Limits
from refusals.wording import plain


def is_allowed(instance_type: str, limits: Limits) -> bool:
    return any(fnmatchcase(instance_type, pattern) for pattern in limits.instance_types)


def setting(request: JobRequest, kind: InstanceType, env: AdmissionEnvironment) -> str:
    """Returns what the settings say of the image for a type: an AMI id or the name of a parameter; empty where they say nothing."""
    return env.machine_images.get(request.machine_image or "") or env.images.get(family(kind), "")


def problems(request: JobRequest, env: AdmissionEnvironment) -> list[str]:
    """Rejects a name that the deployment does not know."""
    name = request.machine_image
    if name is None or name in env.machine_images:
        return []
    may_be = ", ".join(sorted(env.machine_images)) or "none, because there are no machine_images"
    return [
        f"machine_image: {plain(name)} is not an image of this deployment; allowed: {may_be} (machine_images in cdk.json)"
    ]


def family(kind: InstanceType) -> str:
    """Returns the family of images that a type needs: P3's GPUs need the proprietary driver, and Neuron devices AWS's own, both of which
    the common image lacks."""
    if kind.name.split(".")[0] in {"p3", "p3dn"}:
        return "p3"
    if kind.neuron:
        return "neuron"
    return "arm64" if "arm64" in kind.architectures else "x86_64"

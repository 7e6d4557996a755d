"""Says which instance types a deployment allows, and which family of machine images each needs."""

from __future__ import annotations

from fnmatch import fnmatchcase

from aws.facts import InstanceType
from contract.environments import Limits


def is_allowed(instance_type: str, limits: Limits) -> bool:
    return any(fnmatchcase(instance_type, pattern) for pattern in limits.instance_types)


def family(kind: InstanceType) -> str:
    """Returns the family of images that a type needs: P3's GPUs need the proprietary driver, and Neuron devices AWS's own, both of which
    the common image lacks."""
    if kind.name.split(".")[0] in {"p3", "p3dn"}:
        return "p3"
    if kind.neuron:
        return "neuron"
    return "arm64" if "arm64" in kind.architectures else "x86_64"

"""Decides what of a request the deployment's settings do not offer: regions, and instance types by their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from contract.limits import Limits
from refusals.wording import plain


def is_allowed(instance_type: str, limits: Limits) -> bool:
    return any(fnmatchcase(instance_type, pattern) for pattern in limits.instance_types)


def list_forbidden(types: Sequence[str], limits: Limits) -> dict[str, str]:
    """Returns by instance type why the deployment does not allow it, for each that it does not allow."""
    patterns = ", ".join(limits.instance_types)
    return {
        name: f"instance_types: {name} is not allowed in this deployment; allowed: {patterns} (limits.instance_types in cdk.json)"
        for name in types
        if not is_allowed(name, limits)
    }


def refuse_region(field: str, region: str, regions: Collection[str]) -> str:
    """Words that the deployment does not train in the region, which the request names in `field`."""
    trains = ", ".join(regions)
    return f"{field}: the deployment does not train in {plain(region)}; allowed: {trains} (regions with a cidr or a vpc in cdk.json)"

"""Decides in which zones a region's subnets lie: what was answered before and what EC2 names in, the zones or a refusal out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

PREFIX = "zones:"
"""Of the resource's physical id, which lists the zones that were answered. CloudFormation remembers it, and makes up other ids."""
NAME_THEM = "Name the zones to use as `zones` of {region} in the settings (docs/regions.md)."


class NoAnswer(Exception):
    """The zones cannot be chosen. The message is what a person reads in the stack's events."""


def identity(zones: Sequence[str]) -> str:
    """The physical id of an answer: other zones are another resource, the same zones the same one."""
    return PREFIX + ",".join(zones)


def remembered(physical: str) -> tuple[str, ...]:
    """The zones of the answer before; none where there was no answer."""
    return tuple(filter(None, physical.removeprefix(PREFIX).split(","))) if physical.startswith(PREFIX) else ()


def kept(count: int, before: Sequence[str]) -> tuple[str, ...] | None:
    """The first `count` zones of the answer before, where it had so many; None asks for a look at what EC2 names.

    Subnets stand in them already. No look means no failure: a rollback asks for what there was, and must not fail because
    a zone has gone meanwhile.
    """
    return tuple(before[:count]) if len(before) >= count else None


def chosen(region: str, count: int, before: Sequence[str], found: Collection[str]) -> tuple[str, ...]:
    """The zones of the answer before in their order, then further ones by name. Raises NoAnswer."""
    listed = ", ".join(sorted(found)) or "none"
    if gone := [zone for zone in before if zone not in found]:
        raise NoAnswer(
            f"Subnets of {region} lie in {', '.join(gone)}, where EC2 now offers nothing to this account; it names {listed}. "
            + NAME_THEM.format(region=region)
        )
    if len(found) < count:
        raise NoAnswer(
            f"EC2 names {len(found)} availability zones of {region} for this account ({listed}), and its network is laid out "
            f"for {count}. " + NAME_THEM.format(region=region)
        )
    return (*before, *sorted(set(found) - set(before)))[:count]

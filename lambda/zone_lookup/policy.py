"""Decides in which zones a region's subnets lie: what was answered before and what EC2 names in, the zones or a refusal out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def chosen(region: str, count: int, before: Sequence[str], found: Iterable[str]) -> tuple[str, ...]:
    """The zones of the answer before in their order, then further ones by name. Raises NoAnswer."""
    usable = sorted(set(found))
    listed, advice = ", ".join(usable) or "none", NAME_THEM.format(region=region)
    if gone := [zone for zone in before if zone not in usable]:
        raise NoAnswer(
            f"Subnets of {region} lie in {', '.join(gone)}, which EC2 does not name as available to this account any more; it names "
            f"{listed}. {advice}"
        )
    if len(usable) < count:
        raise NoAnswer(
            f"EC2 names {len(usable)} availability zones of {region} for this account ({listed}), and its network is laid out for "
            f"{count}. {advice}"
        )
    return (*before, *(zone for zone in usable if zone not in before))[:count]

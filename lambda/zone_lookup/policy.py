"""Decides in which zones a region's subnets lie: takes the earlier answer and EC2's zones, returns the zones or a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

PREFIX = "zones:"
"""Prefix of the physical ids that list the zones of an answer; CloudFormation remembers ours, and makes up ids of its own."""
NAME_THEM = "Name the zones to use as `zones` of {region} in the settings (docs/guides/regions.md)."


class NoAnswer(Exception):
    """The zones cannot be chosen. The message is what a person reads in the stack's events."""


def identity(zones: Sequence[str]) -> str:
    """Returns the physical id of an answer: other zones give another resource, the same zones the same one."""
    return PREFIX + ",".join(zones)


def remembered(physical: str) -> tuple[str, ...]:
    """Returns the zones of the earlier answer; empty where there was none."""
    return tuple(filter(None, physical.removeprefix(PREFIX).split(","))) if physical.startswith(PREFIX) else ()


def kept(count: int, before: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the first `count` zones of the earlier answer if it had that many; None means that EC2 must be asked.

    Subnets already use these zones. Without a question to EC2 nothing can fail: a rollback asks for the earlier zones, and must
    not fail because a zone has disappeared meanwhile.
    """
    return tuple(before[:count]) if len(before) >= count else None


def chosen(region: str, count: int, before: Sequence[str], found: Iterable[str]) -> tuple[str, ...]:
    """Returns the zones of the earlier answer in their order, then further ones by name. Raises NoAnswer."""
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

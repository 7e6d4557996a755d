"""Reads and resolves the file systems that a request mounts: its regions have to have them, and their folders may hide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from contract.mounts import FileSystem, JobMount
from job_requests.mount_fields import MountField, is_below
from refusals.wording import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedMounts:
    """The file systems that a request mounts, and what stands against them."""

    mounted: tuple[JobMount, ...]
    """Without those that no region has."""
    against: Mapping[str, list[str]]
    """Region to what stands against it because it lacks a file system."""
    problems: list[str]


def resolve_mounts(mounts: Sequence[MountField], offered: Mapping[str, Iterable[FileSystem]]) -> ResolvedMounts:
    """Finds each mount's file system. `offered`: by region, of those that were asked; a name stands for one file system of one region."""
    found = {one.address: (region, one) for region, file_systems in offered.items() for one in file_systems}
    mounted = tuple(
        JobMount(file_system=found[one.source][1], region=found[one.source][0], at=one.at, read_only=one.read_only)
        for one in mounts
        if one.source in found
    )
    against = {region: _list_missing(mounts, region, file_systems) for region, file_systems in offered.items()}
    return ResolvedMounts(mounted=mounted, against=against, problems=_list_overlaps(mounts))


def _list_missing(mounts: Iterable[MountField], region: str, file_systems: Iterable[FileSystem]) -> list[str]:
    there = {one.address for one in file_systems}
    listed = ", ".join(sorted(there)) or "none there"
    return [
        f"mounts.{number}.from: {one.source} names no file system in {region}; allowed: {listed} (file_systems in cdk.json)"
        for number, one in enumerate(mounts)
        if one.source not in there
    ]


def _list_overlaps(mounts: Iterable[MountField]) -> list[str]:
    """Rejects two mounts of which one would hide the other."""
    found, before = list[str](), list[str]()
    for number, one in enumerate(mounts):
        for other in before:
            if one.at == other or is_below(one.at, other) or is_below(other, one.at):
                how = "the folder of another mount" if one.at == other else f"above or below {other} of another mount"
                found.append(f"mounts.{number}.at: {plain(one.at)} is {how}; allowed: separate folders")
        before.append(one.at)
    return found


def describe_mounts(mounts: Iterable[JobMount]) -> list[str]:
    """Says in the execution's output what each node has where."""
    return [f"{one.file_system.address} at {one.at}, {'read only' if one.read_only else 'to write'}" for one in mounts]

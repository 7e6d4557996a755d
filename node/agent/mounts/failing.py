"""Judges what `mount` says when it fails: the job's own failure, the machine's, or one that may pass. Decisions alone."""

from __future__ import annotations

import re
from enum import Enum

from agent.failures import CannotStart, MachineTrouble
from agent.mounts.options import PACKAGES
from contract.mounts import JobMount

WORDS = 1000
TRIES = 3
MOST_S = 120.0
"""How long one `mount` may take."""


class MountFailure(Enum):
    """Why a mount has failed."""

    NO_CLIENT = "no client"
    """The machine's image lacks a program or a kernel module; so does that of every other node."""
    DENIED = "denied"
    """The file system does not let the job in."""
    GONE = "gone"
    """There is no file system of this id or mount name."""
    PASSING = "passing"
    """The network, a name that does not resolve in this zone, or a server: another try, here or elsewhere, may go well."""


SAID = (
    (
        MountFailure.NO_CLIENT,
        re.compile(r"unknown filesystem type|lustre modules loaded|helper program|No such device", re.IGNORECASE),
    ),
    (MountFailure.DENIED, re.compile(r"access denied|permission denied|not authorized|AccessDenied", re.IGNORECASE)),
    (MountFailure.GONE, re.compile(r"MGS specification|file system name correct|does not exist", re.IGNORECASE)),
)
"""What mount and its helpers say, in the order in which it counts."""


def why(said: str) -> MountFailure:
    """Anything that is not known may pass."""
    return next((reason for reason, words in SAID if words.search(said)), MountFailure.PASSING)


def lacks(mount: JobMount, helper: str) -> CannotStart:
    """The failure of a machine on which the helper is missing."""
    return CannotStart(
        f"{_what(mount)} cannot be mounted: the machine's image has no {helper}, which {PACKAGES[mount.file_system.kind]} brings"
    )


def occupied(mount: JobMount, by: str) -> CannotStart:
    """The failure of a mount that would hide what the machine has there."""
    return CannotStart(f"{_what(mount)} cannot be mounted at {mount.at}: the machine's image has {by} there")


def failure(mount: JobMount, said: str, *, code: int | None) -> Exception:
    """The exception with which the attempt ends; it has mount's own words. `code` is None where mount has not ended in time."""
    words, what = said.strip()[-WORDS:] or "mount said nothing", _what(mount)
    if code is None:
        return MachineTrouble(
            f"{what} did not answer within {MOST_S:.0f} s. Does it lie in the region's network, with a mount target in the node's zone, "
            f"and is it available? mount said: {words}"
        )
    reason = why(said)
    if reason is MountFailure.NO_CLIENT:
        return CannotStart(f"{what} cannot be mounted without {PACKAGES[mount.file_system.kind]}: {words}")
    if reason is MountFailure.DENIED:
        return CannotStart(f"{what} does not let the job in, by its policy or that of its access point: {words}")
    if reason is MountFailure.GONE:
        return CannotStart(f"{what} does not exist as the setting file_systems describes it: {words}")
    return MachineTrouble(f"{what} could not be mounted in {TRIES} tries: {words}")


def _what(mount: JobMount) -> str:
    one = mount.file_system
    return f"{one.address} ({one.id})"

"""Judges what docker says when a pull fails: the job's own failure, the machine's, or one that may pass. Decisions alone."""

from __future__ import annotations

import re
from enum import Enum

from agent.failures import LARGER, CannotStart, MachineTrouble
from contract.containers import UNPACKED

GIB = 1024**3
TRIES = 3
AGAIN_S = 10.0
WORDS = 1000


class Why(Enum):
    """Why a pull has failed."""

    GONE = "gone"
    """The registry has no such image, or the job's credentials do not allow the pull. It was there at admission."""
    FULL = "full"
    OTHER_PROCESSOR = "other processor"
    PASSING = "passing"
    """The network, the registry or the daemon: another try, on this machine or another, may go well."""


SAID = (
    (Why.FULL, re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)),
    (Why.PASSING, re.compile(r"token has expired|permission denied", re.IGNORECASE)),
    (
        Why.OTHER_PROCESSOR,
        re.compile(
            r"no matching manifest|no match for platform|does not match the (specified|detected) platform",
            re.IGNORECASE,
        ),
    ),
    (
        Why.GONE,
        re.compile(
            r"manifest unknown|manifest for \S+ not found|name unknown|repository \S+ not found|requested image not found|"
            r"failed to resolve reference \S+ \S+: not found|from remote: not found|"
            r"denied|not authorized|no basic auth|unauthorized|unexpected status from HEAD request to \S+ 403|"
            r"invalid reference format|unsupported media type|encountered remote \S+ when fetching",
            re.IGNORECASE,
        ),
    ),
)
"""What docker and ECR say, in the order in which it counts; docker's own store and containerd's have words of their own."""


def why(said: str) -> Why:
    """Anything that is not known may pass."""
    return next((reason for reason, words in SAID if words.search(said)), Why.PASSING)


def failure(address: str, said: str, tries: int = TRIES) -> Exception:
    """The exception with which the attempt ends; it has the registry's own words."""
    words, reason = said.strip()[-WORDS:] or "docker said nothing", why(said)
    if reason is Why.FULL:
        return CannotStart(f"the image {address} does not fit: {LARGER} ({words})")
    if reason is Why.PASSING:
        return MachineTrouble(f"the image {address} could not be pulled in {tries} tries: {words}")
    return CannotStart(f"the image {address} cannot be pulled: {words}")


def lacks_room(free: int, size: int) -> str:
    """Says before a pull of `size` bytes that they will not fit unpacked; empty where they will."""
    if free >= size * UNPACKED:
        return ""
    return (
        f"the disk has {free / GIB:.1f} GiB free, and the image takes about {size * UNPACKED / GIB:.1f} GiB, packed and unpacked: ask for "
        "a larger volume_gb"
    )

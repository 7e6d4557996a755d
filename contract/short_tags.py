"""Short tags of AWS's Deep Learning Containers: `2.9-gpu` is the newest image whose whole tag it begins, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

EC2, SAGEMAKER = "ec2", "sagemaker"
"""The word of a tag that says where AWS made the container for; tags of SageMaker's may lack it."""
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
LEAST_WORDS = 2
"""Version and device: by its version alone a tag may be one for CPUs or one for GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTag:
    """A tag of a repository, and when what it names was pushed, in UTC epoch seconds."""

    tag: str
    pushed_at: float


def whole_tag(short: str, there: Iterable[ListedTag], place: str) -> str:
    """Returns the tag that the short one stands for; empty where it stands for none.

    `place` is EC2 or SAGEMAKER, whose containers go first, then those that name neither. Among these the highest version counts, then
    what was pushed last, as AWS pushes a container again with each patch; of its tags it is the shortest.
    """
    wanted = short.split("-")
    if len(wanted) < LEAST_WORDS or not VERSION.fullmatch(wanted[0]):
        return ""
    found = [one for one in there if _begins(wanted, one.tag.split("-"))]
    return max(found, key=lambda one: _order(one, place), default=ListedTag(tag="", pushed_at=0.0)).tag


def _begins(wanted: list[str], words: list[str]) -> bool:
    """Whether the version is the same or one of its patches, and the other words are the first ones."""
    version, rest = words[0], words[1:]
    if not VERSION.fullmatch(version) or not f"{version}.".startswith(f"{wanted[0]}."):
        return False
    return rest[: len(wanted) - 1] == wanted[1:]


def _order(one: ListedTag, place: str) -> tuple[int, tuple[int, ...], float, int, str]:
    version, *words = one.tag.split("-")
    meant = 2 if place in words else 0 if {EC2, SAGEMAKER} & set(words) else 1
    return meant, tuple(map(int, version.split("."))), one.pushed_at, -len(one.tag), one.tag

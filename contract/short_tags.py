"""Short tags of AWS's Deep Learning Containers: `2.9-gpu` is the newest image whose whole tag it begins, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

EC2, SAGEMAKER = "ec2", "sagemaker"
"""Where a container of AWS's is meant to run. A tag without such a word is one for SageMaker."""
OF_EC2 = frozenset({EC2, "e3"})
"""Words of a tag for EC2; the second one is an old one, for EC2, ECS and EKS."""
SOCI = "soci"
"""Marks an image that has an index for lazy loading beside it, which docker does not use. Every such image is there without it too."""
DEVICES = frozenset({"cpu", "gpu", "neuron", "neuronx"})
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTag:
    """A tag of a repository, the image that it names, and when that was pushed, in UTC epoch seconds."""

    tag: str
    pushed_at: float
    digest: str


def is_short(tag: str) -> bool:
    """Whether a tag may be a short one: it begins with a version and names a device, as AWS has images for CPUs beside those for GPUs."""
    version, *words = tag.split("-")
    return VERSION.fullmatch(version) is not None and not DEVICES.isdisjoint(words)


def whole_tag(short: str, there: Iterable[ListedTag], place: str) -> ListedTag | None:
    """Returns the tag that the short one stands for; None where it stands for none.

    `place` is EC2 or SAGEMAKER; containers for the other one do not count. The highest version goes first, then what was pushed last, as
    AWS pushes a container again with each patch; of its tags it is the shortest.
    """
    if not is_short(short):
        return None
    found = [one for one in there if _begins(short.split("-"), one.tag.split("-"), place)]
    return max(found, key=_order, default=None)


def agreed(short: str, lists: Mapping[str, Sequence[ListedTag]], place: str) -> dict[str, ListedTag]:
    """Returns the tag for each of several registries that has any: one of the same image where all of these have one in common, otherwise
    each registry's newest. AWS brings a new container to one region after another, under tags that named another one before."""
    own = {name: found for name, there in lists.items() if (found := whole_tag(short, there, place))}
    if not own:
        return {}
    common = set.intersection(*({one.digest for one in lists[name]} for name in own))
    first = next(iter(own))
    same = whole_tag(short, [one for one in lists[first] if one.digest in common], place)
    if same is None:
        return own
    return {name: next(one for one in lists[name] if one.digest == same.digest) for name in own}


def _begins(wanted: list[str], words: list[str], place: str) -> bool:
    """Whether the version is the same or one of its patches, the other words are the first ones, and the container is for the place."""
    version, rest = words[0], words[1:]
    if not VERSION.fullmatch(version) or not f"{version}.".startswith(f"{wanted[0]}.") or SOCI in rest:
        return False
    return rest[: len(wanted) - 1] == wanted[1:] and (place == EC2) == (not OF_EC2.isdisjoint(rest))


def _order(one: ListedTag) -> tuple[tuple[int, ...], float, int, str]:
    version = one.tag.partition("-")[0]
    return tuple(map(int, version.split("."))), one.pushed_at, -len(one.tag), one.tag

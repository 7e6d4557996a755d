"""Asks the registries of a request's regions about its image, side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from admission.asking import passes
from admission.containers import ImageLook, agreed
from aws import registry
from aws.clients import BRISK, PATIENT
from contract.aws_errors import code_of
from contract.images import ContainerImage
from contract.short_tags import EC2, is_short
from contract.short_tags import agreed as whole_tags

T = TypeVar("T")
AT_ONCE = 8


class RegistryAway(Exception):
    """A registry does not answer for now: Admit is tried again, and this is the last that a person reads once its patience is over."""

    def __init__(self, image: ContainerImage, why: str) -> None:
        super().__init__(f"image: {image} cannot be checked, because the registry does not answer: {why}")


def looked(images: Mapping[str, ContainerImage], *, auto: bool, awss: Collection[str]) -> dict[str, ImageLook]:
    """What each region's registry says; in those of the accounts `awss` a tag may be a short one. Where a tag names another image than in
    the first region that has one, the registry is asked for the first one's digest. An error that says nothing of the image is raised,
    unless a region of "auto" may be left out."""
    if not images:
        return {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = _every(pool, images, auto=auto)
        first |= _by_short_tags(
            pool, {region: look for region, look in first.items() if _may_be_short(look, awss)}, auto=auto
        )
        job = agreed(first)
        if job is None:
            return first
        strange = {region: look for region, look in first.items() if look.stored and look.stored.digest != job.digest}
        asked = {region: replace(look.image, tag="", digest=job.digest) for region, look in strange.items()}
        again = _every(pool, asked, auto=auto)
    for region, look in strange.items():
        if again[region].stored is None and not again[region].trouble:
            assert look.stored is not None
            again[region] = replace(look, image=asked[region], other=look.stored.digest)
    return first | again


def _every(pool: ThreadPoolExecutor, images: Mapping[str, ContainerImage], *, auto: bool) -> dict[str, ImageLook]:
    return dict(zip(images, pool.map(lambda one: _look(one, auto=auto), images.values()), strict=True))


def _may_be_short(look: ImageLook, awss: Collection[str]) -> bool:
    image = look.image
    return (
        look.stored is None and not look.trouble and image.account in awss and not image.digest and is_short(image.tag)
    )


def _by_short_tags(pool: ThreadPoolExecutor, looks: Mapping[str, ImageLook], *, auto: bool) -> dict[str, ImageLook]:
    """What the registries say of the images for which one short tag stands, of those that list one."""
    images = {region: look.image for region, look in looks.items()}
    if not images:
        return {}
    lists = dict(
        zip(
            images,
            pool.map(lambda one: _asked(one, partial(registry.tags, one), auto=auto), images.values()),
            strict=True,
        )
    )
    (short,) = {image.tag for image in images.values()}
    known = {region: told for region, told in lists.items() if not isinstance(told, ImageLook)}
    whole = {
        region: replace(images[region], tag="", digest=one.digest)
        for region, one in whole_tags(short, known, EC2).items()
    }
    silent = {region: told for region, told in lists.items() if isinstance(told, ImageLook)}
    return silent | _every(pool, whole, auto=auto)


def _look(image: ContainerImage, *, auto: bool) -> ImageLook:
    told = _asked(image, partial(registry.stored, image), auto=auto)
    return told if isinstance(told, ImageLook) else ImageLook(image=image, stored=told)


def _asked(image: ContainerImage, ask: Callable[[Any], T], *, auto: bool) -> T | ImageLook:
    """What the registry answers, or what is known of the image where it does not. `ask` gets the patience of the client."""
    try:
        return ask(BRISK if auto else PATIENT)
    except registry.NoRepository:
        return ImageLook(image=image)
    except registry.Unreadable as problem:
        return ImageLook(image=image, trouble=str(problem))
    except ClientError as problem:
        if passes(problem) and not auto:
            raise RegistryAway(image, str(problem)) from problem
        return ImageLook(image=image, trouble=code_of(problem))
    except BotoCoreError as problem:
        if not auto:
            raise RegistryAway(image, str(problem)) from problem
        return ImageLook(image=image, trouble=type(problem).__name__)

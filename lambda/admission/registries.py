"""Asks the registries of a request's regions about its image, side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from admission.asking import passes
from admission.containers import ImageLook, agreed
from aws import registry
from aws.clients import BRISK, PATIENT
from contract.aws_errors import code_of
from contract.images import ContainerImage
from contract.short_tags import EC2, whole_tag

AT_ONCE = 8


class RegistryAway(Exception):
    """A registry does not answer for now: Admit is tried again, and this is the last that a person reads once its patience is over."""

    def __init__(self, image: ContainerImage, why: str) -> None:
        super().__init__(f"image: {image} cannot be looked at, because the registry does not answer: {why}")


def looked(images: Mapping[str, ContainerImage], *, auto: bool, awss: Collection[str]) -> dict[str, ImageLook]:
    """What each region's registry says; in those of the accounts `awss` a tag may be a short one. Where a tag names another image than in
    the first region that has one, the registry is asked for the first one's digest. An error that says nothing of the image is raised,
    unless a region of "auto" may be left out."""
    if not images:
        return {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = dict(zip(images, pool.map(lambda one: _look(one, auto=auto, awss=awss), images.values()), strict=True))
        job = agreed(first)
        if job is None:
            return first
        strange = {region: look for region, look in first.items() if look.stored and look.stored.digest != job.digest}
        asked = {region: replace(look.image, tag="", digest=job.digest) for region, look in strange.items()}
        again = dict(zip(asked, pool.map(lambda one: _look(one, auto=auto, awss=awss), asked.values()), strict=True))
    for region, look in strange.items():
        if again[region].stored is None and not again[region].trouble:
            assert look.stored is not None
            again[region] = replace(look, other=look.stored.digest)
    return first | again


def _look(image: ContainerImage, *, auto: bool, awss: Collection[str]) -> ImageLook:
    config: Any = BRISK if auto else PATIENT
    try:
        stored = registry.stored(image, config)
        if stored is None and image.tag and image.account in awss:
            image = replace(image, tag=whole_tag(image.tag, registry.tags(image, config), EC2) or image.tag)
            stored = registry.stored(image, config)
        return ImageLook(image=image, stored=stored)
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

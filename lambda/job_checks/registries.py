"""Asks the registries of a request's regions about its image, side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from aws import registry
from aws.clients import BRISK, PATIENT
from contract.aws_errors import code_of
from contract.images import ContainerImage
from contract.short_tags import EC2, is_short
from contract.short_tags import agreed as find_whole_tags
from job_checks.containers import find_agreed_image
from job_checks.facts import RegistryAnswer
from job_checks.region_facts import is_passing

T = TypeVar("T")
AT_ONCE = 8


class RegistryAway(Exception):
    """A registry does not answer for now: Admit is tried again, and this is the last that a person reads once its patience is over."""

    def __init__(self, image: ContainerImage, why: str) -> None:
        super().__init__(f"image: {image} cannot be checked, because the registry does not answer: {why}")


def fetch_answers(
    images: Mapping[str, ContainerImage], *, auto: bool, awss: Collection[str]
) -> dict[str, RegistryAnswer]:
    """Fetches what each region's registry says; in those of the accounts `awss` a tag may be a short one. Where a tag names another image
    than in the first region that has one, the registry is asked for the first one's digest. An error that says nothing of the image is
    raised, unless a region of "auto" may be left out."""
    if not images:
        return {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        first = _fetch_each(pool, images, auto=auto)
        short = {region: one for region, one in first.items() if _may_be_short(one, awss)}
        first |= _fetch_by_short_tags(pool, short, auto=auto)
        job = find_agreed_image(first)
        if job is None:
            return first
        strange = {region: one for region, one in first.items() if one.stored and one.stored.digest != job.digest}
        same = {region: replace(one.image, tag="", digest=job.digest) for region, one in strange.items()}
        again = _fetch_each(pool, same, auto=auto)
    for region, one in strange.items():
        if again[region].stored is None and not again[region].trouble:
            assert one.stored is not None
            again[region] = replace(one, image=same[region], other=one.stored.digest)
    return first | again


def _fetch_each(
    pool: ThreadPoolExecutor, images: Mapping[str, ContainerImage], *, auto: bool
) -> dict[str, RegistryAnswer]:
    return dict(zip(images, pool.map(lambda one: _fetch_answer(one, auto=auto), images.values()), strict=True))


def _may_be_short(answer: RegistryAnswer, awss: Collection[str]) -> bool:
    image = answer.image
    unknown = answer.stored is None and not answer.trouble
    return unknown and image.account in awss and not image.digest and is_short(image.tag)


def _fetch_by_short_tags(
    pool: ThreadPoolExecutor, answers: Mapping[str, RegistryAnswer], *, auto: bool
) -> dict[str, RegistryAnswer]:
    """Fetches what the registries say of the images for which one short tag stands, of those that list one."""
    images = {region: one.image for region, one in answers.items()}
    if not images:
        return {}
    lists = dict(
        zip(
            images,
            pool.map(lambda one: _try_registry(one, partial(registry.tags, one), auto=auto), images.values()),
            strict=True,
        )
    )
    (short,) = {image.tag for image in images.values()}
    known = {region: tags for region, tags in lists.items() if not isinstance(tags, RegistryAnswer)}
    whole = {
        region: replace(images[region], tag="", digest=one.digest)
        for region, one in find_whole_tags(short, known, EC2).items()
    }
    silent = {region: answer for region, answer in lists.items() if isinstance(answer, RegistryAnswer)}
    return silent | _fetch_each(pool, whole, auto=auto)


def _fetch_answer(image: ContainerImage, *, auto: bool) -> RegistryAnswer:
    found = _try_registry(image, partial(registry.stored, image), auto=auto)
    return found if isinstance(found, RegistryAnswer) else RegistryAnswer(image=image, stored=found)


def _try_registry(image: ContainerImage, call: Callable[[Any], T], *, auto: bool) -> T | RegistryAnswer:
    """Returns what the registry answers, or what is known of the image where it does not. `call` gets the patience of the client."""
    try:
        return call(BRISK if auto else PATIENT)
    except registry.NoRepository:
        return RegistryAnswer(image=image)
    except registry.Unreadable as problem:
        return RegistryAnswer(image=image, trouble=str(problem))
    except ClientError as problem:
        if is_passing(problem) and not auto:
            raise RegistryAway(image, str(problem)) from problem
        return RegistryAnswer(image=image, trouble=code_of(problem))
    except BotoCoreError as problem:
        if not auto:
            raise RegistryAway(image, str(problem)) from problem
        return RegistryAnswer(image=image, trouble=type(problem).__name__)

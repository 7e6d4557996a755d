"""Looks up in AWS what requests name, so that they can be judged by facts alone. Only reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from botocore.exceptions import ClientError

from aws import pinned, secrets
from aws.errors import CHANGED, S3_DENIED
from aws.facts import Object
from aws.s3 import Bucket, HomeBucket
from aws.state import State
from contract.aws_errors import code_of
from contract.environments import JobChecksEnvironment
from contract.images import ContainerImage
from job_checks.code import is_readable
from job_checks.facts import RegionFacts, RegistryAnswer, RequestFacts, SourceFacts
from job_checks.image_names import list_registries
from job_checks.once import Once
from job_checks.questions import RequestQuestions
from job_checks.region_facts import fetch_regions
from job_checks.registries import fetch_answers
from job_checks.sources import find_source
from job_requests.request import JobRequest
from refusals.addresses import Address
from refusals.archive import Listing, listing

T = TypeVar("T")
LISTING_S = 10.0
"""How long an archive is read, which is enough for hundreds of megabytes. Later entries are accepted without a check."""


class FactsReader:
    """Asks AWS about requests; what several of them name is asked about once."""

    knows_jobs = True

    def __init__(self, env: JobChecksEnvironment) -> None:
        self._env, self._once = env, Once()

    def look_up(self, request: JobRequest, questions: RequestQuestions) -> RequestFacts:
        """Returns the answers about the request, without those about a commit, which only the job's own Admit fetches."""
        data = self.look_up_data(questions.data)
        code, archive, denied = self._look_up_code(questions.code, questions.files)
        return replace(
            data,
            code=code,
            archive=archive,
            denied={**denied, **data.denied},
            secrets_missing=tuple(name for name, arn in questions.secrets.items() if not self._has_secret(arn)),
            source=self._find_source(questions.source) if questions.source else None,
            regions=self._look_up_regions(request, questions),
            role_answers={name: self._ask_registries(one, questions) for name, one in questions.role_images.items()},
        )

    def look_up_data(self, locations: Iterable[str]) -> RequestFacts:
        """Returns which locations hold nothing, and S3's error code for each that S3 denies."""
        found = {one: self._once.answer(("data", one), partial(_ask_s3, one, Bucket.holds_any)) for one in locations}
        return RequestFacts(
            denied={location: code for location, (_, code) in found.items() if code},
            nothing_at=tuple(location for location, (is_there, code) in found.items() if not code and not is_there),
        )

    def _look_up_code(
        self, location: str, files: Collection[str]
    ) -> tuple[Object | None, Listing | None, dict[str, str]]:
        """Returns the archive, its contents, and S3's error code by location where S3 denies it."""
        if not location:
            return None, None, {}
        code, denied = self._once.answer(("code", location), partial(_ask_s3, location, Bucket.head))
        if code is None or not is_readable(code):
            return code, None, {location: denied} if denied else {}
        archive = self._once.answer(("archive", location, tuple(files)), partial(list_archive, code, files))
        return code, archive, {}

    def _has_secret(self, arn: str) -> bool:
        return self._once.answer(("secret", arn), lambda: secrets.exists(arn, arn.split(":")[3]))

    def _find_source(self, name: str) -> SourceFacts:
        home, state = HomeBucket(self._env.bucket), State(self._env.table)
        return self._once.answer(("source", name), lambda: find_source(name, home.job, state.walks))

    def _look_up_regions(self, request: JobRequest, questions: RequestQuestions) -> dict[str, RegionFacts]:
        answers = self._ask_registries(questions.images, questions)
        regions = fetch_regions(request, questions, self._env, self._once)
        return {region: replace(facts, registry=answers.get(region)) for region, facts in regions.items()}

    def _ask_registries(
        self, images: Mapping[str, ContainerImage], questions: RequestQuestions
    ) -> dict[str, RegistryAnswer]:
        awss, auto = list_registries(self._env).awss, questions.auto
        question = ("image", tuple(sorted((region, str(image)) for region, image in images.items())), auto)
        return self._once.answer(question, lambda: fetch_answers(images, auto=auto, awss=awss))


def list_archive(code: Object, kept: Collection[str]) -> Listing | None:
    """Lists the archive, as far as LISTING_S reach; None where S3 denies it, or the object has changed meanwhile. `kept`: files of which
    more than the name is needed."""
    until = time.monotonic() + LISTING_S
    try:
        with pinned.opened(pinned.pinned(code)) as file:
            return listing(file, code.key, lambda: time.monotonic() > until, kept)
    except ClientError as problem:
        if code_of(problem) not in S3_DENIED | CHANGED:
            raise
        return None


def _ask_s3(location: str, ask: Callable[[Bucket, str], T]) -> tuple[T | None, str]:
    """Returns the answer of `ask` about the location, or S3's error code where S3 denies it."""
    address = Address.parse(location)
    try:
        return ask(Bucket(address.bucket), address.key), ""
    except ClientError as problem:
        code = code_of(problem)
        if code not in S3_DENIED:
            raise
        return None, code

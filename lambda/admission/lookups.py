"""Looks up in AWS what a request names, so that the policy can decide by facts alone. Only reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from admission.code import is_readable
from admission.facts import Execution, RegionFacts, RegistryAnswer, RequestFacts
from admission.fetching import fetch_commit
from admission.image_names import list_registries
from admission.questions import RequestQuestions, list_questions
from admission.region_facts import fetch_regions
from admission.registries import fetch_answers
from admission.sources import find_source
from aws import pinned, secrets
from aws.errors import CHANGED, S3_DENIED
from aws.facts import Object
from aws.s3 import Bucket, HomeBucket
from aws.state import State
from contract.aws_errors import code_of
from contract.environments import AdmissionEnvironment
from contract.jobs import Job
from job_requests.request import JobRequest
from refusals.addresses import Address
from refusals.archive import Listing, listing

LISTING_S = 10.0
"""How long an archive is read, which is enough for hundreds of megabytes. Later entries are accepted without a check."""


def look_up_facts(
    request: JobRequest, execution: Execution, env: AdmissionEnvironment, folder: Path, *, held_by: Job | None
) -> RequestFacts:
    """Asks AWS and, for a commit, its git host; the commit's archive lies in `folder` afterwards. `held_by`: the job of another execution
    that has the name, whose commit is not fetched."""
    questions = list_questions(request, execution, env)
    facts = replace(
        _look_up_files(questions, env),
        regions=_look_up_regions(request, questions, env),
        role_answers=_look_up_role_images(questions, env),
        held_by=held_by,
    )
    if questions.commit is None or held_by:
        return facts
    secret = env.git_hosts[questions.commit.host]
    fetched = fetch_commit(
        questions.commit, execution.name, HomeBucket(env.bucket), secret, folder, questions.files, _list_archive
    )
    return replace(facts, code=fetched.code, archive=fetched.archive, not_fetched=fetched.problem)


def _look_up_files(questions: RequestQuestions, env: AdmissionEnvironment) -> RequestFacts:
    """Looks up the code, the data, the secrets and the job to resume from."""
    heads, denied = _ask_s3([questions.code] if questions.code else [], lambda bucket, key: bucket.head(key))
    code = heads.get(questions.code)
    found, denied_too = _ask_s3(questions.data, lambda bucket, key: bucket.holds_any(key))
    return RequestFacts(
        code=code,
        archive=_list_archive(code, questions.files) if code and is_readable(code) else None,
        denied=denied | denied_too,
        nothing_at=tuple(location for location, is_there in found.items() if not is_there),
        secrets_missing=tuple(
            name for name, arn in questions.secrets.items() if not secrets.exists(arn, arn.split(":")[3])
        ),
        source=find_source(questions.source, HomeBucket(env.bucket).job, State(env.table).walks)
        if questions.source
        else None,
    )


def _look_up_regions(
    request: JobRequest, questions: RequestQuestions, env: AdmissionEnvironment
) -> dict[str, RegionFacts]:
    answers = fetch_answers(questions.images, auto=questions.auto, awss=list_registries(env).awss)
    regions = fetch_regions(request, questions, env)
    return {region: replace(facts, registry=answers.get(region)) for region, facts in regions.items()}


def _look_up_role_images(
    questions: RequestQuestions, env: AdmissionEnvironment
) -> dict[str, dict[str, RegistryAnswer]]:
    awss = list_registries(env).awss
    return {name: fetch_answers(one, auto=questions.auto, awss=awss) for name, one in questions.role_images.items()}


def _list_archive(code: Object, kept: Collection[str]) -> Listing | None:
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


def _ask_s3(locations: Iterable[str], ask: Callable[[Bucket, str], Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the answer of `ask` for each location, and S3's error code for each location that S3 denies."""
    found, denied = dict[str, Any](), dict[str, str]()
    for location in locations:
        address = Address.parse(location)
        try:
            found[location] = ask(Bucket(address.bucket), address.key)
        except ClientError as problem:
            code = code_of(problem)
            if code not in S3_DENIED:
                raise
            denied[location] = code
    return found, denied

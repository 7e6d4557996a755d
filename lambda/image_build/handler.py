"""The Build machine's function: `check` looks up what a request names and orders a build, `collect` reads which images exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from aws import builds, pinned, registry
from aws.errors import OVERWRITTEN, S3_DENIED
from aws.s3 import Bucket
from contract import keys, names
from contract.aws_errors import code_of
from contract.image_environments import ImageBuildEnvironment
from contract.images import AMD64, ContainerImage, Context
from contract.images import registry as host
from git_code.commit import GitCommit, NotFetched
from git_code.fetching import fetch_archive
from image_build.archive import problems as archive_problems
from image_build.policy import MOST_CONTEXT, How, ImageFacts, ImageQuestions, decide, questions
from image_build.request import read
from refusals.addresses import Address

logger = Logger(service="image-build")
GZIP = "application/gzip"
DENIED_OR_OVERWRITTEN = S3_DENIED | OVERWRITTEN
"""S3's errors that say something about the context: it may not be read, or it changed while it was read."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    env = ImageBuildEnvironment.read()
    if event["action"] == "check":
        return _check(event["request"], env)
    return _collect(event["plan"], event.get("build"), event.get("problem"), env)


def _check(raw: object, env: ImageBuildEnvironment) -> dict[str, Any]:
    """Only reads. A wrong field does not keep the other fields from being looked up."""
    request, problems = read(raw)
    with TemporaryDirectory() as folder:
        archive = Path(folder, "context.tar.gz")
        facts = _facts(questions(request, env), request.repository, request.tag, env, archive)
        plan = decide(request, facts, env, problems)
        if plan.order and plan.how is How.BUILT and archive.exists():
            plan = replace(plan, order=replace(plan.order, context=_keep(archive, plan.order.context, env)))
    logger.info("checked", repository=plan.repository, tag=plan.tag, how=plan.how.value)
    return {
        "repository": plan.repository,
        "tag": plan.tag,
        "how": plan.how.value,
        "order": plan.order.text() if plan.order else "",
        "platform": plan.order.platform if plan.order else AMD64,
    }


def _facts(
    questions: ImageQuestions, repository: str, tag: str, env: ImageBuildEnvironment, archive: Path
) -> ImageFacts:
    standing, without = (
        registry.everywhere(names.repository(env.deployment, repository), tag, env.regions)
        if questions.tag
        else ({}, [])
    )
    found, denied, inside = _context(questions.context)
    not_fetched = None
    if questions.commit:
        found, not_fetched, inside = _fetch(questions.commit, env, archive)
    return ImageFacts(
        standing={region: digest for region, digest in standing.items() if digest},
        no_repository=tuple(without),
        context=found,
        denied=denied,
        not_fetched=not_fetched,
        archive=tuple(inside),
        absent=frozenset(image for image in questions.images if not _there(image)),
    )


def _context(address: str) -> tuple[pinned.Pinned | None, str, list[str]]:
    """Returns the archive's head, S3's error code where it may not be read, and what is wrong inside."""
    if not address:
        return None, "", []
    place = Address.parse(address)
    try:
        found = pinned.head(place.bucket, place.key)
        if found is None or found.archived or not 0 < found.size <= MOST_CONTEXT:
            return found, "", []
        with pinned.opened(found) as file:
            return found, "", archive_problems(file, place.key)
    except ClientError as problem:
        code = code_of(problem)
        if code in DENIED_OR_OVERWRITTEN:
            return None, code, []
        raise


def _fetch(
    commit: GitCommit, env: ImageBuildEnvironment, archive: Path
) -> tuple[pinned.Pinned | None, NotFetched | None, list[str]]:
    """Fetches a commit into `archive`; returns where it is to be kept, why it was not fetched, and what is wrong inside."""
    if trouble := fetch_archive(commit, env.git_hosts[commit.host], archive):
        return None, trouble, []
    key = keys.fetched_context(commit.url, commit.commit)
    found = pinned.Pinned(bucket=env.bucket, key=key, size=archive.stat().st_size, version="", etag="", archived=False)
    with archive.open("rb") as file:
        return found, None, archive_problems(file, archive.name)


def _keep(archive: Path, context: Context | None, env: ImageBuildEnvironment) -> Context:
    """Writes what was fetched, and names the version that the build reads. The same commit is the same bytes, whoever writes them."""
    assert context is not None
    Bucket(env.bucket).put(context.key, archive.read_bytes(), kind=GZIP)
    found = pinned.head(context.bucket, context.key)
    assert found is not None
    return replace(context, version=found.version, etag=found.etag)


def _there(image: ContainerImage) -> bool:
    """Whether the registry has the image; true also where it does not let us look, because the pull will show."""
    try:
        return bool(registry.find_digest(image.account, image.repository, image.tag, image.digest, image.region))
    except ClientError as problem:
        logger.warning("not looked at", image=str(image), error=code_of(problem))
        return True


def _collect(plan: Mapping[str, Any], build: str | None, problem: Any, env: ImageBuildEnvironment) -> dict[str, Any]:
    """Asks every region which image it has, and does not rely on memory. Raises BuildFailed unless all have the same one."""
    if problem is not None:
        raise builds.failure(problem)
    repository, tag = plan["repository"], plan["tag"]
    digest = registry.same_everywhere(repository, tag, env.regions)
    logger.info("collected", repository=repository, tag=tag, digest=digest, build=build or "")
    return {
        "repository": repository,
        "tag": tag,
        "digest": digest,
        "images": {
            region: str(ContainerImage(host(env.account, region, env.suffix), repository, digest=digest))
            for region in env.regions
        },
        "build": build or "",
        "how": plan["how"],
        "unchanged": plan["how"] == How.UNCHANGED.value,
    }

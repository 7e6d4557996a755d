"""Asks AWS everything that a batch of lines needs to know, in parallel and each thing once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from botocore.exceptions import ClientError

from aws import data, pinned, registry, training_prices
from aws.clients import BRISK, PATIENT, client
from aws.ec2 import Ec2
from aws.errors import CHANGED, S3_DENIED
from aws.prices import ANSWERS_IN, on_demand_usd
from contract.aws_errors import code_of
from contract.images import ContainerImage
from contract.short_tags import SAGEMAKER, ListedTag, agreed, is_short
from contract.training import REQUIREMENTS
from grid_plan.answers import NAME, NAMES, Answers, BucketPlace, CodeQuestion, CodeStand, Size, Stand, price_key
from grid_plan.code import ENDINGS, GZIP
from grid_plan.questions import Questions, ask
from grid_plan.wanted import Wanted
from refusals.addresses import Address
from refusals.archive import absent, listing, object_problems
from refusals.requirements import requirements_problems
from refusals.script import code_problems
from refusals.wording import denial, plain

T = TypeVar("T")
AT_ONCE = 32
CODE_S = 10.0
"""How long an archive of code is read. Later entries are accepted without a look."""
AUTO_MODE = 1.12
"""What EKS takes for a machine of its Auto Mode, beside EC2's price: about an eighth of that (EKS's pricing page)."""
PAGES = 20
"""Pages of 1,000 objects that are counted in the data of `auto` lines, for the price of moving it."""


def learn(trainings: list[Wanted], answers: Answers, pool: ThreadPoolExecutor) -> None:
    """Asks until no question is open: each region of data raises new questions. Raises AWS's own errors."""
    awss = frozenset[str]().union(*(training.registries.awss for training in trainings))
    while True:
        asked = Questions()
        for training in trainings:
            ask(training, answers, asked)
        if not asked:
            return
        _answer(asked, answers, pool, awss, trainings[0].env.home_region)


def _answer(questions: Questions, answers: Answers, pool: ThreadPoolExecutor, awss: Collection[str], home: str) -> None:
    _prepare(questions)
    _fill(pool, questions.buckets, _bucket, answers.buckets)
    locations, sizes = dict(questions.locations), dict(questions.sizes)
    _fill(pool, locations, lambda one: _anything(one, locations[one]), answers.locations)
    _fill(pool, sizes, lambda one: _size(one, sizes[one]), answers.sizes)
    _fill(pool, questions.images, _image, answers.images)
    answers.images |= _by_short_tags(pool, {one: answers.images[one] for one in questions.images}, awss)
    codes = {one.key: one for one in questions.codes}
    _fill(pool, codes, lambda key: _code(codes[key]), answers.codes)
    prices = {price_key(*one): one for one in questions.prices}
    _fill(pool, prices, lambda key: _price(*prices[key]), answers.prices)
    if questions.types:
        known = Ec2(home).types(questions.types)
        answers.types |= {one: known.get(one) for one in questions.types}


def _price(region: str, instance_type: str) -> float | None:
    """The price of an hour in SageMaker; of a type of EC2, that of a machine which EKS manages."""
    if instance_type.startswith("ml."):
        return training_prices.on_demand_usd(region, instance_type)
    price = on_demand_usd(region, instance_type)
    return None if price is None else price * AUTO_MODE


def _prepare(questions: Questions) -> None:
    """Creates the clients one after another, because boto3's session cannot create them in parallel."""
    if questions.buckets or questions.codes:
        client("s3")
    for region in {region for _, region in (*questions.locations, *questions.sizes)}:
        client("s3", region)
    for region in {ContainerImage.parse(image).region for image in questions.images}:
        client("ecr", region, PATIENT)
    if questions.prices:
        client("pricing", ANSWERS_IN, BRISK)


def _fill(pool: ThreadPoolExecutor, keys: Iterable[str], read: Callable[[str], T], found: dict[str, T]) -> None:
    wanted = sorted(keys)
    found.update(zip(wanted, pool.map(read, wanted), strict=True))


def _bucket(name: str) -> BucketPlace:
    try:
        return BucketPlace(region=data.region_of(name))
    except data.Denied as denied:
        return BucketPlace(denied=denied.code)


def _anything(location: str, region: str) -> Stand:
    address = Address.parse(location)
    try:
        names = data.names_at(address.bucket, address.key, region, NAMES)
    except data.Denied as denied:
        return Stand(there=False, denied=denied.code)
    is_exact = not address.key or address.key.endswith("/") or names in ([address.key], [f"{address.key}/"])
    above = address.key.rfind("/") + 1
    return Stand(there=bool(names), names=() if is_exact else tuple(plain(name[above:], NAME) for name in names))


def _size(location: str, region: str) -> Size:
    address = Address.parse(location)
    try:
        counted, whole = data.size_of(address.bucket, address.key, region, PAGES)
    except data.Denied:
        return Size(bytes=0, whole=False)
    return Size(bytes=counted, whole=whole)


def _code(question: CodeQuestion) -> CodeStand:
    address, where = Address.parse(question.address), f"code: {plain(question.address)}"
    try:
        found = pinned.head(address.bucket, address.key)
        if found is None:
            return CodeStand(problems=(absent(where),))
        problems = object_problems(where, size=found.size, archived=found.archived)
        if not problems:
            until = time.monotonic() + CODE_S
            with pinned.opened(found) as file:
                if not file.peek(2).startswith(GZIP):
                    return CodeStand(problems=(f"{where} is not packed with gzip; allowed: a whole {ENDINGS}",))
                listed = listing(file, address.key, lambda: time.monotonic() > until, (question.wanted, REQUIREMENTS))
            problems = code_problems(
                question.address, question.wanted or None, listed, question.field, endings=ENDINGS, by=question.by
            )
            if question.field == "program":  # the toolkit installs them
                problems += requirements_problems(question.address, listed)
    except ClientError as problem:
        code = code_of(problem)
        if code not in S3_DENIED | CHANGED:
            raise
        return CodeStand(problems=(f"{where} cannot be read: {denial(code)}; allowed: what the deployment may read",))
    return CodeStand(problems=tuple(problems), size=found.size, version=found.version, etag=found.etag)


def _image(text: str) -> Stand:
    image = ContainerImage.parse(text)
    try:
        held = registry.find_digest(image.account, image.repository, image.tag, image.digest, image.region)
        return Stand(there=bool(held), held=held)
    except ClientError as problem:
        return _unseen(problem)


def _by_short_tags(pool: ThreadPoolExecutor, stands: Mapping[str, Stand], awss: Collection[str]) -> dict[str, Stand]:
    """The images for which short tags stand, by address: each of AWS's repositories is listed once, whatever the number of tags."""
    parsed = {
        address: ContainerImage.parse(address)
        for address, stand in stands.items()
        if not stand.there and not stand.denied
    }
    short = {
        address: one for address, one in parsed.items() if one.account in awss and not one.digest and is_short(one.tag)
    }
    repositories = {(one.registry, one.repository): one for one in short.values()}
    listed = dict(zip(repositories, pool.map(_listed, repositories.values()), strict=True))
    found = dict[str, Stand]()
    for repository, tag in sorted({(one.repository, one.tag) for one in short.values()}):
        told = {
            address: listed[one.registry, repository]
            for address, one in sorted(short.items())
            if _is(one, repository, tag)
        }
        found |= {address: tags for address, tags in told.items() if isinstance(tags, Stand)}
        known = {address: tags for address, tags in told.items() if not isinstance(tags, Stand)}
        found |= {
            address: Stand(there=True, digest=one.digest) for address, one in agreed(tag, known, SAGEMAKER).items()
        }
    return found


def _is(image: ContainerImage, repository: str, tag: str) -> bool:
    return (image.repository, image.tag) == (repository, tag)


def _listed(image: ContainerImage) -> list[ListedTag] | Stand:
    try:
        return registry.tags(image)
    except registry.NoRepository:
        return []
    except ClientError as problem:
        return _unseen(problem)


def _unseen(problem: ClientError) -> Stand:
    """An image at which a registry does not let us look. Raises any other error."""
    if (code := code_of(problem)) in ("AccessDeniedException", "RepositoryPolicyNotFoundException"):
        return Stand(there=False, denied=code)
    raise problem

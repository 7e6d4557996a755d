"""Asks AWS about the regions of a request, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from botocore.exceptions import BotoCoreError, ClientError

from aws import prices, reservations
from aws.clients import BRISK, PATIENT
from aws.ec2 import BUSY, Ec2
from aws.facts import InstanceType
from aws.ssm import parameter
from contract import names
from contract.aws_errors import code_of
from contract.codec import decode
from contract.environments import JobChecksEnvironment
from contract.jobs import Ami, Market
from contract.mounts import FileSystems
from contract.places import Place
from job_checks import accelerators
from job_checks.facts import RegionFacts
from job_checks.machines import family, find_setting
from job_checks.once import Once
from job_checks.questions import RequestQuestions
from job_requests.request import JobRequest

AT_ONCE = 8


def fetch_regions(
    request: JobRequest, questions: RequestQuestions, env: JobChecksEnvironment, once: Once
) -> dict[str, RegionFacts]:
    """Fetches what AWS says of each region, `once` for all requests that want the same of it.

    A region that does not answer is a fact where regions were chosen by "auto"; elsewhere the error is raised, and the machine tries
    again. So it does where only a region can run the job that does not answer for now.
    """
    passing = list[ClientError | BotoCoreError]()

    def fetch(region: str) -> RegionFacts:
        try:
            wanted = (questions.markets, questions.instance_types, questions.accelerators, questions.reservation)
            question = ("region", region, questions.auto, *wanted, questions.machine_image, questions.mounts)
            return once.answer(question, lambda: _fetch_region(region, request, questions, env))
        except (ClientError, BotoCoreError) as problem:
            if not questions.auto:
                raise
            if not isinstance(problem, ClientError) or is_passing(problem):
                passing.append(problem)
            code = code_of(problem) if isinstance(problem, ClientError) else type(problem).__name__
            return RegionFacts(place=None, silent=code)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = dict(zip(questions.regions, pool.map(fetch, questions.regions), strict=True))
    if passing and not any(_may_run(one, questions) for one in answers.values()):
        raise passing[0]
    return answers


def is_passing(problem: ClientError) -> bool:
    """Whether the problem is AWS's own: one about rights stays."""
    return (
        code_of(problem) in BUSY | {"ThrottlingException"}
        or problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500
    )


def _may_run(facts: RegionFacts, questions: RequestQuestions) -> bool:
    """Whether the region has what the request names, in a zone of ours; true where it names nothing, which is refused as such."""
    if not (questions.reservation or questions.instance_types or questions.accelerators):
        return True
    if questions.reservation:
        return bool(facts.reservations)
    return any(zones & set(facts.our_zones) for zones in facts.zones.values())


def _fetch_region(
    region: str, request: JobRequest, questions: RequestQuestions, env: JobChecksEnvironment
) -> RegionFacts:
    config = BRISK if questions.auto else PATIENT
    ec2 = Ec2(region, config)
    described = parameter(names.region_parameter(env.deployment, region), region)
    offered = parameter(names.file_systems_parameter(env.deployment, region), region) if questions.mounts else None
    accelerated = ec2.accelerated() if questions.accelerators else []
    types = ec2.types(questions.instance_types) if questions.instance_types else {}
    types |= {kind.name: kind for kind in accelerators.list_matching(request, accelerated, env.limits)}
    return RegionFacts(
        place=decode(Place, described) if described else None,
        types=types,
        accelerated=tuple(accelerated),
        zones=ec2.zones_offering(types) if types else {},
        images=_fetch_images(request, types.values(), ec2, env),
        reservations=tuple(reservations.found(region, questions.reservation, config)) if questions.reservation else (),
        volume_key=ec2.default_volume_key(),
        file_systems=decode(FileSystems, offered).file_systems if offered else (),
        on_demand=_fetch_prices(region, types) if questions.markets else {},
        volumes=prices.volume_prices(region) if questions.markets else None,
        spot=(ec2.spot_prices(types) or {}) if types and Market.SPOT in questions.markets else {},
    )


def _fetch_images(
    request: JobRequest, types: Iterable[InstanceType], ec2: Ec2, env: JobChecksEnvironment
) -> dict[str, Ami | None]:
    """By family; every setting is looked up once."""
    settings = {family(kind): find_setting(request, kind, env) for kind in types}
    found = {one: _fetch_image(one, ec2) for one in set(settings.values())}
    return {name: found[one] for name, one in settings.items()}


def _fetch_prices(region: str, types: dict[str, InstanceType]) -> dict[str, float]:
    """Fetches prices, which are the same in every zone and so decide between regions alone. Side by side: a Price List that
    is down costs the time of one."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(types, pool.map(lambda name: prices.on_demand_usd(region, name), types), strict=True))
    return {name: usd for name, usd in found.items() if usd is not None}


def _fetch_image(setting: str, ec2: Ec2) -> Ami | None:
    """Returns the image that a setting names: an AMI id itself, or the value of an SSM parameter."""
    if not setting:
        return None
    found = setting if setting.startswith("ami-") else parameter(setting, ec2.region)
    return ec2.image(found) if found else None

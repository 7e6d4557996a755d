"""Resolves the regions of a request: what stands against each, and what each offers of every instance type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contract import names
from contract.environments import JobChecksEnvironment
from job_checks.containers import ResolvedImage
from job_checks.facts import RegionFacts
from job_checks.machines import Offer, list_offers
from job_requests.offered import is_allowed, refuse_region
from job_requests.request import JobRequest

MANAGED = "alias/aws/ebs"
"""AWS's managed key for EBS volumes. Its own policy lets everyone who may launch use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegion:
    """A region that the request names, or one of those that "auto" stands for."""

    name: str
    facts: RegionFacts | None
    """None where the deployment does not train there, so that the region was not asked."""
    against: list[str]
    """Why no job of this request can run there."""
    offers: Mapping[str, Offer]
    """By instance type, of those that the request names and the deployment allows; empty for a region that did not answer."""


def resolve_regions(
    request: JobRequest,
    regions: Sequence[str],
    facts: Mapping[str, RegionFacts],
    env: JobChecksEnvironment,
    image: ResolvedImage,
    mounts_against: Mapping[str, list[str]],
) -> tuple[ResolvedRegion, ...]:
    """Judges each of the `regions` that the request names, in their order. `facts`: by region, of those that train."""
    types = [name for name in request.instance_types if is_allowed(name, env.limits)]
    found = []
    for region in regions:
        one = facts.get(region)
        named = [*image.against.get(region, []), *mounts_against.get(region, [])]
        against = _list_region_problems(request, region, one, env, named)
        offers = dict[str, Offer]()
        if one is not None and not one.silent:
            offers = list_offers(request, region, one, types, env, image, is_usable=not against)
        found.append(ResolvedRegion(name=region, facts=one, against=against, offers=offers))
    return tuple(found)


def _list_region_problems(
    request: JobRequest, region: str, facts: RegionFacts | None, env: JobChecksEnvironment, named: list[str]
) -> list[str]:
    """Lists what stands against the region; `named` is what it lacks of the image and the file systems that the request names."""
    where = request.region_field
    if region not in env.regions:
        return [refuse_region(where, region, env.regions)]
    if facts is not None and facts.silent:
        return [f"{where}: Admit could not ask AWS about {region} ({facts.silent}); allowed: regions that answer"]
    place = facts.place if facts else None
    if facts is None or place is None or not place.zones or not place.security_groups:
        parameter = names.region_parameter(env.deployment, region)
        what = "is missing" if place is None else "names no security group" if place.zones else "has no zones"
        return [f"{where}: {region} has no Region stack that trains ({parameter} {what}); allowed: deploy it first"]
    return [*_list_key_problems(facts.volume_key, region, place.volume_key, field=where), *named]


def _list_key_problems(key: str, region: str, own: str, *, field: str) -> list[str]:
    """Rejects a region whose default key is a customer's. `key` is EC2's answer; empty means that EC2 does not say, and is accepted.
    With a key of the deployment's `own` launches name that key, and the default does not matter.

    With a customer's key EC2 accepts the launch and ends the machines as they start (Client.InternalError), unless the launching
    role may use that key. A function's role may not, and the job would spend its attempts without learning the reason.
    """
    if own or not key or key.endswith(MANAGED):
        return []
    return [
        f"{field}: in {region} the account encrypts volumes under a key of its own ({key}), which launches may not use; "
        f"allowed: a region whose default key is {MANAGED}, or that names the key as volume_key in cdk.json (docs/guides/landing-zones.md)"
    ]

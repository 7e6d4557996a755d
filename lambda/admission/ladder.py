"""Makes the ladder of a request: every place, type and market in which its nodes may run, in the order in which they are tried."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from admission import containers, mounts, volumes
from admission.containers import ImageLook
from admission.images import family, is_allowed
from admission.request import JobRequest
from aws.facts import InstanceType, Reservation
from aws.prices import VolumePrices
from aws.times import utc
from contract import names
from contract.environments import AdmissionEnvironment
from contract.jobs import Ami, Market, Rung
from contract.mounts import FileSystem
from contract.places import Place
from refusals.wording import plain

MOST_RUNGS = 240
"""Of one job. A walk writes all of them down before and after each call, and Step Functions' output shows them."""
REASONS_SHOWN = 3
"""So many different reasons against one type are told; there may be one a region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFacts:
    """AWS's answers about one region."""

    place: Place | None
    """Its description; None where no stack describes it."""
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    accelerated: tuple[InstanceType, ...] = ()
    """All types with accelerators, of a request that names accelerators."""
    zones: Mapping[str, set[str]] = field(default_factory=dict)
    images: Mapping[str, Ami | None] = field(default_factory=dict)
    """Image by family."""
    reservations: tuple[Reservation, ...] = ()
    """Those that the request names."""
    volume_key: str = ""
    """Default key of EBS volumes; empty where EC2 does not say."""
    on_demand: Mapping[str, float] = field(default_factory=dict)
    """USD an hour by type; without those that are not known."""
    volumes: VolumePrices | None = None
    """What root volumes cost; None where it is not known."""
    spot: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """USD an hour by type and zone; without those that are not known."""
    look: ImageLook | None = None
    """What its registry says of the request's image; None where there is none to ask for."""
    file_systems: tuple[FileSystem, ...] = ()
    """What its jobs may mount; empty for a request that mounts nothing."""
    silent: str = ""
    """Why the region could not be asked; then nothing else is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """`problems` are reasons against the request; `left_out` says what is not tried although the request allows it."""

    rungs: tuple[Rung, ...]
    problems: tuple[str, ...]
    left_out: tuple[str, ...]


def told(rung: Rung) -> str:
    """A rung for people."""
    price = "" if rung.usd is None else f", ${rung.usd:.4f} an hour"
    reserved = f" {rung.reservation}" if rung.reservation else ""
    begins = f", from {utc(rung.begins_at)}" if rung.begins_at else ""
    ends = "" if rung.ends_at is None else f", until {utc(rung.ends_at)}"
    return f"{rung.instance_type} in {rung.zone}, {rung.market.value}{reserved}{price}{begins}{ends}"


def asked_regions(request: JobRequest, env: AdmissionEnvironment) -> tuple[str, ...]:
    """The regions of the request, the first one first; for "auto" all training regions, home before the others."""
    if request.regions is None:
        return (request.region or env.home_region,)
    if request.anywhere:
        return tuple(sorted(env.regions, key=lambda region: region != env.home_region))
    return tuple(request.regions)


def ladder(request: JobRequest, facts: Mapping[str, RegionFacts], env: AdmissionEnvironment) -> Ladder:
    """Lists every type in the order of the request, in each market, in each of our zones that offers it; the cheapest places first.

    `facts`: by region, of those that train. A region that the request names has to be one where its nodes can run; of "auto" the others
    are left out.
    """
    regions, auto = asked_regions(request, env), request.anywhere
    against = {region: region_problems(request, region, facts.get(region), env) for region in regions}
    good = [region for region in regions if not against[region]]
    answered = [region for region in regions if region in facts and not facts[region].silent]
    views = [View(request, region, facts[region], env, usable=region in good) for region in answered]
    rungs, problems, useful = list[Rung](), list[str](), set[str]()
    for name in request.instance_types:
        if not is_allowed(name, env.limits):
            problems.append(not_allowed(name, env))
            continue
        found = [view.rungs(name) for view in views]
        problems += _of_type([view.problems(name) for view in views], any_found=any(found))
        useful |= {rung.region for more in found for rung in more}
        rungs += _in_order(request, [rung for more in found for rung in more])
    unused = {region: [f"none of its zones offers {_listed(request.instance_types)}"] for region in good}
    unused = {region: lines for region, lines in unused.items() if rungs and region not in useful}
    left_out = {**{region: lines for region, lines in against.items() if lines}, **unused}
    if not auto:
        told = [line for lines in against.values() for line in lines]
        told += [f"regions: {region}: {lines[0]}; allowed: regions that have one" for region, lines in unused.items()]
        problems, left_out = [*told, *problems], {}
    elif not rungs:
        problems = [*(line for lines in against.values() for line in lines), *problems]
    kept = _bounded(request, rungs)
    dropped = [f"{len(rungs) - len(kept)} dearer places"] if len(kept) < len(rungs) else []
    skipped = [f"{region}: {'; '.join(lines)}" for region, lines in left_out.items()]
    return Ladder(rungs=tuple(kept), problems=tuple(dict.fromkeys(problems)), left_out=(*skipped, *dropped))


def _of_type(reasons: Sequence[list[str]], *, any_found: bool) -> list[str]:
    """The reasons against a type: all where no region has it, and only a disk that is too small where one has it."""
    told = list(dict.fromkeys(line for lines in reasons for line in lines))
    hard = [line for line in told if line.startswith("volume_gb")]
    return hard if any_found else told[:REASONS_SHOWN]


def _in_order(request: JobRequest, rungs: Sequence[Rung]) -> list[Rung]:
    """Of one type: by market, then by price. Where a price is not known, the order of regions and zones stays, after those that are."""
    markets = request.market.markets
    return sorted(rungs, key=lambda one: (markets.index(one.market), math.inf if one.usd is None else one.usd))


def _bounded(request: JobRequest, rungs: Sequence[Rung]) -> list[Rung]:
    """At most MOST_RUNGS, as many of each type and market as of any other."""
    if len(rungs) <= MOST_RUNGS:
        return list(rungs)
    share = MOST_RUNGS // (len(request.instance_types) * len(request.market.markets))
    kinds = Counter[tuple[str, Market]]()
    kept = list[Rung]()
    for one in rungs:
        kinds[one.instance_type, one.market] += 1
        if kinds[one.instance_type, one.market] <= share:
            kept.append(one)
    return kept


@dataclass(frozen=True, slots=True)
class View:
    """A region in which the deployment trains, as the request sees it."""

    request: JobRequest
    region: str
    facts: RegionFacts
    env: AdmissionEnvironment
    usable: bool
    """Whether nothing stands against the region itself."""

    def rungs(self, name: str) -> list[Rung]:
        """Every market and zone in which the region offers the type; empty where something stands against it."""
        kind, place = self.facts.types.get(name), self.facts.place
        if not self.usable or kind is None or place is None or not self._has_image(kind):
            return []
        if containers.architecture_problems(self.request, kind, self.facts.look):
            return []
        image = self.image(name)
        assert image is not None
        return [
            Rung(
                region=self.region,
                zone=zone.name,
                instance_type=name,
                market=market,
                image=image,
                cluster=kind.cluster and self.request.nodes > 1,
                usd=self._usd(name, zone.name, market),
            )
            for market in self.request.market.markets
            for zone in place.zones
            if zone.name in self.facts.zones.get(name, set())
        ]

    def _usd(self, name: str, zone: str, market: Market) -> float | None:
        return self.facts.spot.get((name, zone)) if market is Market.SPOT else self.facts.on_demand.get(name)

    def image(self, name: str) -> Ami | None:
        """The image of nodes of the type."""
        kind = self.facts.types.get(name)
        return self.facts.images.get(family(kind)) if kind else None

    def _has_image(self, kind: InstanceType) -> bool:
        image = self.facts.images.get(family(kind))
        fits = image is not None and (not image.architecture or image.architecture in kind.architectures)
        return fits and image is not None and image.owner in _image_owners(self.env)

    def problems(self, name: str) -> list[str]:
        """What stands against the type in this region."""
        kind, region = self.facts.types.get(name), self.region
        if kind is None:
            return [f"instance_types: {name} does not exist in {region}; allowed: EC2 types that the region has"]
        image = self.facts.images.get(family(kind))
        if image is None:
            return [_no_image(self.request, kind, region, self.env)]
        if image.architecture and image.architecture not in kind.architectures:
            return [_other_architecture(self.request, image, kind)]
        if not self._has_image(kind):
            owners = ", ".join(_image_owners(self.env))
            return [
                f"instance_types: {name} would start from {image.id}, an image of {image.owner or 'an unknown owner'}; allowed: "
                f"images of {owners} (image_owners in cdk.json names others than AWS and this account)"
            ]
        if against := containers.architecture_problems(self.request, kind, self.facts.look):
            return against
        problems = volumes.too_small_for(image, self.request.volume_gb)
        if self.usable and self.facts.place and not self.rungs(name):
            ours = ", ".join(zone.name for zone in self.facts.place.zones)
            problems.append(f"instance_types: {name} is offered in no zone of ours; allowed: types that {ours} offer")
        return problems


def region_problems(
    request: JobRequest, region: str, facts: RegionFacts | None, env: AdmissionEnvironment
) -> list[str]:
    where = "region" if request.regions is None else "regions"
    if region not in env.regions:
        trains = ", ".join(env.regions)
        return [
            f"{where}: the deployment does not train in {plain(region)}; allowed: {trains} (regions with a cidr in cdk.json)"
        ]
    if facts is not None and facts.silent:
        return [f"{where}: {region} could not be asked ({facts.silent}); allowed: regions that answer"]
    place = facts.place if facts else None
    if facts is None or place is None or not place.zones or not place.security_groups:
        parameter = names.region_parameter(env.deployment, region)
        what = "is missing" if place is None else "names no security group" if place.zones else "has no zones"
        return [f"{where}: {region} has no Region stack that trains ({parameter} {what}); allowed: deploy it first"]
    if place.volume_key and Market.SPOT in request.market.markets:
        return [
            f"market: in {region} disks are encrypted under the deployment's own key, which AWS's spot service may not use, so that spot "
            "nodes would end as they start; allowed: on-demand"
        ]
    return [
        *volumes.problems(facts.volume_key, region, place.volume_key, field=where),
        *containers.region_problems(request, region, facts.look, env, field=where),
        *mounts.region_problems(request.mounts, region, facts.file_systems),
    ]


def _image_owners(env: AdmissionEnvironment) -> tuple[str, ...]:
    """Whose images the launcher may use."""
    account = env.instance_profile.split(":")[4]
    return (names.AWS_IMAGES, account, *env.image_owners)


def not_allowed(name: str, env: AdmissionEnvironment) -> str:
    patterns = ", ".join(env.limits.instance_types)
    return f"instance_types: {name} is not allowed in this deployment; allowed: {patterns} (limits.instance_types in cdk.json)"


def _other_architecture(request: JobRequest, image: Ami, kind: InstanceType) -> str:
    field = "instance_types" if request.machine_image is None else "machine_image"
    return (
        f"{field}: {kind.name} would start from {image.id}, an image for {image.architecture}; allowed: images for "
        f"{' or '.join(kind.architectures)}"
    )


def _no_image(request: JobRequest, kind: InstanceType, region: str, env: AdmissionEnvironment) -> str:
    if request.machine_image is not None:
        told = env.machine_images.get(request.machine_image, "")
        return f"machine_image: {request.machine_image} ({told}) is no image in {region}; allowed: an image that the region has"
    name = family(kind)
    setting = f"{env.images[name]} names none" if name in env.images else "none is set"
    return (
        f"instance_types: {kind.name} needs an image of family {name}, and in {region} {setting}; "
        f"allowed: types whose images.<family> in cdk.json names an image ({', '.join(sorted(env.images))} are set)"
    )


def _listed(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else "any of instance_types"

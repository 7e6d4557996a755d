"""The facts that admission is decided by: the execution, and what AWS says of everything that a request names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from aws.facts import InstanceType, Object, Reservation, StoredImage
from aws.prices import VolumePrices
from contract.images import ContainerImage
from contract.jobs import Ami, Job, SourceCheckpoint
from contract.mounts import FileSystem
from contract.places import Place
from git_code.commit import NotFetched
from refusals.archive import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The execution that asks for admission."""

    arn: str
    name: str
    started_at: float
    """UTC epoch seconds."""

    @property
    def partition(self) -> str:
        return self.arn.split(":")[1]

    @property
    def account(self) -> str:
        return self.arn.split(":")[4]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAnswer:
    """What the registry of one region says of the image."""

    image: ContainerImage
    """As nodes there would pull it."""
    stored: StoredImage | None = None
    """None where the registry lacks the image, or does not answer."""
    trouble: str = ""
    """Why it does not answer; empty where it does."""
    other: str = ""
    """The digest of another image that the tag names there; empty where the registry has the one that the job runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFacts:
    """AWS's answers about one region."""

    place: Place | None
    """Its description; None where no stack describes it."""
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    accelerated: tuple[InstanceType, ...] = ()
    """All types with accelerators, of a request that names accelerators."""
    zones: Mapping[str, set[str]] = field(default_factory=dict)
    """Instance type to all zones that offer it."""
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
    registry: RegistryAnswer | None = None
    """What its registry says of the request's image; None where there is none to ask for."""
    file_systems: tuple[FileSystem, ...] = ()
    """What its jobs may mount; empty for a request that mounts nothing."""
    silent: str = ""
    """Why the region does not answer; then nothing else is known."""

    @property
    def our_zones(self) -> tuple[str, ...]:
        """The zones that the deployment has subnets in, in their order."""
        return tuple(zone.name for zone in self.place.zones) if self.place else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What there is of the job that a request resumes from."""

    job: Job | None = None
    runs: bool = False
    sets: tuple[SourceCheckpoint, ...] = ()
    """Its newest closed sets, over all its regions."""
    unread: Mapping[str, str] | None = None
    """Region to the error code, where its bucket could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """AWS's answers to the questions of one request."""

    regions: dict[str, RegionFacts] = field(default_factory=dict)
    """Those that were asked, by name."""
    code: Object | None = None
    archive: Listing | None = None
    """Contents of the archive; None where it could not be read."""
    not_fetched: NotFetched | None = None
    """Why the commit is not there."""
    denied: dict[str, str] = field(default_factory=dict)
    """S3 address to the error code with which S3 denies it."""
    nothing_at: tuple[str, ...] = ()
    """Data locations that hold nothing."""
    secrets_missing: tuple[str, ...] = ()
    """Environment names whose secret does not exist."""
    source: SourceFacts | None = None
    """Of the job from which this one begins; None where it names none, or itself."""
    held_by: Job | None = None
    """The job of another execution that already has the name."""
    role_answers: Mapping[str, Mapping[str, RegistryAnswer]] = field(default_factory=dict)
    """What registries say of the images of a request's roles: by image, by region."""

    def of_image(self, name: str | None) -> RequestFacts:
        """Returns the same facts as of a request that names one of its roles' images, or none."""
        answers = self.role_answers.get(name or "", {})
        return replace(self, regions={one: replace(it, registry=answers.get(one)) for one, it in self.regions.items()})

    @property
    def types(self) -> dict[str, InstanceType]:
        """Every instance type that a region has, by name."""
        return {name: kind for one in self.regions.values() for name, kind in one.types.items()}

    @property
    def accelerated(self) -> list[InstanceType]:
        """All types with accelerators, of a request that names accelerators, each once."""
        return list({kind.name: kind for one in self.regions.values() for kind in one.accelerated}.values())

    @property
    def offered(self) -> set[str]:
        """Names of the types that some zone of the deployment offers."""
        return {
            name for one in self.regions.values() for name, zones in one.zones.items() if zones & set(one.our_zones)
        }

    @property
    def answers(self) -> dict[str, RegistryAnswer]:
        """What registries say of the request's image, by region, of those that were asked."""
        return {region: one.registry for region, one in self.regions.items() if one.registry}

    @property
    def file_systems(self) -> dict[str, tuple[FileSystem, ...]]:
        """What jobs may mount, by region."""
        return {region: one.file_systems for region, one in self.regions.items()}

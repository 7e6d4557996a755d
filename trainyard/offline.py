"""Judges requests without AWS: by the code of Admit and of Plan, as if AWS had everything that a request names.

What stands against a request then stands against it whatever AWS answers, in the words in which the functions say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aws.facts import Accelerators, InstanceType, Object, Platform, Reservation, StoredImage
from aws.prices import VolumePrices
from contract import keys, names
from contract.environments import AdmissionEnvironment
from contract.images import ContainerImage
from contract.jobs import Ami
from contract.mounts import FileSystem
from contract.places import Place, Zone
from contract.request_rules import NO_RULES, RequestRules
from git_code.commit import GitCommit
from job_checks.facts import Execution, RegionFacts, RegistryAnswer, RequestFacts
from job_checks.image_names import read_image
from job_checks.judge import list_problems, price_request
from job_checks.questions import RequestQuestions
from job_checks.reservations import LINUX, SHARED
from job_requests.reading import read
from job_requests.request import JobRequest
from job_requests.roles import split_request
from refusals.archive import Listing, listing
from refusals.wording import plain, refusal

TYPE = re.compile(r"[a-z][a-z0-9-]*\.(nano|micro|small|medium|large|([0-9]{1,3})?xlarge|metal(-[0-9]{1,3}xl)?)")
"""The form of the name of every type that EC2 has had."""
FAMILIES = ("x86_64", "arm64", "neuron")
"""Families of machine images that a type of any name may have; that of P3 goes by the name."""
DIGEST = f"sha256:{'0' * 64}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCode:
    """An archive of code on this computer, as it would be uploaded."""

    size: int
    listing: Listing
    shown: str = ""
    """What a refusal calls it; empty for the address to which it would be uploaded."""

    @classmethod
    def look_inside(cls, archive: Path, files: Sequence[str], shown: str = "") -> PackedCode:
        """Lists the archive as Admit does; `files` are those that commands name."""
        with archive.open("rb") as file:
            found = listing(file, archive.name, lambda: False, files)
        return cls(size=archive.stat().st_size, listing=found, shown=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """What is known without AWS: the settings, and the code where it lies here."""

    env: AdmissionEnvironment
    account: str
    partition: str
    file_systems: dict[str, tuple[FileSystem, ...]] = field(default_factory=dict)
    """By region."""
    rules: RequestRules = NO_RULES
    """The presets and tags of the settings."""
    code: PackedCode | None = None


def read_request(raw: object, known: Supposed) -> tuple[JobRequest, list[str]]:
    """Reads a request as Admit reads it: what is right of it, and a line for every problem of its form."""
    return read(raw, known.env.limits, known.rules)


def judge_job(raw: object, name: str, known: Supposed, *, now: float) -> str:
    """Returns what Admit would say against the request of a job of this name, whatever AWS answers; empty where that is nothing."""
    request, problems = read_request(raw, known)
    execution = Execution(arn=_address(name, known), name=name, started_at=now)
    if request.resume_from != name:
        request = request.model_copy(update={"resume_from": None})  # whether there is such a job, only AWS knows
    against = list_problems(price_request(request, execution, _suppose(request, name, known), known.env), problems)
    return _show_code(str(refusal(against)), request, known) if against else ""


def _show_code(words: str, request: JobRequest, known: Supposed) -> str:
    """Calls the code what a person calls it, in place of an address at which nothing lies yet."""
    if not known.code or not known.code.shown:
        return words
    return words.replace(plain(str(request.code)), plain(known.code.shown))


def list_unknown(raw: object, known: Supposed) -> list[str]:
    """Returns what only AWS knows of what the request names, each as a whole sentence."""
    request, _ = read_request(raw, known)
    lines = []
    if wanted := request.accelerators or ", ".join(request.instance_types):
        lines.append(f"Whether the regions offer {wanted}, with a quota and capacity for it, and at which price.")
    if isinstance(request.code, GitCommit):
        lines.append("Whether the git host gives the commit, and what is in it.")
    elif request.code and known.code is None:
        lines.append(f"Whether {request.code} exists and has what the command runs (--code DIR looks at a folder).")
    for given, what in (
        (request.image, "Whether the image is in the registries, and what it runs."),
        (request.data, "Whether there is something at each address of data, and nodes may read it."),
        (request.secrets, "Whether the secrets exist."),
        (request.resume_from, "Whether the job of resume_from has ended and has a checkpoint."),
        (request.job_role, "Whether the role of job_role trusts the deployment."),
        (request.reservation, "Whether the reservation exists, has room, and has the deployment's tag."),
    ):
        if given:
            lines.append(what)
    return [*lines, "Whether the name was taken by an earlier job, and whether admission is open."]


class SupposedFacts:
    """Answers about the jobs of lines as if AWS had everything that they name."""

    knows_jobs = False

    def __init__(self, known: Supposed) -> None:
        self._known = known

    def look_up(self, request: JobRequest, questions: RequestQuestions) -> RequestFacts:  # noqa: ARG002  (as FactsSource has it)
        return _suppose(request, "line", self._known)

    def look_up_data(self, locations: Iterable[str]) -> RequestFacts:  # noqa: ARG002
        return RequestFacts()


def _address(name: str, known: Supposed) -> str:
    machine = names.machine(known.env.deployment)
    return f"arn:{known.partition}:states:{known.env.home_region}:{known.account}:execution:{machine}:{name}"


def _suppose(request: JobRequest, name: str, known: Supposed) -> RequestFacts:
    """Returns the best that AWS could answer."""
    env = known.env
    wanted = [one for one in request.list_regions(env.home_region, env.regions) if one in env.regions]
    images = read_image(request.image, env).in_regions(wanted)
    return RequestFacts(
        regions={
            region: _suppose_region(request, region, images.get(region), known, is_first=region == wanted[0])
            for region in wanted
        },
        code=_suppose_code(request, name, known),
        archive=known.code.listing if known.code else None,
        role_answers={
            part.image: {
                region: found
                for region, image in read_image(part.image, env).in_regions(wanted).items()
                if (found := _suppose_registry(image)) is not None
            }
            for part in split_request(request)
            if request.roles and part.image
        },
    )


def _suppose_code(request: JobRequest, name: str, known: Supposed) -> Object | None:
    if not request.code:
        return None
    archive = request.code.archive if isinstance(request.code, GitCommit) else "code.tar.gz"
    size = known.code.size if known.code else 1
    return Object(bucket=known.env.bucket, key=keys.JobPrefix(name or "job").code(archive), size=size)


def _suppose_region(
    request: JobRequest, region: str, image: ContainerImage | None, known: Supposed, *, is_first: bool
) -> RegionFacts:
    env, zone = known.env, f"{region}a"
    types = {
        name: InstanceType(name=name, architectures=("x86_64",), cluster=True, efas=1)
        for name in _name_types(request, env)
    }
    ami = Ami(id="", root_device="", snapshot_gb=0, owner=names.AWS_IMAGES)
    p3 = ["p3"] if "p3" in env.images or request.machine_image in env.machine_images else []
    return RegionFacts(
        place=Place(region=region, bucket="", security_groups=("",), zones=(Zone(name=zone, subnet=""),)),
        types=types,
        accelerated=_suppose_accelerated(request, list(types)),
        zones={name: {zone} for name in types},
        images=dict.fromkeys([*FAMILIES, *p3], ami),
        reservations=_suppose_reservations(request, region, zone, list(types), known) if is_first else (),
        on_demand=dict.fromkeys(types, 0.0),
        volumes=VolumePrices(gib=0.0, iops=0.0, mibs=0.0),
        registry=_suppose_registry(image),
        file_systems=known.file_systems.get(region, ()),
    )


def _name_types(request: JobRequest, env: AdmissionEnvironment) -> Sequence[str]:
    """Returns the types of the request whose names a type may have; one that the deployment allows where the request names accelerators in
    their place."""
    types = dict.fromkeys(name for part in split_request(request) for name in part.instance_types)
    if not types:
        return [env.limits.instance_types[0].replace("*", "any")]
    return [name for name in types if TYPE.fullmatch(name)]


def _suppose_accelerated(request: JobRequest, types: Sequence[str]) -> tuple[InstanceType, ...]:
    if not request.accelerators:
        return ()
    name, _, count = request.accelerators.rpartition(":")
    having = (Accelerators(name=name, count=int(count)),)
    return tuple(
        InstanceType(name=one, architectures=("x86_64",), cluster=True, accelerators=having, efas=1) for one in types
    )


def _suppose_reservations(
    request: JobRequest, region: str, zone: str, types: Sequence[str], known: Supposed
) -> tuple[Reservation, ...]:
    if not request.reservation:
        return ()
    return (
        Reservation(
            id=request.reservation,
            region=region,
            zone=zone,
            instance_type=next(iter(types), ""),
            state="active",
            total=request.nodes,
            owner=known.account,
            platform=LINUX,
            tenancy=SHARED,
            deployment=known.env.deployment,
            block=False,
            interruptible=False,
            begins_at=0.0,
            ends_at=None,
        ),
    )


def _suppose_registry(image: ContainerImage | None) -> RegistryAnswer | None:
    if image is None:
        return None
    any_program = Platform(architecture="amd64", size=0, entry_point=("any",))
    return RegistryAnswer(image=image, stored=StoredImage(digest=DIGEST, platforms=(any_program,)))

"""Decides where a training runs, by AWS's answers: the regions of its data and its image, and the price of an hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from contract.images import ContainerImage
from grid_plan import code
from grid_plan.answers import NAMES, Answers, bucket_of
from grid_plan.columns import AUTO
from grid_plan.wanted import Wanted
from refusals.wording import denial, plain

TRANSFER_USD_GB = 0.02
"""S3's published price per GB from one region to another, from the US and Europe; from some other regions it is up to $0.15."""
GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The region of a training, and the copies of its data there."""

    region: str
    why: str
    copies: dict[str, str]
    """Channel to the address in that region."""
    image: str
    code: str
    """Digest of the archive of its code; empty where it has none."""
    hourly_usd: float | None
    """Price of all instances together per hour; None where it is unknown."""

    def most_usd(self, training: Wanted) -> float | None:
        """Returns the cost until the time-out."""
        return None if self.hourly_usd is None else self.hourly_usd * (training.spec.max_hours or 0)


class Undecided(Exception):
    """No region suits the training; `problems` say why."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def decide(training: Wanted, answers: Answers) -> Decision:
    """Decides for a training about which everything is known. Raises Undecided with every reason."""
    candidates, problems = list(training.regions), [*_unreadable(training, answers), *_checkpoint(training, answers)]
    if training.code:
        problems += answers.codes[training.code.key].problems
    if training.spec.region == AUTO and not candidates:
        problems.append(
            "region: auto finds no region that both image and checkpoint allow; allowed: an image of the deployment"
        )
    if not problems:
        candidates, found = _with_data(training, candidates, answers)
        problems += found
    candidates, found = _with_image(training, candidates, answers)
    problems += found
    if problems:
        raise Undecided(problems)
    region, why = _cheapest(training, candidates, answers)
    return Decision(
        region=region,
        why=why,
        copies={name: _copy(channel.data, region, answers) for name, channel in training.channels.items()},
        image=_image(training, region, answers),
        code=_digest(training, answers),
        hourly_usd=_hourly(training, region, answers),
    )


def warnings(training: Wanted, decision: Decision, answers: Answers) -> Iterator[str]:
    """Yields a warning for data whose address other names begin with: SageMaker reads all of them."""
    read = set(decision.copies.values())
    for field, address in training.addresses():
        names = answers.locations[address].names
        if address in read and names:
            shown = ", ".join(names[: NAMES - 1]) + (" and more" if len(names) == NAMES else "")
            yield (
                f"{field}: {plain(address)} is neither one object nor one folder alone, and SageMaker reads everything that begins "
                f"with it: {shown} (the address of a folder ends with /)"
            )


def _image(training: Wanted, region: str, answers: Answers) -> str:
    """The image's address there, with the digest of the image for which a short tag stands."""
    address = training.image_in(region)
    stand = answers.images.get(address)
    digest = (stand.digest or (stand.held if training.is_pods else "")) if stand else ""
    return str(replace(ContainerImage.parse(address), digest=digest)) if digest else address


def _digest(training: Wanted, answers: Answers) -> str:
    if training.code is None:
        return ""
    stand = answers.codes[training.code.key]
    return code.digest(training.code.address, stand.version, stand.etag)


def _unreadable(training: Wanted, answers: Answers) -> Iterator[str]:
    for name, address in training.addresses():
        place, stand = answers.buckets.get(bucket_of(address)), answers.locations.get(address)
        code = (place.denied if place else "") or (stand.denied if stand else "")
        if code:
            yield f"{name}: {plain(address)} cannot be read: {denial(code)}; allowed: what the deployment may read"
        elif stand and not stand.there:
            yield f"{name}: there is nothing at {plain(address)}; allowed: objects and folders that exist"


def _checkpoint(training: Wanted, answers: Answers) -> Iterator[str]:
    """Refuses checkpoints of a grid that may still write them: two trainings in one folder destroy each other's."""
    report = training.report_of_checkpoint
    if report and not answers.locations[report].there:
        yield (
            f"checkpoint: {plain(training.spec.checkpoint or '')} belongs to a grid that has not ended; "
            "allowed: a folder of a grid whose report.json is there"
        )


def _copy(copies: list[str], region: str, answers: Answers) -> str:
    return next((one for one in copies if answers.region(one) == region), "")


def _with_data(training: Wanted, candidates: list[str], answers: Answers) -> tuple[list[str], list[str]]:
    """Keeps the regions with a copy of the data: SageMaker reads only buckets of its own region."""
    problems = []
    for name, channel in training.channels.items():
        where = sorted({answers.region(one) for one in channel.data})
        field = "data" if name == training.spec.channel and training.spec.data else f"channels.{name}"
        left = [region for region in candidates if region in where]
        if not left and training.spec.region != AUTO:
            problems.append(
                f"{field}: lies in {', '.join(where)}, and SageMaker in {training.spec.region} reads only buckets of that region; "
                f"allowed: a copy in {training.spec.region}, or the region {' or '.join([AUTO, *where])}"
            )
        elif not left:
            problems.append(
                f"{field}: lies in {', '.join(where)}, where this training cannot run; "
                f"allowed: a copy in {', '.join(candidates) or 'a region of the deployment'}"
            )
        candidates = left or candidates
    return candidates, problems


def _with_image(training: Wanted, candidates: list[str], answers: Answers) -> tuple[list[str], list[str]]:
    if not training.image:
        return candidates, []
    stands = {region: answers.images[training.image_in(region)] for region in candidates}
    left = [region for region in candidates if stands[region].there]
    if left or not candidates:
        return left, []
    codes = sorted({stand.denied for stand in stands.values() if stand.denied})
    where = f"image: {plain(training.spec.image or '')}"
    if codes:
        may_be = "the deployment's own images, and AWS's Deep Learning Containers of the region"
        return [], [f"{where} cannot be checked (ECR answers {', '.join(codes)}); allowed: {may_be}"]
    if training.registries.is_awss(training.image):
        return [], [
            f"{where} is not in a repository of {training.env.deployment}, and AWS's containers of {', '.join(candidates)} lack it; "
            f"allowed: {', '.join(training.env.repositories)}, or name and tag of one of AWS's"
        ]
    return [], [
        f"{where} does not exist in {', '.join(candidates)}; allowed: an image that was built or copied there (docs/guides/images.md)"
    ]


def _hourly(training: Wanted, region: str, answers: Answers) -> float | None:
    price = answers.hourly(region, training.machine_type)
    return None if price is None else price * (training.spec.instance_count or 1)


def _cheapest(training: Wanted, candidates: list[str], answers: Answers) -> tuple[str, str]:
    """Returns the region and the reason. Among equal ones the first in the settings wins; a known price beats an unknown one."""
    if training.spec.region != AUTO:
        return candidates[0], "named"
    prices = {region: price for region in candidates if (price := _hourly(training, region, answers)) is not None}
    region = min(prices, key=lambda one: prices[one]) if prices else candidates[0]
    what = "the data and the image are" if training.channels else "the image is"
    if len(candidates) == 1:
        why = f"the only region where {what}"
    elif not prices:
        why = f"the first of the settings where {what} ({', '.join(candidates)}); no price is known"
    else:
        shown = ", ".join(f"{one} {_usd(prices[one]) if one in prices else 'unknown'}" for one in candidates)
        why = f"the least an hour where {what}: {shown}"
    return region, why + _elsewhere(training, region, answers)


def _elsewhere(training: Wanted, region: str, answers: Answers) -> str:
    """Says what the cheapest other region would save, and what moving the data there would cost."""
    here, hours = _hourly(training, region, answers), training.spec.max_hours or 0
    sizes = [
        answers.sizes[one] for channel in training.channels.values() for one in channel.data if one in answers.sizes
    ]
    if here is None or not sizes:
        return ""
    without = {one for one in training.env.regions if not _has_data(training, one, answers)}
    prices = {one: price for one in without if (price := _hourly(training, one, answers)) is not None and price < here}
    if not prices:
        return ""
    other = min(sorted(prices), key=lambda one: prices[one])
    size = sum(one.bytes for one in sizes) / GB
    least = "" if all(one.whole for one in sizes) else "at least "
    return (
        f"; {other} would cost {_usd(prices[other])} an hour and save up to {_usd((here - prices[other]) * hours)} in {hours:g} h, "
        f"moving the data there from {region} costs {least}{_usd(size * TRANSFER_USD_GB)} once "
        f"({least}{size:,.1f} GB at {_usd(TRANSFER_USD_GB)}/GB)"
    )


def _has_data(training: Wanted, region: str, answers: Answers) -> bool:
    return all(_copy(channel.data, region, answers) for channel in training.channels.values())


def _usd(amount: float) -> str:
    return f"${amount:,.2f}"

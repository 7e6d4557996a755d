"""Collects what must be asked of AWS to decide where a training runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from grid_plan.answers import Answers, CodeQuestion, bucket_of, price_key
from grid_plan.columns import AUTO
from grid_plan.wanted import Wanted


@dataclass(slots=True)
class Questions:
    """What is still unknown; sets, so that nothing is asked twice."""

    buckets: set[str] = field(default_factory=set)
    locations: set[tuple[str, str]] = field(default_factory=set)
    """Address and the region of its bucket: does it hold an object?"""
    sizes: set[tuple[str, str]] = field(default_factory=set)
    """Address and the region of its bucket: how much does it hold?"""
    images: set[str] = field(default_factory=set)
    """Full addresses in private ECR registries."""
    codes: set[CodeQuestion] = field(default_factory=set)
    prices: set[tuple[str, str]] = field(default_factory=set)
    """Region and instance type."""
    types: set[str] = field(default_factory=set)
    """Of EC2, in the home region."""

    def __len__(self) -> int:
        parts = (self.buckets, self.locations, self.sizes, self.images, self.codes, self.prices, self.types)
        return sum(map(len, parts))


def ask(training: Wanted, known: Answers, questions: Questions) -> None:
    """Adds the open questions about a training that has no problems."""
    spec, regions = training.spec, training.env.regions
    for _, address in training.addresses():
        bucket = bucket_of(address)
        if bucket not in known.buckets:
            questions.buckets.add(bucket)
        elif (region := known.region(address)) and address not in known.locations:
            questions.locations.add((address, region))
    if (ended := training.report_of_checkpoint) and ended not in known.locations:
        questions.locations.add((ended, training.env.home_region))
    if training.image:
        questions.images |= {training.image_in(region) for region in training.regions} - known.images.keys()
    if training.code and training.code.key not in known.codes:
        questions.codes.add(training.code)
    for region in regions if spec.region == AUTO and not training.is_pods else training.regions:
        if training.machine_type and price_key(region, training.machine_type) not in known.prices:
            questions.prices.add((region, training.machine_type))
    has_cluster = training.is_pods and training.env.kubernetes is not None
    if has_cluster and training.machine_type and training.machine_type not in known.types:
        questions.types.add(training.machine_type)
    if spec.region == AUTO and len(regions) > 1:
        for channel in training.channels.values():
            copy = next((one for one in channel.data if known.region(one)), "")
            if copy and copy not in known.sizes:
                questions.sizes.add((copy, known.region(copy)))

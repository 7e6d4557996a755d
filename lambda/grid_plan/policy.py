"""Judges one training of a manifest: its fields against the deployment's limits, and what AWS said of what it names."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from contract import keys, names
from contract.environments import LONGEST_TRAINING_H, SPOT_WAIT_H, GridEnvironment
from contract.grid import GRIDS
from contract.images import Image
from grid_plan.columns import (
    AUTO,
    DEFAULTS,
    MPI,
    SPOT,
    TORCHRUN,
    Channel,
    Training,
    allowed,
    sent,
)
from grid_plan.facts import Facts, Questions, bucket_of, price_key
from grid_plan.images import is_ours, parsed, standing_in
from refusals.addresses import Address
from refusals.wording import plain

REQUIRED = ("image", "instance_type")
MOST_CHANNELS = 20
PROSE_VALUE = 256
"""Characters of a hyperparameter's value by SageMaker's prose; its model says 2,500, which is what it takes today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """What every line of a grid is judged by."""

    env: GridEnvironment
    types: Collection[str]
    """Instance types that SageMaker knows for trainings."""

    def resolved(self, training: Training) -> Training:
        """With what holds where nobody says anything."""
        missing = {name: value for name, value in DEFAULTS.items() if getattr(training, name) is None}
        if "max_hours" in missing:
            missing["max_hours"] = min(DEFAULTS["max_hours"], self.env.limits.max_hours)
        found = self.with_defaults(training).model_copy(update=missing)
        if found.market == SPOT and found.max_wait_hours is None and found.max_hours is not None:
            return found.model_copy(update={"max_wait_hours": min(found.max_hours + SPOT_WAIT_H, LONGEST_TRAINING_H)})
        return found

    def with_defaults(self, training: Training) -> Training:
        """With the deployment's own choices; settings that change later change no line that was planned."""
        ours = {name: getattr(self.env.defaults, name) or None for name in REQUIRED}
        return training.model_copy(update={name: ours[name] for name in REQUIRED if getattr(training, name) is None})

    def problems(self, training: Training, excused: Collection[str] = ()) -> Iterator[str]:
        """Of a resolved training, before anything is asked. Fields that are `excused` are there, and wrong: none is missing."""
        may_be = allowed(self.env.limits)
        for name in REQUIRED:
            if not getattr(training, name) and name not in excused:
                where = f"as a column of the manifest, in the input's defaults or as grid.defaults.{name} in cdk.json"
                yield f"{name}: is missing; allowed: {may_be[name]}, {where}"
        yield from self._region(training)
        yield from self._limits(training, may_be)
        yield from self._machines(training)
        yield from self._together(training, may_be)
        yield from self._image(training)
        yield from self._data(training)
        yield from self._checkpoint(training)

    def _region(self, training: Training) -> Iterator[str]:
        region = training.region
        if region not in (AUTO, *self.env.regions):
            yield f"region: {region} is no region of {self.env.deployment}; allowed: {AUTO}, {', '.join(self.env.regions)}"
        for name in ("kms_key", "volume_kms_key"):
            key = getattr(training, name) or ""
            parts = key.split(":")
            if key.startswith("arn:") and (len(parts) < 6 or parts[2] != "kms" or parts[3] != region):
                yield f"{name}: {plain(key)} is no key of the line's region; allowed: its id or its alias, or a key of {region}"

    def _limits(self, training: Training, may_be: dict[str, str]) -> Iterator[str]:
        limits = self.env.limits
        for name, most in (
            ("instance_count", limits.max_instances),
            ("volume_gb", limits.max_volume_gb),
            ("max_hours", limits.max_hours),
        ):
            value = getattr(training, name)
            if value > most:
                yield f"{name}: {plain(f'{value:g}')} is too large; allowed: {may_be[name]}"
        wait, hours = training.max_wait_hours, training.max_hours
        if wait is None or hours is None:
            return
        if training.market != SPOT:
            yield f"max_wait_hours: says nothing to the market {training.market}; allowed: {may_be['max_wait_hours']}"
        elif wait > limits.longest_h:
            yield f"max_wait_hours: {wait:g} is too large; allowed: {may_be['max_wait_hours']}"
        elif wait < hours:
            yield f"max_wait_hours: {wait:g} is less than max_hours, which is {hours:g}; allowed: {may_be['max_wait_hours']}"

    def _machines(self, training: Training) -> Iterator[str]:
        kind, patterns = training.instance_type, self.env.limits.instance_types
        if kind is None:
            return
        if kind not in self.types:
            near = difflib.get_close_matches(kind, self.types, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            yield f"instance_type: {plain(kind)} is no type of SageMaker trainings{hint}; allowed: types as in ml.g5.xlarge"
        elif not any(fnmatchcase(kind, pattern) for pattern in patterns):
            may_be = f"{', '.join(patterns)} (grid.limits.instance_types in cdk.json)"
            yield f"instance_type: {kind} is not for this deployment; allowed: {may_be}"

    def _together(self, training: Training, may_be: dict[str, str]) -> Iterator[str]:
        """What goes only with something else."""
        for name in ("processes_per_host", "mpi_options"):
            if getattr(training, name) is not None and training.distribution != MPI:
                yield f"{name}: says nothing to the distribution {training.distribution}; allowed: {may_be[name]}"
        for name in ("subnets", "security_groups"):
            if getattr(training, name) is not None:
                yield f"{name}: the role of trainings has no right on networks; allowed: {may_be[name]}"
        if training.channels and training.data and training.channel in training.channels:
            yield f"channels.{training.channel}: is the channel of data too; allowed: different names"
        if (count := len(channels(training))) > MOST_CHANNELS:
            yield f"channels: make {count} with that of data; allowed: up to {MOST_CHANNELS}"
        settings, said = launcher(training), training.hyperparameters or {}
        for name in settings.keys() & said.keys():
            yield f"hyperparameters.{name}: is what distribution becomes; allowed: one of them"
        if (count := len(settings.keys() | said.keys())) > 100:
            yield f"hyperparameters: make {count} with those of sweep and distribution; allowed: up to 100"

    def _image(self, training: Training) -> Iterator[str]:
        if not training.image:
            return
        image, ours = parsed(training.image), ", ".join(self.env.repositories)
        where = f"image: {plain(training.image)}"
        copied = "copy it into the deployment first (docs/images.md)"
        if not image.registry:
            if image.repository not in self.env.repositories:
                yield f"{where} begins with no repository of {self.env.deployment}; allowed: {ours}, or a whole address"
        elif not image.account:
            yield f"{where} is in no private ECR registry, and SageMaker pulls from no other; allowed: {copied}"
        elif image.account == self.env.account and not is_ours(image, self.env):
            yield f"{where} is no repository of this deployment; allowed: {ours}"
        elif not is_ours(image, self.env) and training.region not in (AUTO, image.region):
            yield (
                f"{where} lies in {image.region}, and SageMaker pulls in {training.region} from a registry of that region alone; "
                f"allowed: the same image in {training.region}, or {copied}"
            )

    def _data(self, training: Training) -> Iterator[str]:
        for name, address in addresses(training):
            if not self.is_readable(address):
                yield f"{name}: {plain(address)} is in no place that trainings may read; allowed: {self._places()}"

    def is_readable(self, address: str) -> bool:
        """Whether the role of the trainings may read it, as far as the deployment knows."""
        place, ours = Address.parse(address), self._buckets()
        if place.bucket in self.env.data_buckets:
            return True
        if place.bucket == self.env.bucket:
            return place.key.startswith(keys.UPLOADS)
        return place.bucket in ours.values() and place.key.startswith((keys.UPLOADS, GRIDS))

    def _places(self) -> str:
        any_region = names.bytes_bucket(self.env.deployment, self.env.account, "<region>")
        ours = [f"s3://{bucket}/{keys.UPLOADS}..." for bucket in (self.env.bucket, any_region)]
        data = [f"s3://{one}/..." for one in self.env.data_buckets]
        return f"{', '.join([*data, *ours, f's3://{any_region}/{GRIDS}...'])} (data_buckets in cdk.json)"

    def _buckets(self) -> dict[str, str]:
        return bytes_buckets(self.env)

    def _checkpoint(self, training: Training) -> Iterator[str]:
        if not training.checkpoint:
            return
        place, ours = Address.parse(training.checkpoint), self._buckets()
        home = {bucket: region for region, bucket in ours.items()}.get(place.bucket, "")
        where = f"checkpoint: {plain(training.checkpoint)}"
        if not home or not place.key.startswith(GRIDS):
            any_region = names.bytes_bucket(self.env.deployment, self.env.account, "<region>")
            yield f"{where} is no place that trainings may write; allowed: s3://{any_region}/{GRIDS}..."
        elif training.region not in (AUTO, home):
            yield f"{where} lies in {home}; allowed: s3://{ours.get(training.region or '', '...')}/{GRIDS}..."

    def ask(self, training: Training, known: Facts, asked: Questions) -> None:
        """Adds what has to be known to judge a resolved training without problems, and is not known yet."""
        for _, address in addresses(training):
            bucket = bucket_of(address)
            if bucket not in known.buckets:
                asked.buckets.add(bucket)
            elif (region := known.region(address)) and address not in known.locations:
                asked.locations.add((address, region))
        for image in (str(self.image(training, region)) for region in self.candidates(training) if training.image):
            if image not in known.images:
                asked.images.add(image)
        for region in self.env.regions if training.region == AUTO else self.candidates(training):
            if training.instance_type and price_key(region, training.instance_type) not in known.prices:
                asked.prices.add((region, training.instance_type))
        if training.region == AUTO and len(self.env.regions) > 1:
            for channel in channels(training).values():
                copy = next((one for one in channel.data if known.region(one)), "")
                if copy and copy not in known.sizes:
                    asked.sizes.add((copy, known.region(copy)))

    def candidates(self, training: Training) -> tuple[str, ...]:
        """Regions that its own words leave: of image, checkpoint and region."""
        regions = self.env.regions if training.region == AUTO else (training.region or "",)
        image = parsed(training.image) if training.image else None
        if image and image.registry and not is_ours(image, self.env):
            regions = tuple(one for one in regions if one == image.region)
        if training.checkpoint:
            bucket = bucket_of(training.checkpoint)
            regions = tuple(one for one in regions if bytes_buckets(self.env)[one] == bucket)
        return regions

    def image(self, training: Training, region: str) -> Image:
        """As the registry of a region has it."""
        return standing_in(parsed(training.image or ""), region, self.env)


def sound(training: Training, wrong: Collection[str]) -> Training:
    """What is right of a resolved training, so that the rest of it can still be looked up; `wrong` are names of fields."""
    empty = {name: None for name in ("data", "channels", "image", "instance_type", "checkpoint") if name in wrong}
    if "region" in wrong:
        empty |= {"image": None, "checkpoint": None, "instance_type": None}
        return training.model_copy(update={**empty, "region": AUTO})
    return training.model_copy(update=empty)


def bytes_buckets(env: GridEnvironment) -> dict[str, str]:
    """Region to its bucket of bytes."""
    return {region: names.bytes_bucket(env.deployment, env.account, region) for region in env.regions}


def channels(training: Training) -> dict[str, Channel]:
    """Every channel by its name, that of `data` first."""
    found = {}
    if training.data and training.channel:
        # Its parts were checked when the line was read.
        found[training.channel] = Channel.model_construct(data=training.data)
    return found | (training.channels or {})


def addresses(training: Training) -> Iterator[tuple[str, str]]:
    """Field and address of every copy of data that a training names."""
    yield from (("data", one) for one in training.data or ())
    for name, channel in (training.channels or {}).items():
        yield from ((f"channels.{name}", one) for one in channel.data)


def launcher(training: Training) -> dict[str, str]:
    """The hyperparameters by which SageMaker's own containers start several processes, as its SDK writes them."""
    if training.distribution == MPI:
        found = {
            "sagemaker_mpi_enabled": "true",
            "sagemaker_mpi_custom_mpi_options": json.dumps(training.mpi_options or ""),
        }
        if training.processes_per_host is not None:
            found["sagemaker_mpi_num_of_processes_per_host"] = str(training.processes_per_host)
        return found
    if training.distribution == TORCHRUN:
        return {
            "sagemaker_torch_distributed_enabled": "true",
            "sagemaker_instance_type": json.dumps(training.instance_type or ""),
        }
    return {}


def warnings(training: Training) -> Iterator[str]:
    """What SageMaker may take, and may not."""
    for name, value in (training.hyperparameters or {}).items():
        text, where = sent(value), f"hyperparameters.{plain(name)}"
        if len(text) > PROSE_VALUE:
            yield f"{where}: has {len(text):,} characters; SageMaker documents {PROSE_VALUE}, and takes 2,500 by its model"
        if "\n" in text or "\r" in text:
            yield f"{where}: holds a line end; SageMaker may refuse it (as JSON, with quotes, it travels safely)"

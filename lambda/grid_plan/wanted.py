"""One training as it is wanted: the fields of its line, what the deployment's settings add, and all that follows from those alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from contract import names
from contract.environments import LONGEST_TRAINING_H, SPOT_WAIT_H, GridEnvironment
from contract.images import ContainerImage
from grid_plan.answers import bucket_of
from grid_plan.columns import AUTO, DEFAULTS, MPI, REQUIRED, SPOT, TORCHRUN, Channel, TrainingSpec
from grid_plan.images import is_ours, parsed, standing_in


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """`spec` says everything that a line may leave to others; only a field of REQUIRED may still be missing."""

    spec: TrainingSpec
    env: GridEnvironment

    @classmethod
    def of(cls, asked: TrainingSpec, env: GridEnvironment) -> Wanted:
        """With what holds where neither a line nor the input's defaults say anything."""
        missing = {name: value for name, value in DEFAULTS.items() if getattr(asked, name) is None}
        if "max_hours" in missing:
            missing["max_hours"] = min(DEFAULTS["max_hours"], env.limits.max_hours)
        spec = with_settings(asked, env).model_copy(update=missing)
        if spec.market == SPOT and spec.max_wait_hours is None and spec.max_hours is not None:
            spec = spec.model_copy(update={"max_wait_hours": min(spec.max_hours + SPOT_WAIT_H, LONGEST_TRAINING_H)})
        return cls(spec=spec, env=env)

    def without(self, wrong: Collection[str]) -> Wanted:
        """What is right of it, so that the rest can still be looked up; `wrong` are names of fields."""
        looked_up = ("data", "channels", "image", "instance_type", "checkpoint")
        emptied: dict[str, str | None] = {name: None for name in looked_up if name in wrong}
        if "region" in wrong:
            emptied |= {"image": None, "checkpoint": None, "instance_type": None, "region": AUTO}
        return Wanted(spec=self.spec.model_copy(update=emptied), env=self.env)

    @cached_property
    def channels(self) -> dict[str, Channel]:
        """Every channel by its name, that of `data` first."""
        found = {}
        if self.spec.data and self.spec.channel:
            # Its parts were checked when the line was read.
            found[self.spec.channel] = Channel.model_construct(data=self.spec.data)
        return found | (self.spec.channels or {})

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Field and address of every copy of data that it names."""
        yield from (("data", one) for one in self.spec.data or ())
        for name, channel in (self.spec.channels or {}).items():
            yield from ((f"channels.{name}", one) for one in channel.data)

    @cached_property
    def regions(self) -> tuple[str, ...]:
        """Those that its own words leave: of image, checkpoint and region."""
        spec, env = self.spec, self.env
        left = env.regions if spec.region == AUTO else (spec.region or "",)
        if self.image and self.image.registry and not is_ours(self.image, env):
            left = tuple(one for one in left if one == self.image.region)
        if spec.checkpoint:
            bucket, buckets = bucket_of(spec.checkpoint), bytes_buckets(env)
            left = tuple(one for one in left if buckets[one] == bucket)
        return left

    @cached_property
    def image(self) -> ContainerImage | None:
        """As its line names it."""
        return parsed(self.spec.image) if self.spec.image else None

    def image_in(self, region: str) -> str:
        """As the registry of a region has it; empty where it names none."""
        return str(standing_in(self.image, region, self.env)) if self.image else ""

    @cached_property
    def launcher(self) -> dict[str, str]:
        """The hyperparameters by which SageMaker's own containers start several processes, as its SDK writes them."""
        if self.spec.distribution == MPI:
            found = {
                "sagemaker_mpi_enabled": "true",
                "sagemaker_mpi_custom_mpi_options": json.dumps(self.spec.mpi_options or ""),
            }
            if self.spec.processes_per_host is not None:
                found["sagemaker_mpi_num_of_processes_per_host"] = str(self.spec.processes_per_host)
            return found
        if self.spec.distribution == TORCHRUN:
            return {
                "sagemaker_torch_distributed_enabled": "true",
                "sagemaker_instance_type": json.dumps(self.spec.instance_type or ""),
            }
        return {}


def with_settings(asked: TrainingSpec, env: GridEnvironment) -> TrainingSpec:
    """With the deployment's own choices; settings that change later change no line that was planned."""
    ours = {name: getattr(env.defaults, name) or None for name in REQUIRED}
    return asked.model_copy(update={name: ours[name] for name in REQUIRED if getattr(asked, name) is None})


def bytes_buckets(env: GridEnvironment) -> dict[str, str]:
    """Region to its bucket of bytes."""
    return {region: names.bytes_bucket(env.deployment, env.account, region) for region in env.regions}

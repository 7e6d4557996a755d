"""Combines the fields of a line with the deployment's settings, and derives everything that follows from these two alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from contract import names
from contract.environments import LONGEST_TRAINING_H, SPOT_WAIT_H, GridEnvironment
from contract.grid import Backend, GridPrefix, grid_of
from contract.images import ContainerImage, parsed
from contract.registries import Registries
from grid_plan import code
from grid_plan.answers import CodeQuestion, bucket_of
from grid_plan.columns import AUTO, DEFAULTS, MPI, REQUIRED, SPOT, TORCHRUN, Channel, TrainingSpec, sent
from refusals.addresses import Address
from refusals.commands import script
from refusals.script import Runner


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A training with its settings: `spec` has every field that a line may omit; only a field of REQUIRED may still be missing."""

    spec: TrainingSpec
    env: GridEnvironment

    @classmethod
    def of(cls, given: TrainingSpec, env: GridEnvironment) -> Wanted:
        """Adds the defaults for fields that neither a line nor the input's defaults set."""
        missing = {name: value for name, value in DEFAULTS.items() if getattr(given, name) is None}
        if "max_hours" in missing:
            missing["max_hours"] = min(DEFAULTS["max_hours"], env.limits.max_hours)
        spec = with_settings(given, env).model_copy(update=missing)
        if spec.market == SPOT and spec.max_wait_hours is None and spec.max_hours is not None:
            spec = spec.model_copy(update={"max_wait_hours": min(spec.max_hours + SPOT_WAIT_H, LONGEST_TRAINING_H)})
        return cls(spec=spec, env=env)

    def without(self, wrong: Collection[str]) -> Wanted:
        """Returns the training without its wrong fields, so that the rest can still be looked up; `wrong` are names of fields."""
        looked_up = ("data", "channels", "image", "instance_type", "instance_count", "checkpoint", "code")
        emptied: dict[str, str | None] = {name: None for name in looked_up if name in wrong}
        if "region" in wrong:
            emptied |= {"image": None, "checkpoint": None, "instance_type": None, "region": AUTO}
        return Wanted(spec=self.spec.model_copy(update=emptied), env=self.env)

    @cached_property
    def channels(self) -> dict[str, Channel]:
        """Every channel by its name, the channel of `data` first."""
        found = {}
        if self.spec.data and self.spec.channel:
            # The parts were checked when the line was read.
            found[self.spec.channel] = Channel.model_construct(data=self.spec.data)
        return found | (self.spec.channels or {})

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Yields the field and the address of every copy of its data."""
        yield from (("data", one) for one in self.spec.data or ())
        for name, channel in (self.spec.channels or {}).items():
            yield from ((f"channels.{name}", one) for one in channel.data)

    @cached_property
    def regions(self) -> tuple[str, ...]:
        """Regions that its image, its checkpoint and its region allow."""
        spec, env = self.spec, self.env
        left = env.regions if spec.region == AUTO else (spec.region or "",)
        if self.is_pods:
            left = tuple(one for one in left if one == env.home_region)
        if self.image:
            left = tuple(one for one in left if self._can_pull(self.image, one))
        if spec.checkpoint:
            bucket, buckets = bucket_of(spec.checkpoint), bytes_buckets(env)
            left = tuple(one for one in left if buckets[one] == bucket)
        return left

    @property
    def is_pods(self) -> bool:
        """Whether it runs on Kubernetes."""
        return self.spec.backend == Backend.KUBERNETES.value

    @property
    def machine_type(self) -> str:
        """Returns its type of machine as its backend calls it; empty where it names none."""
        given = self.spec.instance_type or ""
        return given.removeprefix("ml.") if self.is_pods else given

    @property
    def report_of_checkpoint(self) -> str:
        """Address of the report, written at its end, of the grid whose checkpoints the line continues; empty where it names none."""
        grid = grid_of(Address.parse(self.spec.checkpoint).key) if self.spec.checkpoint else ""
        return f"s3://{self.env.bucket}/{GridPrefix(grid).report}" if grid else ""

    @cached_property
    def image(self) -> ContainerImage | None:
        """The image as the line names it."""
        return parsed(self.spec.image) if self.spec.image else None

    def _can_pull(self, image: ContainerImage, region: str) -> bool:
        """SageMaker pulls from registries of its own region alone."""
        found = self.registries.in_region(image, region)
        return found is not None and found.region == region

    def image_in(self, region: str) -> str:
        """Returns the image's address in the registry of a region; empty where the line names no image, and in a region that cannot have
        it."""
        found = self.registries.in_region(self.image, region) if self.image else None
        return str(found) if found else ""

    @property
    def registries(self) -> Registries:
        """The registries of the deployment, and those of AWS's containers."""
        env = self.env
        return Registries(
            deployment=env.deployment,
            account=env.account,
            suffix=env.suffix,
            repositories=env.repositories,
            base_accounts=env.base_accounts,
        )

    @cached_property
    def launcher(self) -> dict[str, str]:
        """Hyperparameters with which SageMaker's own containers start several processes, written as its SDK writes them."""
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

    @cached_property
    def hyperparameters(self) -> dict[str, str]:
        """The line's own hyperparameters: texts unchanged, everything else as JSON. A text of a program that AWS's toolkit starts is
        written so that the toolkit hands on this text."""
        is_quoted = self.spec.program is not None and not self.is_pods
        return {
            name: code.quote_for_toolkit(name, value) if is_quoted and isinstance(value, str) else sent(value)
            for name, value in (self.spec.hyperparameters or {}).items()
        }

    @property
    def toolkit(self) -> dict[str, str]:
        """Hyperparameters by which AWS's toolkit finds the line's program."""
        return code.toolkit(self.spec.program, packed=bool(self.spec.code)) if self.spec.program else {}

    @cached_property
    def code(self) -> CodeQuestion | None:
        """What must be known of the line's code; None where it has none."""
        spec = self.spec
        if not spec.code:
            return None
        if spec.program:
            by = Runner.READER if spec.program.endswith(".py") else Runner.TOOLKIT
            return CodeQuestion(address=spec.code, wanted=spec.program, field="program", by=by)
        words = [*(spec.entrypoint or ()), *(spec.arguments or ())]
        wanted = (script(words) or "") if words else ""
        by = Runner.SHELL if wanted and wanted == words[0] else Runner.READER
        return CodeQuestion(address=spec.code, wanted=wanted, field="entrypoint", by=by)


def with_settings(given: TrainingSpec, env: GridEnvironment) -> TrainingSpec:
    """Adds the deployment's own choices; a later change of the settings does not change a planned line."""
    ours = {name: getattr(env.defaults, name) or None for name in REQUIRED}
    found: dict[str, object] = {name: ours[name] for name in REQUIRED if getattr(given, name) is None}
    if env.tags:
        found["tags"] = {**env.tags, **(given.tags or {})}
    return given.model_copy(update=found)


def bytes_buckets(env: GridEnvironment) -> dict[str, str]:
    """Returns the bucket of bytes of each region."""
    return {region: names.bytes_bucket(env.deployment, env.account, region) for region in env.regions}

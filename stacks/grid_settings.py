"""Settings of grids: what lines of manifests may ask for, and what they get where they say nothing."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from contract.environments import GridDefaults, GridLimits
from contract.images import CHILD_BASE
from stacks.blocks import CLOSED, LONGEST_TRAINING_H, Block
from stacks.forms import BaseImage, InstanceTypes, TrainingImage, TrainingType


@dataclass(config=CLOSED, frozen=True, kw_only=True)
class GridLimitSettings(GridLimits):
    """What a line of a manifest may ask for."""

    max_lines: int = Field(default=10_000, ge=1, le=100_000)
    """The most lines of a manifest."""
    max_concurrent: int = Field(default=1000, ge=1, le=10_000)
    submissions_per_second: float = Field(default=1.0, gt=0, le=50)
    """How many trainings a grid creates in a second, in each region."""
    max_hours: float = Field(default=72.0, gt=0, le=LONGEST_TRAINING_H)
    max_instances: int = Field(default=16, ge=1, le=1000)
    """The most instances of one training."""
    max_volume_gb: int = Field(default=2000, ge=1, le=16_384)
    """The largest disk that a training may ask for."""
    instance_types: tuple[InstanceTypes, ...] = Field(default=("ml.*",), min_length=1)


@dataclass(config=CLOSED, frozen=True, kw_only=True)
class GridDefaultSettings(GridDefaults):
    """Defaults of a manifest's lines. Both are empty, so that a person chooses image and type of every training. Plan checks them."""

    image: TrainingImage = ""
    instance_type: TrainingType = ""
    """The instance type of a line that names none."""


class GridSettings(Block):
    """Grids: many SageMaker trainings from one manifest."""

    limits: GridLimitSettings = GridLimitSettings()
    """What a line of a manifest may ask for."""
    defaults: GridDefaultSettings = GridDefaultSettings()
    """Defaults of a manifest's lines; with both set, a file of `region,s3_location` and `{"manifest": ...}` are a whole grid."""
    child_base: BaseImage = CHILD_BASE
    """The image on which the children's image is built. Of a tag, the first build keeps the digest, and every later build uses that
    digest; another tag, or a digest (`...@sha256:...`), brings a newer base."""
    spot_children: bool = False
    """Whether children run on Fargate Spot, which costs about a third; AWS restarts some of them, without an effect on their trainings."""

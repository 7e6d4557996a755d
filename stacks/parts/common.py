"""What every stack of the home region is given."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk

from contract.timing import Timing
from stacks.parts.rights import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Values of the settings that the stacks of the home region share."""

    rights: Rights
    """Of the deployment; jobs run in its regions."""
    regions: tuple[str, ...]
    """All of the settings, home first; some may serve the grid alone."""
    timing: Timing
    log_retention_days: int

    @property
    def deployment(self) -> str:
        return self.rights.deployment

    @property
    def env(self) -> cdk.Environment:
        return cdk.Environment(region=self.rights.home_region)

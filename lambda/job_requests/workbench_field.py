"""The field of a request that makes its job a workbench."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from contract.workbench import JUPYTERLAB, Workbench
from refusals.fields import read_whole

LEAST_IDLE, MOST_IDLE = 5, 1440
"""Minutes. A person reads a page for five; a bench that was not touched for a day is forgotten."""
WORKBENCH_MAY_BE = (
    f"an object of idle_minutes (a whole number from {LEAST_IDLE} to {MOST_IDLE:,}) and install (true or false), as in "
    '{"idle_minutes": 60, "install": true}'
)


class WorkbenchField(BaseModel):
    """What the bench is to do."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    idle_minutes: Annotated[int, BeforeValidator(read_whole)] = Field(
        default=60,
        ge=LEAST_IDLE,
        le=MOST_IDLE,
        description="Minutes without a running cell, a terminal's output or a change, after which the bench ends itself.",
    )
    install: bool = Field(
        default=False, description=f"Whether {JUPYTERLAB} is installed where the image has no JupyterLab."
    )

    @property
    def meant(self) -> Workbench:
        """What the job gets."""
        return Workbench(idle_minutes=self.idle_minutes, install=self.install)

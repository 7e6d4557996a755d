"""The field by which a request says that it is a line of a grid: a grid writes it, and its job carries its tags."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from contract import names
from contract.grid import GridLine, is_name_of
from refusals.wording import plain

GRID_ARN = rf"^arn:[a-z-]+:states:[a-z0-9-]+:[0-9]{{12}}:execution:[A-Za-z0-9-]{{1,80}}:{names.GRID_PATTERN.pattern}$"
MOST_INDEX = 10**9
GRID_LINE_MAY_BE = "nothing: a grid writes it into the requests of its own lines"


class GridLineField(BaseModel):
    """Which line of which grid a job is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    execution: Annotated[str, Field(pattern=GRID_ARN)] = Field(description="ARN of the grid's execution.")
    index: int = Field(ge=0, le=MOST_INDEX, description="Index of the line in the grid, from 0.")

    @property
    def meant(self) -> GridLine:
        """What the job gets."""
        return GridLine(execution=self.execution, index=self.index)


def list_mark_problems(mark: GridLineField | None, execution: str, deployment: str) -> list[str]:
    """Rejects a grid of another deployment, whose name would be on the bill of this one, and a line that another execution is: the end of
    its grid would end this one. `execution` is the ARN of the job's own."""
    if mark is None:
        return []
    machine, _, name = execution.rpartition(":")
    ours = machine.removesuffix(names.machine(deployment)) + names.grid_machine(deployment)
    if mark.execution.rpartition(":")[0] != ours:
        return [f"grid_line: {plain(mark.execution)} is no grid of {deployment}; allowed: {GRID_LINE_MAY_BE}"]
    if not is_name_of(name, deployment, mark.meant):
        return [f"grid_line: {plain(name)} is not the name of this line's execution; allowed: {GRID_LINE_MAY_BE}"]
    return []

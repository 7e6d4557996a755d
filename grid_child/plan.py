"""Reads what Plan decided for this child: the grid, its round and its line."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TypeVar

from contract import tags
from contract.codec import Garbled, decode
from contract.execution_facts import is_marked
from contract.grid import NAMED, SHARD, Backend, Grid, GridPrefix, Line
from contract.mpi_job_facts import is_marked_pod
from grid_child.identity import ChildIdentity
from grid_child.pace import Round, earliest, turn_s
from grid_child.store import Home
from grid_child.trouble import Unfit

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a child has to do."""

    grid: Grid
    line: Line
    prefix: GridPrefix
    earliest: float
    """Of the submission, UTC epoch seconds."""
    turn_s: float
    """How long all lines of the region take at the grid's pace."""
    beside: int
    """How many lines its region has, this one included."""
    tags: dict[str, str]
    """The tags by which the line's training is recognised as ours."""


def read_work(me: ChildIdentity, home: Home, chance: random.Random) -> Work:
    """Reads them. Raises Unfit where the plan lacks this child's line."""
    prefix = GridPrefix(me.environment.grid)
    body = home.read(prefix.description)
    if body is None:
        raise Unfit(f"There is no {prefix.description}: the grid was never planned")
    grid = _decoded(Grid, body, prefix.description)
    if (grid.id, grid.deployment) != (me.environment.grid, me.environment.deployment):
        raise Unfit(f"{prefix.description} is of the grid {grid.id} of {grid.deployment}")
    round_, index = _round(me, home, prefix)
    if not 0 <= index < grid.lines:
        raise Unfit(f"The grid has {grid.lines} lines, this child is for line {index}")
    line = _line(home, prefix, index)
    if grid.pace <= 0:
        raise Unfit(f"The pace of {prefix.description} is {grid.pace}; it is more than 0 a second")
    return Work(
        grid=grid,
        line=line,
        prefix=prefix,
        earliest=earliest(line, grid, round_, me.environment.timing.training_watch_s, chance),
        turn_s=turn_s(line, grid),
        beside=grid.regions.get(line.region, grid.lines),
        tags=_tags(grid, line),
    )


def _round(me: ChildIdentity, home: Home, prefix: GridPrefix) -> tuple[Round, int]:
    number = me.environment.round
    if number == 1:
        return Round(1, 0.0), me.place
    found = home.read_dated(prefix.work(number))
    if found is None:
        raise Unfit(f"There is no {prefix.work(number)}, the list of lines of this round")
    try:
        work = json.loads(found[0])
    except ValueError as problem:
        raise Unfit(f"{prefix.work(number)} is not JSON: {problem}") from None
    if not isinstance(work, list) or not all(isinstance(one, int) for one in work):
        raise Unfit(f"{prefix.work(number)} is not a list of numbers")
    if me.place >= len(work):
        raise Unfit(f"{prefix.work(number)} has {len(work)} lines, this child is for place {me.place}")
    return Round(number, found[1], work), work[me.place]


def _line(home: Home, prefix: GridPrefix, index: int) -> Line:
    key = prefix.lines(index)
    body = home.read(key)
    if body is None:
        raise Unfit(f"There is no {key}: the plan lacks line {index}")
    rows = body.splitlines()
    if index % SHARD >= len(rows):
        raise Unfit(f"{key} has {len(rows)} lines: the plan lacks line {index}")
    line = _decoded(Line, rows[index % SHARD], f"line {index} of {key}")
    if line.index != index:
        raise Unfit(f"{key} has line {line.index} in the place of line {index}")
    if not isinstance(line.request.get(NAMED[line.backend]), str):
        raise Unfit(f"line {index} of {key} has a request without {NAMED[line.backend]}")
    return line


def _tags(grid: Grid, line: Line) -> dict[str, str]:
    """The tags that identify the line's training in SageMaker. Raises Unfit where the request does not set them, or where the input of
    an execution, or an MPIJob, does not name the line: without them it could not be told from a stranger's."""
    if line.backend is Backend.EC2:
        if not is_marked(line, grid):
            raise Unfit(f"The input of line {line.index} does not say of which grid and line it is")
        return {}
    if line.backend is Backend.KUBERNETES:
        if not is_marked_pod(line, grid):
            raise Unfit(f"The MPIJob of line {line.index} does not say of which grid and line it is")
        return {}
    wanted = {
        tags.DEPLOYMENT: grid.deployment,
        tags.GRID: grid.id,
        tags.LINE: str(line.index),
        tags.EXECUTION: grid.execution,
    }
    given = {one.get("Key"): one.get("Value") for one in line.request.get("Tags", [])}
    lacking = sorted(key for key, value in wanted.items() if given.get(key) != value)
    if lacking:
        raise Unfit(f"The request of line {line.index} does not set {', '.join(lacking)} as the grid has them")
    return wanted


def _decoded(kind: type[T], body: bytes, where: str) -> T:
    try:
        return decode(kind, body)
    except Garbled as problem:
        raise Unfit(f"{where} does not fit: {problem}") from None

"""Checks a job's request before anything is deployed, by the functions that Admit reads it with, and the settings of cdk.json."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal.deployment import context

if TYPE_CHECKING:
    from stacks.settings import Settings

ROOT = Path(__file__).parent.parent
UPLOADED = "s3://home/uploads/code.tar.gz"
"""Stands for the address of code that is uploaded once there is a bucket."""


def list_request_problems(request: Mapping[str, Any], code: Path | None, archive: bytes | None) -> list[str]:
    """Returns a line for every problem of a job that needs no account to be found. `archive` is the folder `code`, packed."""
    _find_functions()
    from job_requests.checking import LocalCode, list_problems

    try:
        settings = _read_settings()
    except WrongSettings as problem:
        return str(problem).splitlines()
    local = None
    if archive is not None:
        local = LocalCode(shown=str(code), ending=".tar.gz", open=lambda: BytesIO(archive))
        request = {**request, "code": UPLOADED}
    return list_problems(request, settings.limits, settings.training, local)


def list_grid_problems(request: Mapping[str, Any], manifest: str) -> list[str]:
    """Returns the same for the input of a grid, whose manifest will have that name; of its lines, the account has to be asked."""
    _find_functions()
    from grid_plan.request import read

    try:
        limits = _read_settings().grid.limits
    except WrongSettings as problem:
        return str(problem).splitlines()
    _, _, problems = read({**request, "manifest": f"s3://home/uploads/{manifest}"}, limits)
    return problems


def list_search_problems(request: Mapping[str, Any]) -> list[str]:
    """Returns the same for the input of a search."""
    _find_functions()
    from searches.request import read

    return read(request)[2]


class WrongSettings(Exception):
    """The block of cdk.json is wrong; the message has a line for each problem."""


def _read_settings() -> Settings:
    """Reads the block of cdk.json. Raises WrongSettings."""
    from stacks.settings import BLOCK, BadSettings, Settings

    try:
        return Settings.parse(context(1.0)[BLOCK])
    except BadSettings as problem:
        raise WrongSettings(str(problem)) from None


def _find_functions() -> None:
    """Lets this process import the rooms of `lambda/`, which is a source root and no package."""
    root = str(ROOT / "lambda")
    if root not in sys.path:
        sys.path.append(root)

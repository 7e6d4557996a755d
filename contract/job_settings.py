"""The settings by which the lines of a grid are judged that become jobs: Plan and the search judge them as Admit would."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from contract.timing import Timing

SETTINGS_FILE = "job-settings.json"
"""The file in the archives of these functions: beside what they are told of grids, a function's variables have no room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What Admit is told of jobs and Plan is not; each field is one of JobChecksEnvironment."""

    regions: tuple[str, ...] = ()
    images: dict[str, str] = field(default_factory=dict)
    machine_images: dict[str, str] = field(default_factory=dict)
    image_owners: tuple[str, ...] = ()
    base_accounts: dict[str, str] = field(default_factory=dict)
    copy_accounts: tuple[str, ...] = ()
    git_hosts: dict[str, str] = field(default_factory=dict)
    job_roles: tuple[str, ...] = ()
    timing: Timing = field(default_factory=Timing)

    def write(self) -> dict[str, Any]:
        """Returns the fields by name, for an environment that has them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

"""The table of what Admit refuses and accepts: a test runs it against the function, and `make docs` makes a page of it."""

from __future__ import annotations

from job_requests.request import JobRequest
from tools.refusals.jobs.command import COMMAND
from tools.refusals.jobs.grid_line import GRID_LINE
from tools.refusals.jobs.health import HEALTH
from tools.refusals.jobs.image import ARGUMENTS, IMAGE
from tools.refusals.jobs.launcher import LAUNCHER, PROCESSES
from tools.refusals.jobs.looked_up import LOOKED_UP
from tools.refusals.jobs.machine_image import MACHINE_IMAGE
from tools.refusals.jobs.money import MONEY
from tools.refusals.jobs.mounts import MOUNTS
from tools.refusals.jobs.notify import NOTIFY
from tools.refusals.jobs.preset import PRESET
from tools.refusals.jobs.reservation import RESERVATION
from tools.refusals.jobs.resume import RESUME
from tools.refusals.jobs.retries import RETRIES
from tools.refusals.jobs.roles import ROLES
from tools.refusals.jobs.stall import STALL
from tools.refusals.jobs.table import LEAST, Row, Section
from tools.refusals.jobs.tags import TAGS
from tools.refusals.jobs.values import VALUES
from tools.refusals.jobs.whole import WHOLE
from tools.refusals.jobs.workbench import WORKBENCH

ORDER = ("request", "name", *JobRequest.model_fields, "several")
SECTIONS = tuple(
    sorted(
        (
            ARGUMENTS,
            COMMAND,
            HEALTH,
            IMAGE,
            LAUNCHER,
            MACHINE_IMAGE,
            MOUNTS,
            NOTIFY,
            PRESET,
            PROCESSES,
            RESERVATION,
            RESUME,
            GRID_LINE,
            RETRIES,
            ROLES,
            STALL,
            TAGS,
            WORKBENCH,
            *MONEY,
            *LOOKED_UP,
            *VALUES,
            *WHOLE,
        ),
        key=lambda section: ORDER.index(section.field),
    )
)

__all__ = ["LEAST", "SECTIONS", "Row", "Section"]

"""The table of what Admit refuses: a test runs it against the function, and `make docs` makes a page of it."""

from __future__ import annotations

from tools.refusals.jobs.looked_up import LOOKED_UP
from tools.refusals.jobs.table import LEAST, Row, Section
from tools.refusals.jobs.values import VALUES

ORDER = (
    "request",
    "name",
    "code",
    "command",
    "instance_types",
    "region",
    "nodes",
    "market",
    "max_hours",
    "max_cost_usd",
    "checkpoint_minutes",
    "environment",
    "secrets",
    "data",
    "volume_gb",
    "owner",
    "several",
)
SECTIONS = tuple(sorted((*LOOKED_UP, *VALUES), key=lambda section: ORDER.index(section.field)))

__all__ = ["LEAST", "SECTIONS", "Row", "Section"]

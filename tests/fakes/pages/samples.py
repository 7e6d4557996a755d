"""Every kind of page, by name, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pages.facts import GridFacts, JobFacts, SearchFacts
from pages.grid import write_grid
from pages.job import write_job
from pages.search import write_search
from tests.fakes.pages import jobs, runs

JOBS: dict[str, Callable[[], JobFacts]] = {
    "success": jobs.success,
    "failure": jobs.failure,
    "three-interruptions": jobs.interrupted,
    "capped": jobs.capped,
    "running": jobs.running,
    "waiting": jobs.waiting,
    "refused": jobs.refused,
    "huge": jobs.huge,
}
GRIDS: dict[str, Callable[[], GridFacts]] = {
    "grid": runs.grid,
    "grid-running": partial(runs.grid, 400, 130),
    "grid-refused": runs.refused_grid,
}
SEARCHES: dict[str, Callable[[], SearchFacts]] = {
    "search": runs.search,
    "search-running": partial(runs.search, 20, runs=True),
    "search-failed": runs.failed_search,
    "search-of-5000": partial(runs.search, 5000),
}
SAMPLES: dict[str, Callable[[], bytes]] = {
    **{name: (lambda make=make: write_job(make())) for name, make in JOBS.items()},
    **{name: (lambda make=make: write_grid(make())) for name, make in GRIDS.items()},
    **{name: (lambda make=make: write_search(make())) for name, make in SEARCHES.items()},
}
"""Name of a page to what writes it."""

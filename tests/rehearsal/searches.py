"""Searches on the deployed account: how a test starts one, and two that somebody stops while their first round trains."""

from __future__ import annotations

from typing import Any

import pytest

from localaws.testing.waiting import until
from rehearsal import search
from rehearsal.search import SearchJob
from rehearsal.yard import Yard
from tests.rehearsal.grids import AWAY, ENDLESS, HOME, SMALL, Field, sooner

SEARCHES = [
    "stop-lost:job=aborted-search",
    "stop-lost:job=unheard-search",
    "cleanup-event-lost:job=unheard-search",
]
"""Faults of the two: Step Functions does not stop the grid with them, and of the second no event tells."""


def describe(field: Field, **given: Any) -> dict[str, Any]:
    """Returns a search over the steps of the small program, whose loss is 1 / steps, in two regions."""
    template = {**SMALL, "hyperparameters": {"pause": 0.01}}
    places = [{"region": region, "data": field.data[region]} for region in (HOME, AWAY)]
    found = {
        "template": template,
        "places": places,
        "search": {"steps": {"int": [2, 6]}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "trials": 4,
        "parallel": 2,
        "max_cost_usd": 20,
    }
    return found | given


@pytest.fixture(scope="session")
def search_field(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Field:
    return Field.of(yard, tmp_path_factory.mktemp("searched"))


@pytest.fixture(scope="session")
def stopped_searches(search_field: Field) -> dict[str, SearchJob]:
    """Both were stopped while the trainings of their first round ran. The last tests see how the second ended."""
    yard = search_field.yard
    template = {**SMALL, "hyperparameters": {"steps": ENDLESS["steps"]}}
    request = describe(search_field, template=template, search={"pause": {"float": [0.05, 0.1]}})
    with sooner(yard):
        jobs = {name: search.start(yard, request, name) for name in ("aborted-search", "unheard-search")}
        for job in jobs.values():
            until(lambda job=job: [one.progress() for one in job.rounds()] == [{"Training": 2}])
            yard.client("stepfunctions").stop_execution(executionArn=job.arn, error="Stopped", cause="no longer needed")
    return jobs

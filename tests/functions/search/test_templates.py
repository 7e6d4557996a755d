"""Templates whose trials are jobs are judged as Admit would judge them, before the first round."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from contract.errors import InvalidRequest
from search.handler import handler
from tests.functions.grid_plan.clusters import job_settings
from tests.functions.search.account import Searches, searched
from tools.refusals.searches.yard import JOB, LEAST, execution

METRIC = {"metric": "metric", "direction": "minimize"}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Searches]:
    """The function has the settings of jobs, as a deploy gives them."""
    with searched(monkeypatch) as made, job_settings() as jobs:
        monkeypatch.setenv("TRAINYARD_JOBS", jobs)
        yield made


def ask(**template: Any) -> dict[str, Any]:
    given = LEAST | {"template": JOB | template, "objective": METRIC}
    event = {"action": "ask", "request": json.loads(json.dumps(given)), "round": 1, "execution": execution()}
    return handler(event, None)


@pytest.mark.usefixtures("there")
def test_a_template_that_admit_would_take_is_asked() -> None:
    assert ask()["next"] == "train"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ({"region": "eu-west-9"}, "template.region: the deployment does not train in eu-west-9"),
        ({"instance_types": ["g5.xlrage"]}, "template.instance_types: g5.xlrage does not exist in eu-central-1"),
        ({"launcher": "mpi", "processes_per_node": 9}, "template.processes_per_node: 9 is too large for g5.xlarge"),
        ({"image": "images:home", "region": "us-east-1"}, "template.image: images:home does not exist in us-east-1"),
        ({"job_role": "none"}, "template.job_role: none is not a role of this deployment"),
    ],
)
def test_a_template_that_admit_would_refuse_is_refused_before_the_first_round(
    there: Searches, template: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidRequest) as problem:
        ask(**template)
    assert f"- {says}" in str(problem.value)
    assert there.aws.changes == []


def test_the_place_that_is_wrong_is_named(there: Searches) -> None:
    given = LEAST | {
        "template": JOB,
        "objective": METRIC,
        "places": [{"region": "eu-central-1"}, {"region": "eu-west-9"}],
    }
    with pytest.raises(InvalidRequest) as problem:
        handler({"action": "ask", "request": given, "round": 1, "execution": execution()}, None)
    assert "- places.1.region: the deployment does not train in eu-west-9" in str(problem.value)
    assert there.aws.changes == []

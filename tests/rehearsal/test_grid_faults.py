"""Every fault of a grid alone: two lines in two regions complete, each trained once; what is told of the way there differs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localaws.conditions import Conditions
from rehearsal import grid
from rehearsal.faults import parse_faults
from rehearsal.grid import GridJob
from rehearsal.yard import Yard
from tests.rehearsal.grids import AWAY, GRID_FAULTS, HOME, Field, sooner
from tests.rehearsal.jobs import succeeded

pytestmark = [pytest.mark.rehearsal, pytest.mark.faults]
STEPS = {"steps": 100, "pause": 0.1}


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    regions = [{"region": HOME, "cidr": "10.70.0.0/16"}, {"region": AWAY}]
    work = tmp_path_factory.mktemp("grids") / "work"
    with Yard(work, Conditions(speed=10.0), settings={"regions": regions}) as yard, sooner(yard):
        yield Field.of(yard, tmp_path_factory.mktemp("small"))


@pytest.fixture(params=sorted(GRID_FAULTS))
def met(field: Field, request: pytest.FixtureRequest) -> Iterator[tuple[str, GridJob]]:
    """Name of the fault and the grid that met it, over."""
    name = str(request.param)
    spot = {"market": "spot", "max_wait_hours": 2}
    with field.yard.faults(parse_faults([GRID_FAULTS[name]])):
        lines = [field.line(region, hyperparameters=STEPS, **spot) for region in (HOME, AWAY)]
        job = field.start(name, *lines)
        succeeded(job)
        yield name, job


def test_met_alone_it_costs_no_line_and_no_second_training(met: tuple[str, GridJob]) -> None:
    name, job = met
    job.settle_grid(30.0)
    assert grid.shortcomings(grid.summarise(job, wall_s=0.0)) == []
    codes = {tuple(attempt.code for attempt in child.attempts) for child in job.children()}
    assert codes == {{"killed": (137, 0), "retired": (75, 0)}.get(name, (0,))}
    assert {one.interruptions for one in job.trainings()} == {2 if name == "interrupted" else 0}
    asked = job.yard.aws.recorder.of(name="sagemaker:CreateTrainingJob")
    errors = {call.error for call in asked if job.name in str(call.parameters)} - {""}
    wanted = {"lost": "InternalFailure", "quota": "ResourceLimitExceeded", "throttled": "ThrottlingException"}
    assert wanted.get(name, "") in errors | {""}

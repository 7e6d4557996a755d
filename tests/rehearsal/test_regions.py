"""Three regions in one deployment, by the real command line: home, one more that trains, one for the grid alone.

That they go again, in the right order, is in test_destroy.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import items, keys, names
from contract.codec import decode
from contract.places import Place
from rehearsal.deployment import ACCOUNT, DeploymentFailed, context, synthesise
from rehearsal.state import kept
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import HAPPY, ONE, failed, instances, path, succeeded, train
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length]
HOME, AWAY, GRID = (place["region"] for place in REGIONS)


@pytest.fixture(scope="module")
def away(yard: Yard, trainer: str) -> StartedJob:
    """A job that trained in the region that is not home."""
    request = {**ONE, "code": trainer, "command": train(3, 0.1), "checkpoint_minutes": 0.02, "region": AWAY}
    job = yard.start(request, "away")
    succeeded(job)
    return job


def test_every_region_has_its_stack_and_describes_itself(yard: Yard) -> None:
    for region in (HOME, AWAY, GRID):
        stacks = yard.client("cloudformation", region).describe_stacks()["Stacks"]
        assert names.region_stack("trainyard", region) in {one["StackName"] for one in stacks}
        parameter = yard.client("ssm", region).get_parameter(Name=names.region_parameter("trainyard", region))
        place = decode(Place, parameter["Parameter"]["Value"].encode())
        assert place.bucket == names.bytes_bucket("trainyard", ACCOUNT, region)
        assert bool(place.zones) == (region != GRID)


def test_the_same_repository_is_in_every_region(yard: Yard) -> None:
    for region in (HOME, AWAY, GRID):
        found = {one["repositoryName"] for one in yard.client("ecr", region).describe_repositories()["repositories"]}
        ours = {name for name in found if name.startswith("trainyard/")}  # the bootstrap has one, too
        caches = {names.build_cache("trainyard"), names.platform_cache("trainyard")} if region == HOME else set()
        assert ours == {"trainyard/images", "trainyard/platform"} | caches


def test_a_region_for_the_grid_alone_has_no_network_of_ours(yard: Yard) -> None:
    ec2 = yard.client("ec2", GRID)
    assert ec2.describe_nat_gateways()["NatGateways"] == []
    assert [one for one in ec2.describe_vpcs()["Vpcs"] if not one["IsDefault"]] == []


def test_a_job_trains_in_a_region_that_is_not_home(away: StartedJob) -> None:
    assert path(away) == HAPPY
    assert {one["State"]["Name"] for one in instances(away, AWAY)} <= {"shutting-down", "terminated"}
    assert len(instances(away, AWAY)) == 1
    assert instances(away, HOME) == instances(away, GRID) == []


def test_its_bytes_lie_in_its_region_and_its_decisions_and_log_at_home(yard: Yard, away: StartedJob) -> None:
    listed = yard.client("s3", AWAY).list_objects_v2(
        Bucket=names.bytes_bucket("trainyard", ACCOUNT, AWAY), Prefix=keys.BytesPrefix(away.name).root
    )
    assert {one["Key"].split("/")[2] for one in listed["Contents"]} >= {"artifacts", "checkpoints"}
    assert away.artifacts() == []
    assert away._listed(yard.places.home, keys.JobPrefix(away.name).result)
    assert away.log_streams() == [f"{away.name}/1/0"]


@pytest.mark.usefixtures("away")
def test_the_reaper_knows_where_it_ran() -> None:
    assert AWAY in {one[items.SORT]["S"] for one in kept() if one[items.PARTITION]["S"] == items.REGIONS}


def test_a_job_for_the_region_of_the_grid_is_refused(yard: Yard, trainer: str) -> None:
    astray = yard.start({**ONE, "code": trainer, "command": train(1, 0.1), "region": GRID}, "astray")
    assert f"does not train in {GRID}; allowed: {HOME}, {AWAY}" in failed(astray, "InvalidRequest")


def test_a_region_whose_stack_stands_is_not_forgotten(yard: Yard, tmp_path: Path) -> None:
    """What changes in the workflow's stack is the list of regions alone: the jobs that run beside notice nothing."""
    less = tmp_path / "cdk.out"
    settings = {"regions": REGIONS[:-1], "master_port": yard.context["trainyard"]["master_port"]}
    synthesise(context(yard.conditions.speed, overrides=settings), less)
    with pytest.raises(DeploymentFailed) as refused:
        yard.cdk.deploy(less, "trainyard-workflow")
    stack = names.region_stack("trainyard", GRID)
    assert f"Region {GRID} was removed from the settings while its stack {stack} exists" in str(refused.value)
    assert f"npx cdk destroy --exclusively {stack}" in str(refused.value)

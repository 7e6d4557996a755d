"""Data outlives a destroy unless the settings say that it shall not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contract import names
from contract.environments import DrainEnvironment
from stacks.settings import BLOCK, Settings
from tests.stacks.synth import function, plain, resources, variables
from tools.synthesis import CONTEXT, Synthesised

REPOSITORIES = Settings.parse(CONTEXT[BLOCK]).every_repository


def buckets(deployment: Synthesised) -> Iterator[dict[str, Any]]:
    for template in deployment.stacks.values():
        yield from (one for one in template["Resources"].values() if one["Type"] == "AWS::S3::Bucket")


def test_every_bucket_outlives_its_stack(deployment: Synthesised) -> None:
    policies = {(one["DeletionPolicy"], one["UpdateReplacePolicy"]) for one in buckets(deployment)}
    assert policies == {("RetainExceptOnCreate", "Retain")}


def test_nothing_of_a_first_deploy_that_failed_is_in_the_way_of_the_next(
    deployment: Synthesised, passing: Synthesised
) -> None:
    """With `Retain` CloudFormation keeps what a create that failed had made, under a name that the next create needs."""
    kept = [
        f"{stack}/{name}"
        for each in (deployment, passing)
        for stack, template in each.stacks.items()
        for name, one in template["Resources"].items()
        if one.get("DeletionPolicy") in {"Retain", "Snapshot"}
    ]
    assert kept == []


def test_no_bucket_outlives_its_stack_where_data_is_not_kept(passing: Synthesised) -> None:
    policies = {(one["DeletionPolicy"], one["UpdateReplacePolicy"]) for one in buckets(passing)}
    assert policies == {("Delete", "Delete")}


def test_the_drain_empties_every_bucket_of_ours_where_data_is_not_kept(passing: Synthesised) -> None:
    environment = DrainEnvironment.read(variables(function(passing.template("reaper"), "drain")))
    assert environment.keep_data is False
    made = {plain(one["Properties"]["BucketName"]) for one in buckets(passing)}
    emptied = {names.bytes_bucket(environment.deployment, "111122223333", region) for region in environment.regions}
    assert made == {*emptied, "trainyard-home-111122223333-eu-central-1"}


def test_images_go_with_their_stack_whatever_is_kept(deployment: Synthesised, passing: Synthesised) -> None:
    for each in (deployment, passing):
        found = list(resources(each.template("region-eu-central-1"), "AWS::ECR::Repository").values())
        assert len(found) == len(REPOSITORIES)
        assert [one for one in found if one["EmptyOnDelete"] is not True] == []

"""Data outlives a destroy unless the settings say that it shall not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contract import names
from contract.environments import DrainEnvironment
from stacks.settings import BLOCK, Settings
from tests.stacks.synth import function, only, plain, resources, variables
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


# How long things are kept

WHOLE = ("Delete", "Delete"), ("RetainExceptOnCreate", "Retain"), ("Snapshot", "Snapshot")
"""What becomes of a resource that is removed, and of one that is replaced."""


def test_what_is_replaced_is_kept_or_goes_as_what_is_removed(complete: Synthesised, passing: Synthesised) -> None:
    found = {
        (f"{stack}/{name}", (one.get("DeletionPolicy"), one.get("UpdateReplacePolicy")))
        for each in (complete, passing)
        for stack, template in each.stacks.items()
        for name, one in template["Resources"].items()
        if {"DeletionPolicy", "UpdateReplacePolicy"} & one.keys()
    }
    assert {one for one in found if one[1] not in WHOLE} == set()


@pytest.mark.parametrize(("bucket", "days"), [("foundation/Home", 7), ("region-eu-central-1/Bytes", 1)])
def test_overwritten_objects_stay_for_days_and_uploads_that_were_given_up_for_a_week(
    deployment: Synthesised, bucket: str, days: int
) -> None:
    stack, name = bucket.split("/")
    for_all, *others = only(deployment.template(stack), "AWS::S3::Bucket", name)["LifecycleConfiguration"]["Rules"]
    assert for_all == {
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        "ExpiredObjectDeleteMarker": True,
        "NoncurrentVersionExpiration": {"NoncurrentDays": days},
        "Status": "Enabled",
    }
    assert {one["Status"] for one in others} == {"Enabled"}


def test_every_object_belongs_to_the_owner_of_its_bucket(complete: Synthesised) -> None:
    for bucket in buckets(complete):
        assert bucket["Properties"]["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}


def test_a_key_is_deleted_a_week_after_a_destroy_and_one_of_stored_data_after_thirty_days(
    complying: Synthesised,
) -> None:
    for stack in ("foundation", "region-eu-central-1"):
        keys = resources(complying.template(stack), "AWS::KMS::Key")
        assert {name[:-8]: one["PendingWindowInDays"] for name, one in keys.items()} == (
            {"Key": 30} | ({"NotificationsKey": 7} if stack == "foundation" else {})
        )

"""Rights on the deployment's buckets: each names the account, because a bucket's name can become somebody else's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localaws.iam.permissions import listed
from localaws.iam.simulator import Policies
from tests.security.asking import BYTES, HOME

OURS = ("arn:aws:s3:::trainyard-home-", "arn:aws:s3:::trainyard-bytes-")


def on_our_buckets(policies: dict[str, Policies]) -> Iterator[tuple[str, dict[str, Any]]]:
    for role, of_role in policies.items():
        for document in of_role.values():
            for statement in document["Statement"]:
                if any(one.startswith(OURS) for one in listed(statement["Resource"])):
                    yield f"{role.rpartition('/')[2]} {statement.get('Sid')}", statement


def test_every_right_on_our_buckets_is_on_buckets_of_this_account(
    policies: dict[str, Policies], wide_policies: dict[str, Policies]
) -> None:
    for each in (policies, wide_policies):
        found = dict(on_our_buckets(each))
        assert found
        open_ = [
            name
            for name, one in found.items()
            if "aws:ResourceAccount" not in one.get("Condition", {}).get("StringEquals", {})
        ]
        assert open_ == []


def test_nothing_but_the_drain_may_touch_a_whole_bucket(wide_policies: dict[str, Policies]) -> None:
    whole = {
        name
        for name, one in on_our_buckets(wide_policies)
        for resource in listed(one["Resource"])
        if resource.endswith("/*") and resource.count("/") == 1
    }
    assert whole == {"DrainRole EmptyBuckets"}
    assert HOME.startswith(OURS[0])
    assert BYTES.startswith(OURS[1])

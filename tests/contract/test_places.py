"""What a region says about itself, also in the words of a version before."""

from __future__ import annotations

import json

from contract.codec import decode, encode
from contract.places import Place

OLD = b'{"region": "eu-central-1", "bucket": "b", "security_group": "sg-1", "launch_template": "lt-1", "zones": []}'


def test_a_place_that_names_one_security_group_has_a_pool_of_it() -> None:
    assert decode(Place, OLD).security_groups == ("sg-1",)


def test_such_a_place_is_equal_to_one_of_now_and_stays_so_when_it_is_written() -> None:
    new = Place(region="eu-central-1", bucket="b", security_groups=("sg-1",), launch_template="lt-1")
    assert decode(Place, OLD) == new
    assert decode(Place, encode(decode(Place, OLD))) == new


def test_a_single_group_beside_a_pool_does_not_change_it() -> None:
    both = OLD.replace(b'"zones"', b'"security_groups": ["sg-2", "sg-3"], "zones"')
    assert decode(Place, both).security_groups == ("sg-2", "sg-3")


def test_a_version_before_reads_a_group_of_the_pool() -> None:
    """Between the deploys of a region and of the Workflow."""
    new = Place(region="eu-central-1", bucket="b", security_groups=("sg-2", "sg-3"))
    assert json.loads(encode(new))["security_group"] == "sg-2"


def test_a_region_of_the_grid_alone_has_no_group() -> None:
    assert decode(Place, b'{"region": "us-east-1", "bucket": "b"}').security_groups == ()

"""Which buckets a node asks for checkpoints: a region where the job never ran holds up no recovery."""

from __future__ import annotations

import pytest

from agent.restore import choose_regions

PLACES = ("eu-central-1", "eu-west-1", "us-east-1")


@pytest.mark.parametrize(
    ("ran_in", "asked"),
    [
        (("us-east-1",), ["eu-west-1", "us-east-1"]),
        (("eu-west-1",), ["eu-west-1"]),
        (("us-east-1", "eu-central-1"), ["eu-west-1", "eu-central-1", "us-east-1"]),
    ],
)
def test_the_regions_of_earlier_attempts_are_asked_and_the_own_one_first(
    ran_in: tuple[str, ...], asked: list[str]
) -> None:
    assert choose_regions("eu-west-1", PLACES, ran_in) == asked


def test_every_region_is_asked_where_nobody_knows_where_the_job_ran() -> None:
    assert choose_regions("eu-west-1", PLACES, ()) == ["eu-west-1", "eu-central-1", "us-east-1"]


def test_a_region_that_is_none_of_the_jobs_is_not_asked() -> None:
    assert choose_regions("eu-west-1", PLACES, ("ap-south-1", "us-east-1")) == ["eu-west-1", "us-east-1"]


def test_every_region_is_asked_where_what_is_known_names_none_of_the_jobs() -> None:
    assert choose_regions("eu-west-1", PLACES, ("ap-south-1",)) == ["eu-west-1", "eu-central-1", "us-east-1"]

"""A short tag stands for one of AWS's containers, or for none: never for another version, device, Python or place than it names."""

from __future__ import annotations

import pytest

from contract.short_tags import EC2, SAGEMAKER, ListedTag, agreed, whole_tag

OLD, NEW = 1_770_000_000.0, 1_780_000_000.0
AT = {
    "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2": OLD,
    "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2-v1.1": NEW,
    "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2": OLD,
    "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2-v1.0-2026-01-01-00-00-00": OLD,
    "2.9.1-gpu-py312-ec2-soci": NEW,
    "2.9.1-cpu-py312-ubuntu22.04-ec2": NEW,
    "2.9.0-gpu-py312": OLD,
    "2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker": OLD,
    "2.9.0-gpu-py312-soci": NEW,
    "2.10.0-gpu-py313-cu130-ubuntu22.04-ec2": OLD,
    "2.10.0-gpu-py313-cu130-ubuntu22.04-sagemaker": OLD,
    "1.8.1-gpu-py36-cu111-ubuntu18.04-e3": NEW,
    "1.8.1-gpu-py36-cu111-ubuntu18.04": OLD,
    "2.1.0-transformers4.37.0-cpu-py310-ubuntu22.04": NEW,
    "2.1.0-transformers4.37.0-gpu-py310-cu121-ubuntu20.04": OLD,
    "latest": NEW,
    "gpu-2.9": NEW,
}


def listed(at: dict[str, float]) -> list[ListedTag]:
    return [ListedTag(tag=tag, pushed_at=pushed, digest=f"of {tag}") for tag, pushed in at.items()]


THERE = listed(AT)


@pytest.mark.parametrize(
    ("short", "place", "whole"),
    [
        ("2.9-gpu", EC2, "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2"),
        ("2.9.0-gpu", EC2, "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2-v1.1"),
        ("2.9-gpu-py312", EC2, "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2"),
        ("2.9-cpu", EC2, "2.9.1-cpu-py312-ubuntu22.04-ec2"),
        ("2-gpu", EC2, "2.10.0-gpu-py313-cu130-ubuntu22.04-ec2"),
        ("2.9-gpu", SAGEMAKER, "2.9.0-gpu-py312"),
        ("2.10-gpu", SAGEMAKER, "2.10.0-gpu-py313-cu130-ubuntu22.04-sagemaker"),
        ("1.8-gpu", EC2, "1.8.1-gpu-py36-cu111-ubuntu18.04-e3"),
        ("1.8-gpu", SAGEMAKER, "1.8.1-gpu-py36-cu111-ubuntu18.04"),
        ("2.1-transformers4.37.0-gpu", SAGEMAKER, "2.1.0-transformers4.37.0-gpu-py310-cu121-ubuntu20.04"),
    ],
)
def test_a_short_tag_is_the_newest_that_it_begins(short: str, place: str, whole: str) -> None:
    for there in (THERE, THERE[::-1]):
        found = whole_tag(short, there, place)
        assert found is not None
        assert (found.tag, found.digest) == (whole, f"of {whole}")


@pytest.mark.parametrize(
    "short",
    [
        *(
            "2.9",
            "2",
            "2.1-gpu",
            "2.11-gpu",
            "2.9-gp",
            "2.9-gpu-py31",
            "2.9-gpu-cu130",
            "gpu-2",
            "gpu-2.9",
            "latest",
            "v2.9-gpu",
            "2.-gpu",
        ),
        *("-gpu", "", "2.1-transformers4.37.0", "2.9-gpu-py312-soci"),
    ],
)
def test_what_begins_no_whole_words_or_names_no_device_stands_for_none(short: str) -> None:
    assert whole_tag(short, THERE, EC2) is None
    assert whole_tag(short, THERE, SAGEMAKER) is None


@pytest.mark.parametrize(("short", "place"), [("2.9-cpu", SAGEMAKER), ("2.1-transformers4.37.0-gpu", EC2)])
def test_a_container_for_the_other_place_is_none(short: str, place: str) -> None:
    assert whole_tag(short, THERE, place) is None


def test_of_one_image_the_shortest_tag_is_told() -> None:
    tags = [
        "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2-v1.0",
        "2.9.0-gpu-py312-ec2",
        "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2",
    ]
    found = whole_tag("2.9-gpu", listed(dict.fromkeys(tags, NEW)), EC2)
    assert found is not None
    assert found.tag == "2.9.0-gpu-py312-ec2"


def test_where_nothing_is_listed_nothing_is_found() -> None:
    assert whole_tag("2.9-gpu", [], EC2) is None
    assert agreed("2.9-gpu", {}, EC2) == {}
    assert agreed("2.9-gpu", {"eu-central-1": []}, EC2) == {}


LATE, EARLY = listed({"2.9.0-gpu-ec2": OLD}), listed({"2.9.0-gpu-ec2": OLD + 60, "2.9.1-gpu-ec2": NEW})


@pytest.mark.parametrize(
    "lists",
    [{"late": LATE, "early": EARLY}, {"early": EARLY, "late": LATE}, {"early": EARLY, "late": LATE, "without": []}],
)
def test_regions_agree_on_the_newest_that_all_of_them_have(lists: dict[str, list[ListedTag]]) -> None:
    assert {name: one.tag for name, one in agreed("2.9-gpu", lists, EC2).items()} == dict.fromkeys(
        lists.keys() - {"without"}, "2.9.0-gpu-ec2"
    )


def test_regions_that_have_nothing_in_common_take_their_own() -> None:
    lists = {"a": LATE, "b": listed({"2.9.1-gpu-ec2": NEW})}
    assert {name: one.tag for name, one in agreed("2.9-gpu", lists, EC2).items()} == {
        "a": "2.9.0-gpu-ec2",
        "b": "2.9.1-gpu-ec2",
    }


def test_regions_agree_on_an_image_and_not_on_a_tag_that_has_moved_in_one_of_them() -> None:
    """AWS gives a patch the tags of the image before it, in one region after another."""
    old = ListedTag(tag="2.9.0-gpu-ec2-v1.0", pushed_at=OLD, digest="before")
    late = [old, ListedTag(tag="2.9.0-gpu-ec2", pushed_at=OLD, digest="before")]
    early = [old, ListedTag(tag="2.9.0-gpu-ec2", pushed_at=NEW, digest="patch")]
    for lists in ({"late": late, "early": early}, {"early": early, "late": late}):
        assert {one.digest for one in agreed("2.9-gpu", lists, EC2).values()} == {"before"}

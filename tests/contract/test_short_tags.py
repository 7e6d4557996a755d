"""A short tag stands for one of AWS's containers, or for none: never for another version, device or Python than it names."""

from __future__ import annotations

import pytest

from contract.short_tags import EC2, SAGEMAKER, ListedTag, whole_tag

OLD, NEW = 1_770_000_000.0, 1_780_000_000.0
AT = {
    "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2": OLD,
    "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2-v1.1": NEW,
    "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2": OLD,
    "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2-v1.0-2026-01-01-00-00-00": OLD,
    "2.9.1-cpu-py312-ubuntu22.04-ec2": NEW,
    "2.9.0-gpu-py312": NEW,
    "2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker": OLD,
    "2.10.0-gpu-py313-cu130-ubuntu22.04-ec2": OLD,
    "2.10.0-gpu-py313-cu130-ubuntu22.04-sagemaker": OLD,
    "latest": NEW,
    "gpu-2.9": NEW,
}
THERE = [ListedTag(tag=tag, pushed_at=at) for tag, at in AT.items()]


@pytest.mark.parametrize(
    ("short", "place", "whole"),
    [
        ("2.9-gpu", EC2, "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2"),
        ("2.9.0-gpu", EC2, "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2-v1.1"),
        ("2.9-gpu-py312", EC2, "2.9.1-gpu-py312-cu130-ubuntu22.04-ec2"),
        ("2.9-cpu", EC2, "2.9.1-cpu-py312-ubuntu22.04-ec2"),
        ("2-gpu", EC2, "2.10.0-gpu-py313-cu130-ubuntu22.04-ec2"),
        ("2.9-gpu", SAGEMAKER, "2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker"),
        ("2.9-cpu", SAGEMAKER, "2.9.1-cpu-py312-ubuntu22.04-ec2"),
    ],
)
def test_a_short_tag_is_the_newest_that_it_begins(short: str, place: str, whole: str) -> None:
    assert whole_tag(short, THERE, place) == whole
    assert whole_tag(short, reversed(THERE), place) == whole


@pytest.mark.parametrize(
    "short",
    [
        "2.9",
        "2",
        "2.1-gpu",
        "2.11-gpu",
        "2.9-gp",
        "2.9-gpu-py31",
        "2.9-gpu-cu130",
        "gpu-2",
        "latest",
        "v2.9-gpu",
        "2.-gpu",
        "-gpu",
        "",
    ],
)
def test_what_begins_no_whole_word_of_a_tag_stands_for_none(short: str) -> None:
    assert whole_tag(short, THERE, EC2) == ""


def test_of_one_image_the_shortest_tag_is_told() -> None:
    tags = [
        "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2-v1.0",
        "2.9.0-gpu-py312-ec2",
        "2.9.0-gpu-py312-cu130-ubuntu22.04-ec2",
    ]
    assert whole_tag("2.9-gpu", [ListedTag(tag=one, pushed_at=NEW) for one in tags], EC2) == "2.9.0-gpu-py312-ec2"


def test_where_nothing_is_listed_nothing_is_found() -> None:
    assert whole_tag("2.9-gpu", [], EC2) == ""

"""Whose containers of AWS's jobs may name, as the function of Admit is told."""

from __future__ import annotations

from stacks.parts.container_rights import base_accounts

COMMON = "763104351884"


def test_the_account_that_most_regions_share_is_told_once() -> None:
    assert base_accounts(["eu-central-1", "us-east-1", "ap-east-1"]) == {"": COMMON, "ap-east-1": "871362719292"}


def test_a_region_of_which_nothing_is_known_has_none_and_not_that_of_the_others() -> None:
    assert base_accounts(["eu-central-1", "us-east-1", "mars-north-1"]) == {"": COMMON, "mars-north-1": ""}


def test_where_nothing_is_known_of_any_region_there_is_no_account() -> None:
    assert base_accounts(["mars-north-1"]) == {"": ""}

"""Addresses with which other names begin: SageMaker reads all of them, so a plan says which."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from contract.errors import InvalidRequest
from grid_plan.planning import MOST_WARNINGS
from tests.functions.grid_plan.account import INPUT, Account, account, line, plan

PAYLOAD = 256 * 1024
"""The most bytes of a state's output in Step Functions."""


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with account(monkeypatch) as made:
        for name in ("train-old/a", "part-1", "part-10", "part-2", "only/x"):
            made.s3.write("data-eu", name, b"x")
        yield made


def warnings(there: Account, address: str) -> list[str]:
    there.upload(f"eu-central-1,{address}\n")
    return list(plan(INPUT)["warnings"])


def said(field: str, address: str, names: str) -> str:
    return (
        f"line 1: {field}: {address} is neither one object nor one folder alone, and SageMaker reads everything that begins with it: "
        f"{names} (the address of a folder ends with /)"
    )


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("train", "train-old/, train/"),
        ("tra", "train-old/, train/"),
        ("part-1", "part-1, part-10"),
        ("part-", "part-1, part-10, part-2"),
        ("train/par", "part-0"),
        ("onl", "only/"),
    ],
)
def test_a_warning_says_what_begins_with_the_address(there: Account, key: str, names: str) -> None:
    assert warnings(there, f"s3://data-eu/{key}") == [said("data", f"s3://data-eu/{key}", names)]


@pytest.mark.parametrize("key", ["train/", "train-old", "part-10", "only", "only/x", "train/part-0", ""])
def test_one_folder_and_one_object_and_a_whole_bucket_are_meant(there: Account, key: str) -> None:
    assert warnings(there, f"s3://data-eu/{key}") == []


def test_more_names_than_a_person_reads_are_not_named(there: Account) -> None:
    for number in range(50):
        there.s3.write("data-eu", f"train.{number:03}/x", b"x")
    assert warnings(there, "s3://data-eu/train") == [
        said("data", "s3://data-eu/train", "train-old/, train.000/, train.001/ and more")
    ]


def test_long_names_are_cut_and_invisible_letters_shown(there: Account) -> None:
    there.s3.write("data-eu", "long\u202e" + "x" * 900, b"x")
    (warning,) = warnings(there, "s3://data-eu/long")
    assert "\\u202exxx" in warning
    assert "x" * 60 not in warning


def test_further_channels_are_looked_at_as_data_is(there: Account) -> None:
    there.upload(line(channels={"validation": "s3://data-eu/train", "test": {"data": ["s3://data-eu/part-1"]}}))
    assert plan(INPUT)["warnings"] == [
        said("channels.validation", "s3://data-eu/train", "train-old/, train/"),
        said("channels.test", "s3://data-eu/part-1", "part-1, part-10"),
    ]


def test_a_copy_that_the_training_does_not_read_is_no_warning(there: Account) -> None:
    there.upload("us-east-1,s3://data-eu/train s3://data-us/train\n")
    assert plan(INPUT)["warnings"] == []


def test_an_address_is_asked_about_once_however_many_lines_have_it(there: Account) -> None:
    there.upload("region,data,hp.a\n" + "".join(f"eu-central-1,s3://data-eu/train,{one}\n" for one in range(1200)))
    assert [one.partition(": ")[0] for one in plan(INPUT)["warnings"]] == ["lines 2, 3, 4, 5, 6 and 1,195 more"]
    assert len(there.calls_of("ListObjectsV2")) == 1


def test_the_warnings_of_hundreds_of_addresses_fit_into_the_output_of_a_state(there: Account) -> None:
    for number in range(400):
        there.s3.write("data-eu", f"d{number:03}-" + "x" * 200, b"x")
    there.upload("".join(f"eu-central-1,s3://data-eu/d{number:03}\n" for number in range(400)))
    answer = plan(INPUT)
    assert sum(map(len, answer["warnings"])) < MOST_WARNINGS + 100
    assert answer["warnings"][-1].endswith(" more")
    assert len(json.dumps(answer)) < PAYLOAD


def test_where_nothing_begins_so_the_line_is_refused_and_where_nobody_may_look_too(there: Account) -> None:
    there.s3.buckets["data-eu"].forbidden = ("tra",)
    for key, why in (("none", "there is nothing at"), ("train", "cannot be read")):
        with pytest.raises(InvalidRequest, match=why):
            warnings(there, f"s3://data-eu/{key}")


def test_a_repeat_of_the_step_says_the_same_warnings(there: Account) -> None:
    first = warnings(there, "s3://data-eu/train")
    there.s3.write("data-eu", "train.csv", b"x")
    assert plan(INPUT)["warnings"] == first != []

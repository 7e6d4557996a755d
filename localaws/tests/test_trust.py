"""The local STS begins a session where a role's trust policy allows it, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from localaws.services.sts import trusts

ME, OTHER = (f"arn:aws:iam::123456789012:role/{name}" for name in ("worker", "other"))
TAGGED = {"aws:RequestTag/job": ["resnet"], "aws:TagKeys": ["job"]}
WITH_JOB = {"StringLike": {"aws:RequestTag/job": "?*"}, "ForAllValues:StringEquals": {"aws:TagKeys": ["job"]}}


def statement(**changes: Any) -> dict[str, Any]:
    usual = {"Effect": "Allow", "Principal": {"AWS": ME}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    return {**usual, "Condition": WITH_JOB, **changes}


def both(*policy: dict[str, Any], by: str = ME, given: dict[str, list[str]] = TAGGED) -> bool:
    return all(trusts(policy, by, action, given) for action in ("sts:AssumeRole", "sts:TagSession"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Action": "sts:*"},
        {"Principal": {"AWS": [OTHER, ME]}},
        {"Principal": {"AWS": "arn:aws:iam::123456789012:root"}},
        {"Principal": "*"},
        {"Condition": {"Null": {"aws:RequestTag/job": "false"}}},
        {"Condition": {"StringEquals": {"aws:RequestTag/job": ["bert", "resnet"]}}},
    ],
)
def test_who_is_named_and_gives_what_is_asked_for_may(changes: dict[str, Any]) -> None:
    assert both(statement(**changes))


@pytest.mark.parametrize(
    "policy",
    [
        [],
        [statement(Principal={"AWS": OTHER})],
        [statement(Principal={"Service": "lambda.amazonaws.com"})],
        [statement(Principal={"AWS": "arn:aws:iam::444455556666:root"})],
        [statement(Action="sts:AssumeRole")],
        [statement(Action="sts:TagSession")],
        [statement(Condition={"StringEquals": {"aws:RequestTag/job": "bert"}})],
        [statement(Condition={"StringEquals": {"sts:ExternalId": "x"}})],
        [statement(Condition={"Null": {"aws:RequestTag/job": "true"}})],
        [statement(), statement(Effect="Deny", Condition={"StringLike": {"aws:RequestTag/job": "res*"}})],
    ],
)
def test_nobody_else_may(policy: list[dict[str, Any]]) -> None:
    assert not both(*policy)


@pytest.mark.parametrize(
    "given", [{}, {"aws:RequestTag/job": [""], "aws:TagKeys": ["job"]}, TAGGED | {"aws:TagKeys": ["admin", "job"]}]
)
def test_a_session_without_the_tag_or_with_another_one_is_denied(given: dict[str, list[str]]) -> None:
    assert not both(statement(), given=given)


def test_a_condition_that_nobody_has_taught_is_no_answer() -> None:
    with pytest.raises(NotImplementedError, match="IpAddress"):
        both(statement(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}))

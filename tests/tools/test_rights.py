"""The table of who may change what: it has every role, tells changes from looks, and keeps what stands around it."""

from __future__ import annotations

from typing import Any

import pytest

from tools.rights import BEGIN, END, PAGE, page, table


def rows(statement: dict[str, Any], kind: str = "AWS::IAM::Policy", *, attached: bool = True) -> list[str]:
    """The table's rows for one role with one statement."""
    roles = {"Roles": [{"Ref": "LauncherRole12345678"}]} if attached else {}
    policy = {**roles, "PolicyDocument": {"Statement": [statement]}}
    return table([{"Resources": {"People12345678": {"Type": kind, "Properties": policy}}}])[2:]


def test_a_change_is_told_with_where_and_on_which_condition() -> None:
    statement = {
        "Sid": "End",
        "Action": ["ec2:TerminateInstances", "ec2:DescribeInstances"],
        "Resource": {
            "Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":ec2:*:", {"Ref": "AWS::AccountId"}, ":instance/*"]]
        },
        "Condition": {
            "StringEquals": {"aws:ResourceTag/trainyard:deployment": "trainyard"},
            "Null": {"aws:ResourceTag/trainyard:protected": "true"},
        },
    }
    assert rows(statement) == ["| Launcher | `ec2:TerminateInstances` on `instance/*` (with our tag, not protected) |"]


@pytest.mark.parametrize("action", ["s3:GetObject", "ec2:DescribeInstances", "dynamodb:Query", "logs:FilterLogEvents"])
def test_what_only_looks_is_left_out(action: str) -> None:
    assert rows({"Sid": "Look", "Action": action, "Resource": "*"}) == ["| Launcher | nothing |"]


@pytest.mark.parametrize(
    "action", ["s3:*", "s3:PutObject", "iam:PassRole", "ecr:PutImage", "sts:AssumeRole", "dynamodb:*", "*"]
)
def test_whatever_may_change_something_is_told(action: str) -> None:
    assert f"`{action}` on `*`" in rows({"Sid": "Any", "Action": action, "Resource": "*"})[0]


def test_a_statement_that_denies_is_no_right() -> None:
    assert rows({"Effect": "Deny", "Action": "s3:PutObject", "Resource": "*"}) == ["| Launcher | nothing |"]


def test_items_are_told_by_their_partition_keys() -> None:
    statement = {
        "Sid": "Items",
        "Action": "dynamodb:PutItem",
        "Resource": "arn:aws:dynamodb:x:1:table/t",
        "Condition": {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["job#*"]},
            "Null": {"dynamodb:LeadingKeys": "false"},
        },
    }
    assert rows(statement) == ["| Launcher | `dynamodb:PutItem` on `job#*` |"]


def test_a_managed_policy_is_nobodys_before_it_is_attached() -> None:
    statement = {"Action": "states:StartExecution", "Resource": "arn:aws:states:r:1:stateMachine:m"}
    assert rows(statement, "AWS::IAM::ManagedPolicy", attached=False) == [
        "| People (a policy to attach) | `states:StartExecution` on `stateMachine:m` |"
    ]


def test_a_managed_policy_of_a_role_is_among_the_roles_rights() -> None:
    statement = {"Action": "states:StartExecution", "Resource": "arn:aws:states:r:1:stateMachine:m"}
    assert rows(statement, "AWS::IAM::ManagedPolicy") == rows(statement)


def test_what_stands_around_the_table_stays() -> None:
    assert page(f"before\n{BEGIN}\nold\n{END}\nafter\n", ["| new |"]) == f"before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"


def test_the_page_says_what_an_attacker_gets_and_does_not_get() -> None:
    text = PAGE.read_text("utf-8")
    for heading in ("## What an attacker with a node gets", "## What he does not get", "## Who may change what"):
        assert heading in text

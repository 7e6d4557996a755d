"""What CloudFormation hears of the drain, and when: over HTTP, in its words, once and in time."""

from __future__ import annotations

import json

import pytest

from aws.cloudformation import LARGEST, write_answer
from aws.state import State
from contract import items, names
from drain.policy import explain_closed
from tests.builders import JOB
from tests.fakes.faults import Kind
from tests.fakes.state import TABLE, store
from tests.functions.drain.draining import DRAIN, Yard


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_deploy_opens_what_a_destroy_has_closed_and_is_answered_at_once(yard: Yard, kind: str) -> None:
    State(TABLE).close_admission(explain_closed(JOB.deployment))
    yard.ask(kind)
    assert not yard.closed()
    assert yard.cloudformation.answers == [
        {
            "Status": "SUCCESS",
            "Reason": "",
            "PhysicalResourceId": "yard-drain",
            "StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/yard-reaper/1",
            "RequestId": "request-1",
            "LogicalResourceId": "Drain",
        }
    ]


@pytest.mark.parametrize("note", [b'{"closed": true, "reason": "switched off by the platform team"}', b"{}", b"closed"])
def test_a_deploy_leaves_closed_what_a_person_has_closed(yard: Yard, note: bytes) -> None:
    store(yard.aws, items.ADMISSION_CLOSED, note)
    yard.ask("Create")
    assert yard.closed()
    assert yard.cloudformation.answers[-1]["Status"] == "SUCCESS"


def test_a_create_that_failed_is_taken_back_without_draining_a_healthy_deployment(yard: Yard) -> None:
    yard.train()
    yard.aws.faults.add(Kind.DENIED, "dynamodb:*", times=50)
    yard.ask("Create")
    yard.aws.faults.waiting.clear()
    failed = yard.cloudformation.answers[-1]
    assert failed["Status"] == "FAILED"
    yard.physical = failed["PhysicalResourceId"]
    yard.ask("Delete")
    assert yard.cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert yard.cloudformation.answers[-1]["PhysicalResourceId"] == yard.physical
    assert not yard.closed()
    assert yard.left()
    assert DRAIN not in {one.machine for one in yard.aws.states.executions.known.values()}


def test_a_create_that_was_never_answered_is_taken_back_without_draining(yard: Yard) -> None:
    yard.train()
    yard.physical = "yard-grid-DrainOnDelete-1X2Y3Z"
    yard.ask("Delete")
    assert yard.cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert not yard.closed()
    assert yard.left()


@pytest.mark.parametrize("kind", ["Update", "Delete"])
def test_a_resource_that_was_made_keeps_its_id_also_where_a_request_fails(yard: Yard, kind: str) -> None:
    yard.aws.faults.add(Kind.DENIED, "dynamodb:*", times=50)
    yard.ask(kind)
    assert yard.cloudformation.answers[-1]["PhysicalResourceId"] == names.drain_machine("yard")


def test_the_address_is_signed_for_an_empty_content_type(yard: Yard) -> None:
    yard.ask("Create")
    assert yard.cloudformation.types == [""]


def test_a_delete_is_not_answered_before_its_machine_is_done(yard: Yard) -> None:
    yard.ask("Delete")
    assert yard.cloudformation.answers == []
    assert yard.closed()


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
@pytest.mark.parametrize("fault", [Kind.DENIED, Kind.UNREACHABLE])
def test_a_request_that_fails_is_answered_with_the_reason_and_not_in_an_hour(
    yard: Yard, kind: str, fault: Kind
) -> None:
    yard.aws.faults.add(fault, "dynamodb:*", times=50)
    yard.ask(kind)
    answer = yard.cloudformation.answers[-1]
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith(("AccessDenied: ", "ClientError: ", "ConnectTimeoutError: "))


def test_a_request_that_nobody_can_read_fails_for_good_only_where_nobody_can_be_answered(yard: Yard) -> None:
    request = yard.request("Delete")
    del request["RequestId"]
    assert yard.functions.invoke("drain", request).error == "KeyError"


def test_an_answer_is_tried_three_times(yard: Yard) -> None:
    yard.cloudformation.refusals = 2
    yard.ask("Create")
    assert len(yard.cloudformation.answers) == 1


def test_an_answer_that_cannot_be_given_fails_the_function_so_that_lambda_tries_again(yard: Yard) -> None:
    yard.cloudformation.refusals = 3
    assert yard.functions.invoke("drain", yard.request("Create")).error == "HTTPError"


@pytest.mark.parametrize("letter", ["a", "é", "\U0001f682", '"', "\n"])
def test_a_reason_is_cut_to_what_cloudformation_takes(yard: Yard, letter: str) -> None:
    body = write_answer(yard.request("Delete"), "yard-drain", letter * 50_000)
    assert LARGEST - 64 <= len(body) <= LARGEST
    assert json.loads(body)["Reason"].startswith(letter * 100)
    assert "has the rest" in json.loads(body)["Reason"]


def test_a_reason_that_fits_is_whole(yard: Yard) -> None:
    assert json.loads(write_answer(yard.request("Delete"), "yard-drain", "é" * 100))["Reason"] == "é" * 100


def test_a_request_that_comes_twice_starts_one_machine(yard: Yard) -> None:
    request = yard.request("Delete")
    for _ in range(2):
        assert yard.functions.invoke("drain", request).error == ""
        yard.aws.clock.run(10)
    assert [one.machine for one in yard.aws.states.executions.known.values()] == [DRAIN]

"""What has the page writer write: begins and ends of executions."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.parts.bad_ends import BAD_ENDS
from tests.stacks.synth import only, plain
from tools.synthesis import Synthesised


@pytest.fixture(scope="module")
def pages(deployment: Synthesised) -> dict[str, Any]:
    return deployment.template("pages")


def test_begins_and_ends_of_every_machine_are_sent(pages: dict[str, Any]) -> None:
    detail = only(pages, "AWS::Events::Rule")["EventPattern"]["detail"]
    assert detail["status"] == ["RUNNING", "SUCCEEDED", *BAD_ENDS]
    machines = [plain(one).rpartition(":")[2] for one in detail["stateMachineArn"]]
    assert machines == ["trainyard-train", "trainyard-grid", "trainyard-search"]


def test_a_page_is_tried_for_an_hour(pages: dict[str, Any]) -> None:
    assert only(pages, "AWS::SQS::Queue", "PageQueue")["RedrivePolicy"]["maxReceiveCount"] == 30

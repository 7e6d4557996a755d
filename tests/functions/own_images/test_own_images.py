"""The platform's own images: what a deploy asks for, what it waits for, and what it says when there is no image."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from aws.facts import GONE, Status
from contract import keys, names
from contract.errors import BuildFailed, StillBuilding
from own_images.policy import execution, judge
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.executions import Execution
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import BUILD, Functions, Outcome
from tests.fakes.s3 import Bucket
from tests.fakes.yard import deployed

TAG = names.child_image_tag("c0ffee" * 8)
CONTEXT = b"the archive of a context"
ASSETS, ASSET = "assets-123456789012", "c0ffee.zip"
BASE = "public.ecr.aws/docker/library/python:3.13-slim-bookworm"
WAITS = BUILD.replace(names.platform_machine("yard"), names.image_machine("yard"))
NOW, PATIENCE_S = 1_000_000.0, 3000.0


@dataclass
class Deploy:
    """A deployment whose Builds stack stands, and a CloudFormation that asks for the image."""

    aws: Aws
    functions: Functions
    cloudformation: CloudFormation
    given: dict[str, Any] = field(default_factory=dict)

    def ask(self, kind: str = "Create", number: int = 1, *mishaps: Mishap) -> Outcome:
        wanted = {"Tag": TAG, "Base": BASE, "Bucket": ASSETS, "Key": ASSET, "Regions": ["eu-central-1"]}
        request = self.cloudformation.request(kind, wanted, stack="yard-images", number=number)
        return self.functions.invoke("own_images", request, mishaps)

    def waits(self) -> dict[str, Any]:
        """The input of the machine that waits."""
        (one,) = self.executions(WAITS)
        found: dict[str, Any] = json.loads(one.input)
        return found

    def run_build(self, *mishaps: Mishap) -> Outcome:
        return self.functions.invoke("own_images", {"action": "build", **self.waits()}, mishaps)

    def executions(self, machine: str) -> list[Execution]:
        return [one for one in self.aws.states.executions.known.values() if one.machine == machine]

    def end(self, status: str, cause: str | None = None) -> None:
        (build,) = self.executions(BUILD)
        self.aws.states.executions.end(build, status, "BuildFailed" if cause else None, cause)

    def answer(self, problem: dict[str, str] | None) -> dict[str, Any]:
        event = {"action": "answer", "request": self.waits()["request"], "problem": problem}
        assert self.functions.invoke("own_images", event).error == ""
        return self.cloudformation.answers[-1]


@pytest.fixture
def deploy(cloudformation: CloudFormation) -> Iterator[Deploy]:
    aws = deployed()
    aws.states.executions.machines |= {BUILD, WAITS}
    aws.s3.buckets[ASSETS] = Bucket(region=JOB.home_region)
    aws.s3.write(ASSETS, ASSET, CONTEXT)
    made = Deploy(aws, Functions(aws), cloudformation)
    with made.functions.installed():
        yield made


def test_a_create_is_not_answered_before_the_image_stands(deploy: Deploy) -> None:
    assert deploy.ask().error == ""
    assert deploy.run_build().error == StillBuilding.__name__
    assert deploy.run_build().error == StillBuilding.__name__
    assert deploy.cloudformation.answers == []
    deploy.end("SUCCEEDED")
    assert deploy.run_build().error == ""
    assert deploy.answer(None)["Status"] == "SUCCESS"


def test_the_build_is_of_the_context_that_the_deploy_uploaded(deploy: Deploy) -> None:
    deploy.ask()
    deploy.run_build()
    (build,) = deploy.executions(BUILD)
    given = json.loads(build.input)
    assert given == {"tag": TAG, "base": BASE}
    assert deploy.aws.s3.read(JOB.home_bucket, keys.own_context(TAG)) == CONTEXT


def test_a_request_that_comes_twice_is_one_build(deploy: Deploy) -> None:
    deploy.ask()
    deploy.ask()
    for _ in range(3):
        deploy.run_build()
    assert len(deploy.executions(BUILD)) == len(deploy.executions(WAITS)) == 1


def test_the_next_deploy_after_a_failed_one_builds_again(deploy: Deploy) -> None:
    deploy.ask()
    deploy.run_build()
    deploy.end("FAILED", "no space left")
    deploy.ask("Create", 2)
    second = deploy.executions(WAITS)[-1]
    event = {"action": "build", **json.loads(second.input)}
    assert deploy.functions.invoke("own_images", event).error == StillBuilding.__name__
    assert len(deploy.executions(BUILD)) == 2


def test_a_delete_is_answered_at_once_and_starts_nothing(deploy: Deploy) -> None:
    assert deploy.ask("Delete").error == ""
    assert deploy.cloudformation.answers[-1]["Status"] == "SUCCESS"
    assert deploy.executions(BUILD) == deploy.executions(WAITS) == []


def test_create_update_and_delete_have_one_physical_id(deploy: Deploy) -> None:
    """Another one at an update, and CloudFormation would delete the old."""
    deploy.ask()
    created = deploy.answer(None)["PhysicalResourceId"]
    deploy.ask("Delete", 2)
    assert deploy.cloudformation.answers[-1]["PhysicalResourceId"] == created


def test_a_failed_build_ends_the_deploy_with_its_log_and_what_to_do(deploy: Deploy) -> None:
    deploy.ask()
    deploy.run_build()
    deploy.end("FAILED", "The last lines:\npip: no such package boto4")
    outcome = deploy.run_build()
    assert outcome.error == BuildFailed.__name__
    told = deploy.answer({"error": outcome.error, "cause": outcome.cause})
    assert told["Status"] == "FAILED"
    assert "no such package boto4" in told["Reason"]
    assert "Deploy again" in told["Reason"]


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT"])
def test_a_build_that_was_stopped_ends_the_deploy(deploy: Deploy, status: str) -> None:
    deploy.ask()
    deploy.run_build()
    deploy.end(status)
    assert deploy.run_build().error == BuildFailed.__name__


def test_an_archive_that_is_gone_ends_the_deploy(deploy: Deploy) -> None:
    deploy.ask()
    deploy.aws.s3.buckets[ASSETS].objects.clear()
    outcome = deploy.run_build()
    assert (outcome.error, ASSET in outcome.cause) == (BuildFailed.__name__, True)
    assert deploy.executions(BUILD) == []


def test_without_the_machine_that_waits_cloudformation_hears_so_at_once(deploy: Deploy) -> None:
    deploy.aws.states.executions.machines.discard(WAITS)
    assert deploy.ask().error == ""
    told = deploy.cloudformation.answers[-1]
    assert (told["Status"], "StateMachineDoesNotExist" in told["Reason"]) == ("FAILED", True)


@pytest.mark.parametrize("death", Death)
def test_a_function_that_dies_at_the_start_of_a_build_starts_one(deploy: Deploy, death: Death) -> None:
    deploy.ask()
    assert deploy.run_build(Mishap("stepfunctions:StartExecution", death=death)).error == "Sandbox.Timedout"
    assert deploy.run_build().error == StillBuilding.__name__
    assert len(deploy.executions(BUILD)) == 1


def test_a_start_whose_answer_is_lost_is_one_build(deploy: Deploy) -> None:
    deploy.ask()
    deploy.run_build(Mishap("stepfunctions:StartExecution", fault=Kind.LOST))
    assert deploy.run_build().error == StillBuilding.__name__
    assert len(deploy.executions(BUILD)) == 1


def test_a_failure_of_another_kind_is_named_in_the_answer(deploy: Deploy) -> None:
    deploy.ask()
    told = deploy.answer({"error": "Sandbox.Timedout", "cause": "Task timed out"})
    assert told["Reason"] == "Sandbox.Timedout: Task timed out"


def test_an_execution_name_is_one_that_step_functions_takes() -> None:
    assert names.JOB_PATTERN.fullmatch(execution(TAG, "7f3b1c2d-0000-4000-8000-000000000001"))


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE", GONE])
def test_patience_ends_before_cloudformations(status: str) -> None:
    judged = {"now": NOW + PATIENCE_S, "since": NOW, "patience_s": PATIENCE_S}
    with pytest.raises(BuildFailed, match="still being built after 50 minutes"):
        judge(TAG, Status(name=status), **judged)


@pytest.mark.parametrize("status", ["RUNNING", GONE])
def test_within_the_patience_it_is_asked_again(status: str) -> None:
    with pytest.raises(StillBuilding):
        judge(TAG, Status(name=status), now=NOW + PATIENCE_S - 1, since=NOW, patience_s=PATIENCE_S)

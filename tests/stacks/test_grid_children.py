"""The children on Batch: what one may and needs, how many run at once and where, and which ends are tried again."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from contract import names
from contract.environments import ChildEnvironment
from contract.grid import ExitCode
from stacks.grid_settings import GridSettings
from stacks.parts.batch import RULES, vcpus
from tests.stacks.synth import logical_id, only, plain, resources
from tests.stacks.variations import MOST_GRID
from tools.synthesis import Synthesised, synthesise_once


def test_definition_and_submission_together_are_the_childs_environment(
    submissions: dict[str, Any], child: dict[str, Any]
) -> None:
    fixed = {one["Name"]: plain(one["Value"]) for one in child["ContainerProperties"]["Environment"]}
    for name in ("Array", "Single"):
        own = {one["Name"]: "1" for one in submissions[name]["Arguments"]["ContainerOverrides"]["Environment"]}
        assert not fixed.keys() & own.keys()
        read = ChildEnvironment.read(fixed | own)
        assert (read.deployment, read.home_region, read.first) == ("trainyard", "eu-central-1", 1)


def test_a_child_has_no_more_than_it_needs(child: dict[str, Any]) -> None:
    container = child["ContainerProperties"]
    assert child["PlatformCapabilities"] == ["FARGATE"]
    assert {one["Type"]: one["Value"] for one in container["ResourceRequirements"]} == {"VCPU": "0.25", "MEMORY": "512"}
    assert container["ReadonlyRootFilesystem"] is True
    assert container["User"] not in {"", "0", "root"}
    assert not container.get("Privileged", False)
    assert container["NetworkConfiguration"] == {"AssignPublicIp": "DISABLED"}
    assert "Secrets" not in container


def test_a_child_writes_to_the_log_of_the_contract(grid: dict[str, Any], child: dict[str, Any]) -> None:
    options = child["ContainerProperties"]["LogConfiguration"]["Options"]
    group = grid["Resources"][options["awslogs-group"]["Ref"]]["Properties"]
    assert (group["LogGroupName"], group["RetentionInDays"]) == (names.child_log_group("trainyard"), 30)
    assert child["ContainerProperties"]["LogConfiguration"]["LogDriver"] == "awslogs"
    assert (options["awslogs-region"], options["awslogs-stream-prefix"]) == ({"Ref": "AWS::Region"}, "child")


def test_a_child_has_its_own_role_and_what_starts_it_another(grid: dict[str, Any], child: dict[str, Any]) -> None:
    roles = {"JobRoleArn": "ChildRole", "ExecutionRoleArn": "ChildrenStartRole"}
    for field, begin in roles.items():
        assert child["ContainerProperties"][field] == {"Fn::GetAtt": [logical_id(grid, "AWS::IAM::Role", begin), "Arn"]}


def test_a_child_runs_on_the_platform_that_its_image_was_made_for(child: dict[str, Any]) -> None:
    container = child["ContainerProperties"]
    assert container["RuntimePlatform"] == {"CpuArchitecture": "X86_64", "OperatingSystemFamily": "LINUX"}
    assert container["FargatePlatformConfiguration"] == {"PlatformVersion": "1.4.0"}, "a newer one is a change"


def test_the_tasks_of_children_have_their_jobs_tags(child: dict[str, Any]) -> None:
    assert child["PropagateTags"] is True


def test_a_child_is_the_platforms_own_image(child: dict[str, Any]) -> None:
    image = plain(child["ContainerProperties"]["Image"])
    assert re.fullmatch(
        r"111122223333\.dkr\.ecr\.eu-central-1\.<AWS::URLSuffix>/trainyard/platform:grid-child-[0-9a-f]{32}", image
    )


def judged(code: int | None = None, status: str = "", reason: str = "") -> str:
    """What the rules say of an attempt's end; with no rule that fits Batch would try again."""

    def fits(pattern: str | None, value: str) -> bool:
        return pattern is None or re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), value) is not None

    for rule in RULES:
        if (
            fits(rule.get("onExitCode"), "" if code is None else str(code))
            and fits(rule.get("onStatusReason"), status)
            and fits(rule.get("onReason"), reason)
        ):
            return rule["action"]
    return "RETRY"


ENDED = "Essential container in task exited"


@pytest.mark.parametrize(
    ("code", "status", "action"),
    [
        (int(ExitCode.AGAIN), ENDED, "RETRY"),
        (137, ENDED, "RETRY"),
        (143, ENDED, "RETRY"),
        (1, ENDED, "RETRY"),
        (None, "Task failed to start", "RETRY"),
        (None, "Timeout waiting for network interface provisioning to complete.", "RETRY"),
        (None, "Your Spot Task was interrupted.", "RETRY"),
        (int(ExitCode.FINAL), ENDED, "EXIT"),
        (2, ENDED, "EXIT"),
        (int(ExitCode.DONE), ENDED, "EXIT"),
        (None, "Something that nobody has seen yet", "EXIT"),
    ],
)
def test_what_is_final_is_not_tried_again_and_what_is_not_is(code: int | None, status: str, action: str) -> None:
    assert judged(code, status) == action


def test_the_rules_are_those_of_the_definition_and_no_more_than_batch_takes(child: dict[str, Any]) -> None:
    strategy = child["RetryStrategy"]
    written = [{key[0].lower() + key[1:]: value for key, value in one.items()} for one in strategy["EvaluateOnExit"]]
    assert written == [dict(rule) for rule in RULES]
    assert len(written) <= 5
    assert strategy["Attempts"] == 10


def test_no_time_out_ends_a_child_for_good(child: dict[str, Any]) -> None:
    """Batch does not try again what ran out of time."""
    assert "Timeout" not in child


def test_a_queue_full_of_waiting_lines_is_no_misconfiguration(grid: dict[str, Any]) -> None:
    queue = only(grid, "AWS::Batch::JobQueue")
    assert "JobStateTimeLimitActions" not in queue
    assert (queue["JobQueueName"], queue["State"]) == (names.grid_queue("trainyard"), "ENABLED")


def test_as_many_children_run_at_once_as_the_settings_say(grid: dict[str, Any]) -> None:
    assert used(grid)["MaxvCpus"] == 1000 * 0.25
    assert used(grid)["Type"] == "FARGATE"


def test_children_run_in_private_subnets_and_nothing_comes_in(grid: dict[str, Any]) -> None:
    group = logical_id(grid, "AWS::EC2::SecurityGroup", "Children")
    for machines in resources(grid, "AWS::Batch::ComputeEnvironment").values():
        assert (machines["State"], machines["Type"]) == ("ENABLED", "MANAGED")
        assert machines["ComputeResources"]["SecurityGroupIds"] == [{"Fn::GetAtt": [group, "GroupId"]}]
        assert len(machines["ComputeResources"]["Subnets"]) == 3
        assert all("NodesSubnet" in json.dumps(one) for one in machines["ComputeResources"]["Subnets"])
    assert "SecurityGroupIngress" not in only(grid, "AWS::EC2::SecurityGroup")
    assert resources(grid, "AWS::EC2::SecurityGroupIngress") == {}


@pytest.mark.parametrize(("at_once", "enough"), [(1, 1), (4, 1), (10, 3), (1000, 250)])
def test_machines_are_never_fewer_than_children_may_run(at_once: int, enough: int) -> None:
    assert vcpus(at_once) == enough >= at_once * 0.25


def test_as_many_machines_are_there_as_the_settings_let_children_run(grid: dict[str, Any], varied: Synthesised) -> None:
    assert used(grid)["MaxvCpus"] == vcpus(GridSettings().limits.max_concurrent) == 250
    assert used(varied.template("grid"))["MaxvCpus"] == vcpus(MOST_GRID.max_concurrent) == 1


def test_where_children_run_can_be_changed_while_grids_run(grid: dict[str, Any]) -> None:
    """No environment changes its type, none goes, and only the queue, which Batch changes in place, says another."""
    other = synthesise_once(grid={"spot_children": True}).template("grid")
    (before,), (after,) = (resources(one, "AWS::Batch::JobQueue").items() for one in (grid, other))
    environments = [resources(one, "AWS::Batch::ComputeEnvironment") for one in (grid, other)]
    assert environments[0] == environments[1]
    assert before[0] == after[0]
    assert {key for key in before[1] if before[1][key] != after[1][key]} == {"ComputeEnvironmentOrder"}
    assert (used(grid)["Type"], used(other)["Type"]) == ("FARGATE", "FARGATE_SPOT")


def used(template: dict[str, Any]) -> dict[str, Any]:
    """The resources of the environment that the queue names."""
    (order,) = only(template, "AWS::Batch::JobQueue")["ComputeEnvironmentOrder"]
    name, _ = order["ComputeEnvironment"]["Fn::GetAtt"]
    found: dict[str, Any] = template["Resources"][name]["Properties"]["ComputeResources"]
    return found

"""The Grid stack: its machine, the children on Batch, the trainings' role, and what clears up after a bad end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from contract import names, tags
from contract.environments import ChildEnvironment, GridCleanupEnvironment, GridLimits
from contract.grid import Exit
from contract.timing import Timing
from stacks.diagram import GRID_PAGE, definition, page, transitions
from stacks.parts.batch import RULES
from stacks.parts.grid_machine import LONGEST_ROUND_S, longest_round_s
from stacks.settings import BadSettings, Settings
from tests.fakes.limits import beyond
from tests.stacks.synth import CONTEXT, Synthesised, plain, resources, synthesise

LIMITS = GridLimits(
    max_lines=10_000,
    max_concurrent=1000,
    submissions_per_second=1.0,
    max_hours=72.0,
    max_instances=16,
    max_volume_gb=2000,
    instance_types=("ml.*",),
)
YEAR_S = 365 * 86_400


@pytest.fixture(scope="module")
def template(deployment: Synthesised) -> dict[str, Any]:
    return deployment.template("grid")


@pytest.fixture(scope="module")
def machine(template: dict[str, Any]) -> dict[str, Any]:
    return definition(template)


@pytest.fixture(scope="module")
def submissions(machine: dict[str, Any]) -> dict[str, Any]:
    """The states inside of Submit."""
    states: dict[str, Any] = machine["States"]["Submit"]["ItemProcessor"]["States"]
    return states


@pytest.fixture(scope="module")
def child(template: dict[str, Any]) -> dict[str, Any]:
    (found,) = resources(template, "AWS::Batch::JobDefinition").values()
    return found


# The machine


def test_every_step_after_plan_that_fails_leads_to_stop(machine: dict[str, Any]) -> None:
    unguarded = [
        name
        for name in ("Submit", "Collect", "Report")
        if [(c["ErrorEquals"], c["Next"]) for c in machine["States"][name]["Catch"]] != [(["States.ALL"], "Stop")]
    ]
    assert unguarded == []


def test_every_way_to_failed_leads_through_stop_but_that_of_a_refused_plan(machine: dict[str, Any]) -> None:
    before = {name for name, state in machine["States"].items() if "Failed" in dict(transitions(state))}
    assert before == {"Plan", "Stop", "Tell"}
    to_tell = {name for name, state in machine["States"].items() if "Tell" in dict(transitions(state))}
    assert to_tell == {"Stop"}


def test_nothing_but_a_report_leads_to_done(machine: dict[str, Any]) -> None:
    assert {name for name, state in machine["States"].items() if "Done" in dict(transitions(state))} == {"Report"}


def test_nothing_runs_before_the_plan_is_whole(machine: dict[str, Any]) -> None:
    assert machine["StartAt"] == "Plan"
    assert [(c["ErrorEquals"], c["Next"]) for c in machine["States"]["Plan"]["Catch"]] == [(["States.ALL"], "Failed")]


def test_the_first_error_survives_a_stop_that_fails(machine: dict[str, Any]) -> None:
    (catch,) = machine["States"]["Stop"]["Catch"]
    assert "$exists($problem.error) ? $problem.error" in catch["Assign"]["problem"]
    (told,) = machine["States"]["Tell"]["Catch"]
    assert "Assign" not in told


def test_missing_lines_are_submitted_again_in_a_round_of_their_own(machine: dict[str, Any]) -> None:
    (again,) = machine["States"]["Decide"]["Choices"]
    assert again["Next"] == "Submit"
    assert again["Assign"] == {"round": "{% $round + 1 %}", "arrays": "{% $collected.arrays %}"}
    assert machine["States"]["Decide"]["Default"] == "Report"


def test_an_array_that_fails_fails_no_grid(submissions: dict[str, Any]) -> None:
    for name in ("Array", "Single"):
        (catch,) = submissions[name]["Catch"]
        assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "Over"), name
        assert "$substring($cause" in catch["Output"], name
        assert submissions[name]["Next"] == "Over", name


def test_a_single_line_is_no_array(submissions: dict[str, Any]) -> None:
    assert "ArrayProperties" not in submissions["Single"]["Arguments"]
    assert submissions["Array"]["Arguments"]["ArrayProperties"] == {"Size": "{% $states.input.size %}"}
    (one,) = submissions["Size"]["Choices"]
    assert (one["Condition"], one["Next"], submissions["Size"]["Default"]) == (
        "{% $states.input.size = 1 %}",
        "Single",
        "Array",
    )


@pytest.mark.parametrize("name", ["Array", "Single"])
def test_what_is_submitted_is_what_batch_takes(submissions: dict[str, Any], name: str) -> None:
    """As Step Functions sends it: names begin with small letters there."""
    shape: Any = botocore.session.get_session().get_service_model("batch").operation_model("SubmitJob").input_shape
    given = submissions[name]["Arguments"]
    asked: dict[str, Any] = {
        "jobName": "grid-" + "x" * 80 + "-r3-90000",
        "jobQueue": given["JobQueue"],
        "jobDefinition": given["JobDefinition"],
        "containerOverrides": {
            "environment": [
                {"name": one["Name"], "value": one["Value"]} for one in given["ContainerOverrides"]["Environment"]
            ]
        },
        "tags": given["Tags"],
    }
    if "ArrayProperties" in given:
        asked["arrayProperties"] = {"size": 10_000}
    assert set(given) == {key[0].upper() + key[1:] for key in asked}
    assert not ParamValidator().validate(asked, shape).has_errors()
    assert beyond(shape, asked) == ""
    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}", asked["jobName"])


def test_jobs_carry_what_stop_finds_them_by(submissions: dict[str, Any]) -> None:
    for name in ("Array", "Single"):
        assert submissions[name]["Arguments"]["Tags"] == {
            tags.DEPLOYMENT: "trainyard",
            tags.GRID: "{% $plan.grid %}",
            tags.EXECUTION: "{% $states.context.Execution.Id %}",
        }


def test_a_definition_with_a_number_is_never_submitted(submissions: dict[str, Any], child: dict[str, Any]) -> None:
    """Its number is gone after the next deploy, and a grid may outlive that."""
    for name in ("Array", "Single"):
        assert submissions[name]["Arguments"]["JobDefinition"] == names.child_definition("trainyard")
    assert child["JobDefinitionName"] == names.child_definition("trainyard")


def test_the_machine_waits_for_its_definition(template: dict[str, Any]) -> None:
    """Nothing in it refers to the one that is known by name."""
    (machine,) = [one for one in template["Resources"].values() if one["Type"] == "AWS::StepFunctions::StateMachine"]
    (definition_id,) = resources(template, "AWS::Batch::JobDefinition")
    assert definition_id in machine["DependsOn"]


def test_every_task_and_the_machine_have_a_time_out_and_a_year_is_enough(
    machine: dict[str, Any], submissions: dict[str, Any]
) -> None:
    tasks = [one for one in (*machine["States"].values(), *submissions.values()) if one["Type"] == "Task"]
    assert len(tasks) == 7
    assert all(one["TimeoutSeconds"] for one in tasks)
    assert 3 * submissions["Array"]["TimeoutSeconds"] < machine["TimeoutSeconds"] < YEAR_S


def test_a_round_is_as_long_as_its_lines_need_one_after_the_other() -> None:
    timing = Timing()
    one = longest_round_s(replace(LIMITS, max_lines=10, max_concurrent=10), timing)
    assert one == 72 * 3600 + timing.training_patience_s + 86_400
    assert longest_round_s(LIMITS, timing) > 10 * 72 * 3600
    assert longest_round_s(replace(LIMITS, max_lines=100_000, max_concurrent=1), timing) == LONGEST_ROUND_S


def test_waiting_for_trainings_never_fills_the_history(machine: dict[str, Any]) -> None:
    """25,000 events are the most, and a try that fails is five."""
    waits = machine["States"]["Collect"]["Retry"][0]
    assert waits["ErrorEquals"] == ["StillTraining"]
    assert 5 * waits["MaxAttempts"] < 20_000
    assert waits["MaxAttempts"] * waits["MaxDelaySeconds"] >= LIMITS.max_hours * 3600


def test_a_stop_is_asked_again_whatever_the_error(machine: dict[str, Any]) -> None:
    (again,) = machine["States"]["Stop"]["Retry"]
    assert again["ErrorEquals"] == ["States.ALL"]
    assert again["MaxAttempts"] * again["IntervalSeconds"] >= Timing().grid_stop_patience_s


def test_the_page_of_the_grid_machine_is_as_it_is(machine: dict[str, Any]) -> None:
    assert GRID_PAGE.read_text() == page(machine, "Grid", "grid_machine"), "run `python -m stacks.diagram`"


def test_no_expression_is_of_the_other_query_language(machine: dict[str, Any]) -> None:
    text = json.dumps(machine)
    assert "$$." not in text
    assert not [word for word in ('.$"', "ResultPath", "TimeoutSecondsPath", "InputPath", "OutputPath") if word in text]


def test_a_divided_timing_changes_nothing_but_what_waits(machine: dict[str, Any], tmp_path: Path) -> None:
    other = definition(synthesise(tmp_path, timing=asdict(Timing().divided(20.0))).template("grid"))
    different = {
        (name, key)
        for name, state in machine["States"].items()
        for key in state
        if state[key] != other["States"][name][key]
    }
    assert different == {("Submit", "ItemProcessor"), ("Collect", "Retry"), ("Stop", "Retry")}
    assert other["States"]["Stop"]["Retry"][0]["IntervalSeconds"] == 2
    assert {key for key in machine if machine[key] != other[key]} == {"States", "TimeoutSeconds"}


# The children


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


def test_a_child_writes_to_the_log_of_the_contract(template: dict[str, Any], child: dict[str, Any]) -> None:
    options = child["ContainerProperties"]["LogConfiguration"]["Options"]
    group = template["Resources"][options["awslogs-group"]["Ref"]]["Properties"]
    assert (group["LogGroupName"], group["RetentionInDays"]) == (names.child_log_group("trainyard"), 30)


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
        (int(Exit.AGAIN), ENDED, "RETRY"),
        (137, ENDED, "RETRY"),
        (143, ENDED, "RETRY"),
        (1, ENDED, "RETRY"),
        (None, "Task failed to start", "RETRY"),
        (None, "Your Spot Task was interrupted.", "RETRY"),
        (int(Exit.FINAL), ENDED, "EXIT"),
        (2, ENDED, "EXIT"),
        (int(Exit.DONE), ENDED, "EXIT"),
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


def test_a_queue_full_of_waiting_lines_is_no_misconfiguration(template: dict[str, Any]) -> None:
    (queue,) = resources(template, "AWS::Batch::JobQueue").values()
    assert "JobStateTimeLimitActions" not in queue
    assert queue["JobQueueName"] == names.grid_queue("trainyard")


def test_as_many_children_run_at_once_as_the_settings_say(template: dict[str, Any]) -> None:
    (machines,) = resources(template, "AWS::Batch::ComputeEnvironment").values()
    assert machines["ComputeResources"]["MaxvCpus"] == 1000 * 0.25
    assert machines["ComputeResources"]["Type"] == "FARGATE"


def test_children_run_in_private_subnets_and_nothing_comes_in(template: dict[str, Any]) -> None:
    (machines,) = resources(template, "AWS::Batch::ComputeEnvironment").values()
    assert len(machines["ComputeResources"]["Subnets"]) == 3
    assert all("NodesSubnet" in json.dumps(one) for one in machines["ComputeResources"]["Subnets"])
    (group,) = resources(template, "AWS::EC2::SecurityGroup").values()
    assert "SecurityGroupIngress" not in group
    assert resources(template, "AWS::EC2::SecurityGroupIngress") == {}


def test_a_home_without_a_network_is_refused() -> None:
    regions = [{"region": "eu-central-1"}]
    with pytest.raises(BadSettings, match="regions has no cidr for the home region eu-central-1"):
        Settings.parse(CONTEXT["trainyard"] | {"regions": regions})


# The roles


def trusted(role: Mapping[str, Any]) -> tuple[str, Any]:
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    return statement["Principal"]["Service"], statement["Condition"]


def test_every_role_of_the_grids_is_for_its_service_in_this_account_alone(template: dict[str, Any]) -> None:
    found = resources(template, "AWS::IAM::Role")
    own = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    for begin, service in (
        ("TrainingRole", "sagemaker.amazonaws.com"),
        ("ChildRole", "ecs-tasks.amazonaws.com"),
        ("ChildrenStartRole", "ecs-tasks.amazonaws.com"),
        ("GridRole", "states.amazonaws.com"),
    ):
        (role,) = [one for name, one in found.items() if name.startswith(begin)]
        assert trusted(role) == (service, own), begin


def test_the_trainings_role_has_the_contracts_name(template: dict[str, Any]) -> None:
    found = resources(template, "AWS::IAM::Role")
    (role,) = [one for name, one in found.items() if name.startswith("TrainingRole")]
    assert role["RoleName"] == names.training_role("trainyard", "eu-central-1")


def test_nobody_but_a_child_creates_trainings_or_passes_their_role(template: dict[str, Any]) -> None:
    may = {
        policy["Roles"][0]["Ref"].rstrip("0123456789ABCDEF")
        for policy in resources(template, "AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if {"sagemaker:CreateTrainingJob", "iam:PassRole"} & set(listed(statement["Action"]))
    }
    assert may == {"ChildRole"}


def test_tags_are_set_at_creation_alone(template: dict[str, Any]) -> None:
    (statement,) = [
        one
        for policy in resources(template, "AWS::IAM::Policy").values()
        for one in policy["PolicyDocument"]["Statement"]
        if "sagemaker:AddTags" in listed(one["Action"])
    ]
    assert statement["Condition"]["StringEquals"]["sagemaker:TaggingAction"] == "CreateTrainingJob"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# Bad ends


def test_every_end_but_a_good_one_is_told_to_the_grids_own_queue(template: dict[str, Any]) -> None:
    (rule,) = resources(template, "AWS::Events::Rule").values()
    (machine_id,) = resources(template, "AWS::StepFunctions::StateMachine")
    assert rule["EventPattern"]["detail"] == {
        "stateMachineArn": [{"Ref": machine_id}],
        "status": ["FAILED", "TIMED_OUT", "ABORTED"],
    }
    (target,) = rule["Targets"]
    assert plain(target["Arn"]).startswith("<GridQueue")
    assert target["DeadLetterConfig"]


def test_a_message_comes_back_more_often_than_the_patience_of_a_stop_needs(template: dict[str, Any]) -> None:
    (queue,) = [one for one in resources(template, "AWS::SQS::Queue").values() if "RedrivePolicy" in one]
    timing = Timing()
    looks = timing.grid_stop_patience_s / timing.grid_collect_again_s
    assert queue["RedrivePolicy"]["maxReceiveCount"] > looks
    (function,) = [
        one
        for one in resources(template, "AWS::Lambda::Function").values()
        if one["Handler"].startswith("grid_cleanup")
    ]
    assert queue["VisibilityTimeout"] >= 6 * function["Timeout"]


def test_the_cleanup_has_everything_that_it_imports(template: dict[str, Any]) -> None:
    (function,) = [
        one
        for one in resources(template, "AWS::Lambda::Function").values()
        if one["Handler"].startswith("grid_cleanup")
    ]
    variables = {name: plain(value) for name, value in function["Environment"]["Variables"].items()}
    environment = GridCleanupEnvironment.read(variables)
    assert environment.queue == names.grid_queue("trainyard")
    assert environment.machine.endswith(f":stateMachine:{names.grid_machine('trainyard')}")

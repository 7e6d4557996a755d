"""The Builds stack on an app of its own: its machine, its project, its rights, and what scanners say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore.validate import ParamValidator

from contract import keys, names
from contract.image_environments import ImageBuildEnvironment
from contract.images import AMD64, ARM64, ORDER, PLATFORMS
from localaws.limits import beyond
from localaws.services.jsonata import evaluate
from tests.stacks.builds import REGIONS, WIDE, built
from tests.stacks.synth import Right, function, logical_id, only, rights, variables
from tools.diagrams import transitions
from tools.synthesis import Synthesised, definition

BUCKET = "arn:aws:s3:::yard-home-111122223333-eu-central-1"


def template_of(folder: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads((folder / "yard-builds.template.json").read_text())
    return parsed


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {name: tmp_path_factory.mktemp(name) for name in ("default", "wide")}
    built(made["default"])
    built(made["wide"], **WIDE)
    return made


@pytest.fixture(scope="module")
def template(folders: dict[str, Path]) -> dict[str, Any]:
    return template_of(folders["default"])


@pytest.fixture(scope="module")
def machine(template: dict[str, Any]) -> dict[str, Any]:
    return definition(template)


@pytest.fixture(scope="module")
def project(template: dict[str, Any]) -> dict[str, Any]:
    return only(template, "AWS::CodeBuild::Project")


def granted(template: dict[str, Any], role: str) -> dict[str, Right]:
    """What a role may, by the statements' names."""
    return {one.name: one for one in rights(template, role)}


# the machine


def test_nothing_is_built_before_the_request_was_checked(machine: dict[str, Any]) -> None:
    assert machine["StartAt"] == "Check"
    assert {name for name, state in machine["States"].items() if ("Build", "") in transitions(state)} <= {"Needed"}
    assert "Build" not in {target for target, _ in transitions(machine["States"]["Check"])}


def test_every_step_that_fails_ends_in_failed_with_its_reason(machine: dict[str, Any]) -> None:
    catches = {
        name: [(c["ErrorEquals"], c["Next"]) for c in s.get("Catch", [])] for name, s in machine["States"].items()
    }
    assert catches["Check"] == catches["Collect"] == [(["States.ALL"], "Failed")]
    assert catches["Build"] == [(["States.ALL"], "Collect")]


def test_what_stands_already_is_collected_without_a_build(machine: dict[str, Any]) -> None:
    needed = machine["States"]["Needed"]
    assert [choice["Next"] for choice in needed["Choices"]] == ["Collect"]
    assert needed["Default"] == "Build"


def test_a_failed_build_is_never_built_again_by_itself(machine: dict[str, Any]) -> None:
    named = {error for retry in machine["States"]["Build"]["Retry"] for error in retry["ErrorEquals"]}
    assert not named & {"States.ALL", "States.TaskFailed", "States.Timeout"}
    assert all(error.startswith("CodeBuild.") for error in named)


def test_a_git_host_that_is_away_is_waited_for_a_day_and_nothing_else_is(machine: dict[str, Any]) -> None:
    retries = machine["States"]["Check"]["Retry"]
    (away,) = [one for one in retries if one["ErrorEquals"] == ["HostAway"]]
    pauses = [min(away["IntervalSeconds"] * away["BackoffRate"] ** n, away["MaxDelaySeconds"]) for n in range(144)]
    assert away["MaxAttempts"] == len(pauses)
    assert 23 * 3600 < sum(pauses) <= 24 * 3600
    assert max(pauses) == 600
    assert [one for one in retries if one is not away and {"HostAway", "States.ALL"} & {*one["ErrorEquals"]}] == []
    assert {name for name, one in machine["States"].items() if "HostAway" in json.dumps(one.get("Retry", []))} == {
        "Check"
    }


def test_the_machine_lasts_for_its_longest_build_behind_the_longest_wait_for_a_host(machine: dict[str, Any]) -> None:
    assert machine["TimeoutSeconds"] >= machine["States"]["Build"]["TimeoutSeconds"] + 24 * 3600


def test_no_machine_but_that_of_peoples_builds_waits_for_a_git_host(deployment: Synthesised) -> None:
    """The contexts of the platform's own images come from no host, and a job whose host is away is refused at once."""
    waiting = [stack for stack in deployment.stacks if "HostAway" in deployment.text(stack.removeprefix("trainyard-"))]
    assert waiting == ["trainyard-builds"]


def test_a_build_gets_one_order_as_data_and_a_token_that_makes_a_repeat_the_same_build(machine: dict[str, Any]) -> None:
    build = machine["States"]["Build"]
    assert build["Resource"].endswith(":states:::codebuild:startBuild.sync")
    assert build["Arguments"]["EnvironmentVariablesOverride"] == [
        {"Name": ORDER, "Type": "PLAINTEXT", "Value": "{% $plan.order %}"}
    ]
    assert "$states.context.Execution.Name" in build["Arguments"]["IdempotencyToken"]


def overrides(machine: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """What a plan makes of the arguments that depend on its platform."""
    given = machine["States"]["Build"]["Arguments"]
    names = ("EnvironmentTypeOverride", "ImageOverride")
    return {name: evaluate(given[name].removeprefix("{%").removesuffix("%}"), {"plan": plan}) for name in names}


def test_a_build_for_arm64_has_a_machine_with_such_processors_and_its_image(machine: dict[str, Any]) -> None:
    assert overrides(machine, {"platform": ARM64}) == {
        "EnvironmentTypeOverride": "ARM_CONTAINER",
        "ImageOverride": "aws/codebuild/amazonlinux-aarch64-standard:3.0",
    }


@pytest.mark.parametrize("plan", [{"platform": AMD64}, {}], ids=["amd64", "a plan of the platform's own images"])
def test_any_other_build_has_the_machine_of_the_project(
    machine: dict[str, Any], project: dict[str, Any], plan: dict[str, str]
) -> None:
    environment = project["Environment"]
    assert overrides(machine, plan) == {
        "EnvironmentTypeOverride": environment["Type"],
        "ImageOverride": environment["Image"],
    }


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_starts_a_build_is_what_codebuild_takes(machine: dict[str, Any], platform: str) -> None:
    """As Step Functions sends it: names begin with small letters there."""
    shape: Any = botocore.session.get_session().get_service_model("codebuild").operation_model("StartBuild").input_shape

    def sent(value: Any) -> Any:
        if isinstance(value, dict):
            return {name[0].lower() + name[1:]: sent(one) for name, one in value.items()}
        return [sent(one) for one in value] if isinstance(value, list) else value

    asked = sent({**machine["States"]["Build"]["Arguments"], **overrides(machine, {"platform": platform})})
    assert not ParamValidator().validate(asked, shape).has_errors()
    assert beyond(shape, asked) == ""
    assert ParamValidator().validate({**asked, "environmentVariables": []}, shape).has_errors()


def test_the_machine_outlives_its_longest_build(machine: dict[str, Any], project: dict[str, Any]) -> None:
    longest = (project["TimeoutInMinutes"] + project["QueuedTimeoutInMinutes"]) * 60
    assert longest < machine["States"]["Build"]["TimeoutSeconds"] < machine["TimeoutSeconds"]


# the project


def test_a_build_may_wait_for_an_hour_and_last_for_another(project: dict[str, Any]) -> None:
    assert (project["QueuedTimeoutInMinutes"], project["TimeoutInMinutes"]) == (60, 60)


def test_a_build_runs_the_script_of_the_asset_and_nothing_else(
    project: dict[str, Any], folders: dict[str, Path]
) -> None:
    specification = yaml.safe_load(project["Source"]["BuildSpec"])
    assert specification["phases"] == {"build": {"commands": ["bash build.sh"]}}
    assets = json.loads((folders["default"] / "yard-builds.assets.json").read_text())["files"].values()
    (folder,) = (Path(one["source"]["path"]) for one in assets if one["displayName"].startswith("Build/Script"))
    assert {file.name for file in folder.iterdir()} == {"build.sh", "order.py", "own.py", "unpack.py", "contract"}
    assert not list(folder.rglob("*.pyc"))


def test_builds_have_docker_and_no_more_than_they_need(template: dict[str, Any], project: dict[str, Any]) -> None:
    environment = project["Environment"]
    assert environment["PrivilegedMode"] is True
    assert environment["ComputeType"] == "BUILD_GENERAL1_SMALL"
    assert environment["Image"].startswith("aws/codebuild/")
    assert "EnvironmentVariables" not in environment
    assert not {"VpcConfig", "SecondarySources"} & project.keys()
    assert (project["Source"]["Type"], project["Artifacts"], project["Cache"]) == (
        "S3",
        {"Type": "NO_ARTIFACTS"},
        {"Type": "NO_CACHE"},
    )
    assert project["ServiceRole"] == {"Fn::GetAtt": [logical_id(template, "AWS::IAM::Role", "BuildRole"), "Arn"]}


def test_the_log_is_the_deployments_own(template: dict[str, Any], project: dict[str, Any]) -> None:
    log = project["LogsConfig"]["CloudWatchLogs"]
    assert log["Status"] == "ENABLED"
    group = template["Resources"][log["GroupName"]["Ref"]]["Properties"]
    assert group == {**group, "LogGroupName": names.build_log_group("yard"), "RetentionInDays": 30}


def test_the_cache_goes_with_its_stack_and_its_tags_move(template: dict[str, Any]) -> None:
    (cache,) = (one for one in template["Resources"].values() if one["Type"] == "AWS::ECR::Repository")
    assert cache["DeletionPolicy"] == "Delete"
    assert cache["Properties"]["RepositoryName"] == names.build_cache("yard")
    assert cache["Properties"]["ImageTagMutability"] == "MUTABLE"
    (rule,) = json.loads(cache["Properties"]["LifecyclePolicy"]["LifecyclePolicyText"])["rules"]
    assert rule["selection"] == {
        "tagStatus": "any",
        "countType": "sinceImagePushed",
        "countNumber": 30,
        "countUnit": "days",
    }


# rights


def test_a_build_writes_the_deployments_repositories_and_no_others(template: dict[str, Any]) -> None:
    may = granted(template, "Build")
    assert may["PushImages"].resources == ("arn:aws:ecr:*:111122223333:repository/yard/images",)
    assert may["PushImages"].conditions == {"StringEquals": {"aws:RequestedRegion": list(REGIONS)}}
    cache = "arn:aws:ecr:eu-central-1:111122223333:repository/yard/build-cache"
    assert may["UseTheBuildCache"].resources == (cache,)
    writing = {name for name, one in may.items() if {"ecr:PutImage", "ecr:InitiateLayerUpload"} & {*one.actions}}
    assert writing == {"PushImages", "UseTheBuildCache"}


def test_a_build_writes_nothing_to_s3_and_reads_contexts_only(template: dict[str, Any]) -> None:
    s3 = {
        (action, resource)
        for one in rights(template, "Build")
        for action in one.actions
        for resource in one.resources
        if action.startswith("s3:")
    }
    about_the_source = {"s3:GetBucketAcl", "s3:GetBucketLocation"}
    assert {action for action, _ in s3} == {"s3:GetObject", "s3:GetObjectVersion"} | about_the_source
    places = {place for _, place in s3 if "cdk-" not in place}
    assert places == {f"{BUCKET}/{keys.UPLOADS}*", f"{BUCKET}/{keys.ANY_CONTEXT}"}


def test_the_function_changes_nothing_but_its_log_and_the_contexts_that_it_fetched(template: dict[str, Any]) -> None:
    actions = {action for one in rights(template, "ImageBuild") for action in one.actions}
    reading = ("Get", "BatchGet", "BatchCheck", "Describe", "List")
    changing = {action for action in actions if not action.split(":")[1].startswith(reading)}
    assert changing == {"logs:CreateLogStream", "logs:PutLogEvents", "s3:PutObject"}
    assert granted(template, "ImageBuild")["KeepContexts"].resources == (f"{BUCKET}/{keys.ANY_CONTEXT}",)


def test_the_machine_runs_its_own_project_and_function_only(template: dict[str, Any]) -> None:
    may = granted(template, "Images")
    assert set(may) == {"InvokeStepFunctions", "RunBuilds", "ManageTheSyncRule"}
    assert may["RunBuilds"].resources == ("arn:aws:codebuild:eu-central-1:111122223333:project/yard-build",)
    assert {*may["RunBuilds"].actions} == {f"codebuild:{it}" for it in ("StartBuild", "StopBuild", "BatchGetBuilds")}
    (rule,) = may["ManageTheSyncRule"].resources
    assert rule.endswith(":rule/StepFunctionsGetEventForCodeBuildStartBuildRule")


@pytest.mark.parametrize("name", ["default", "wide"])
def test_nothing_is_allowed_on_everything_but_asking_for_a_password(folders: dict[str, Path], name: str) -> None:
    wide = [one.actions for one in rights(template_of(folders[name])) if "*" in one.resources]
    assert wide == [("ecr:GetAuthorizationToken",)]


def test_settings_add_no_more_than_reading(folders: dict[str, Path]) -> None:
    added = {
        action
        for one in rights(template_of(folders["wide"]))
        if one.name in {"ReadData", "ListData", "PullImagesToCopy", "PullBaseImages"}
        for action in one.actions
    }
    assert all(action.split(":")[1].startswith(("Get", "List", "BatchGet", "BatchCheck")) for action in added)


def test_a_region_without_known_containers_deploys_all_the_same(tmp_path: Path) -> None:
    built(tmp_path, home="mx-central-1")
    template = template_of(tmp_path)
    assert "PullBaseImages" not in {one.name for one in rights(template)}
    assert ImageBuildEnvironment.read(variables(function(template, "image_build"))).base_account == ""


def test_the_functions_environment_is_what_it_reads(template: dict[str, Any]) -> None:
    environment = ImageBuildEnvironment.read(variables(function(template, "image_build")))
    assert environment.base_account == "763104351884"
    assert environment.regions == REGIONS
    assert environment.bucket == "yard-home-111122223333-eu-central-1"

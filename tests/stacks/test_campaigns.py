"""With `campaigns` and `watch` there is a stack that starts executions and nothing else; without them nothing says a word of it."""

from __future__ import annotations

import json
import random
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from moto.events.models import EventPattern

from app import build
from contract.campaigns import STARTS_FILE, Campaign, Starts, Watch
from contract.codec import decode
from contract.timing import Timing
from stacks.settings import BLOCK, Settings
from tests.stacks.campaigns import (
    A_DAY_S,
    AROUND,
    AWAY,
    CAMPAIGNS,
    GRID,
    HOME,
    HOME_BUCKET,
    JOB,
    SEARCH,
    THIRD,
    WATCH,
    campaign,
)
from tests.stacks.synth import (
    ROLE_CHARACTERS,
    artifacts,
    every,
    function,
    logical_id,
    only,
    plain,
    resources,
    rights,
    size,
    variables,
)
from tools.synthesis import CONTEXT, Synthesised, masked, synthesise, synthesise_once


@pytest.fixture(scope="module")
def bare() -> Synthesised:
    """The same deployment, where nothing starts by itself."""
    return synthesise_once(**AROUND)


@pytest.fixture(scope="module")
def started() -> Synthesised:
    return synthesise_once(**AROUND, campaigns=CAMPAIGNS, watch=WATCH)


@pytest.fixture(scope="module")
def template(started: Synthesised) -> dict[str, Any]:
    return started.template("campaigns")


@pytest.fixture(scope="module")
def only_watched() -> dict[str, Any]:
    """The template of a deployment with a watch and no campaign."""
    return synthesise_once(**AROUND, watch=WATCH).template("campaigns")


@pytest.fixture(scope="module")
def only_uploaded() -> dict[str, Any]:
    """The template of a deployment with campaigns and no watch."""
    return synthesise_once(**AROUND, campaigns=CAMPAIGNS).template("campaigns")


def resources_of(stack: dict[str, Any]) -> dict[str, str]:
    return {name: masked(json.dumps(one)) for name, one in stack["Resources"].items()}


def granted(template: dict[str, Any], role: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Actions and resources of a role, by the statement's name."""
    return {one.name: (one.actions, one.resources) for one in rights(template, role)}


def executions(*patterns: str) -> tuple[str, ...]:
    return tuple(f"arn:aws:states:{HOME}:111122223333:execution:trainyard-{one}" for one in patterns)


def machines(*kinds: str) -> tuple[str, ...]:
    return tuple(f"arn:aws:states:{HOME}:111122223333:stateMachine:trainyard-{one}" for one in kinds)


# The switch


def test_without_the_settings_there_is_no_stack_and_no_word_of_it(deployment: Synthesised, bare: Synthesised) -> None:
    for each in (deployment, bare):
        assert "trainyard-campaigns" not in each.stacks
        words = ("Starter", "BranchWatch", "Uploaded-", "ForwardUploads", "EventBridgeConfiguration")
        text = json.dumps([one["Resources"] for one in each.stacks.values()])
        assert [word for word in words if word in text] == []


def test_the_settings_change_nothing_that_stands_but_the_buckets_events_and_their_forwarding(
    bare: Synthesised, started: Synthesised
) -> None:
    assert started.stacks.keys() - bare.stacks.keys() == {"trainyard-campaigns"}
    changed = {
        f"{stack.removeprefix('trainyard-')}/{name}"
        for stack, one in bare.stacks.items()
        if stack != "trainyard-dashboard"  # which shows its alarm and its function
        for name in resources_of(one).keys() | resources_of(started.stacks[stack]).keys()
        if resources_of(one).get(name) != resources_of(started.stacks[stack]).get(name)
    }
    region = started.template(f"region-{AWAY}")
    forwarding = [name for name in region["Resources"] if name.startswith(("ForwardUploads", "Uploaded"))]
    bucket = logical_id(started.template("foundation"), "AWS::S3::Bucket", "Home")
    assert changed == {f"foundation/{bucket}", *(f"region-{AWAY}/{name}" for name in forwarding)}
    assert len(forwarding) == 3, "a role, its policy and a rule"


@pytest.mark.parametrize(
    ("changes", "sends"),
    [
        ({}, False),
        ({"watch": WATCH}, False),
        ({"campaigns": {"near": CAMPAIGNS["near"]}}, False),
        ({"campaigns": {"drive-eu": CAMPAIGNS["drive-eu"]}}, True),
    ],
    ids=["nothing", "a watch", "another bucket", "the home bucket"],
)
def test_the_home_bucket_sends_events_only_where_a_campaign_is_about_it(changes: dict[str, Any], sends: bool) -> None:
    home = only(synthesise_once(**AROUND, **changes).template("foundation"), "AWS::S3::Bucket", "Home")
    found = home.get("NotificationConfiguration")
    assert found == ({"EventBridgeConfiguration": {"EventBridgeEnabled": True}} if sends else None)


def test_it_stands_behind_what_it_starts_and_goes_first(started: Synthesised) -> None:
    needed = artifacts(started)["trainyard-campaigns"]["dependencies"]
    assert {f"trainyard-{one}" for one in ("foundation", "reaper", "builds", "workflow", "grid", "search")} <= set(
        needed
    )
    assert {f"trainyard-region-{one}" for one in (HOME, AWAY, THIRD)} <= set(needed)
    for name, one in artifacts(started).items():
        assert "trainyard-campaigns" not in one.get("dependencies", []), name


def test_to_take_it_out_ends_nothing_of_what_runs(template: dict[str, Any]) -> None:
    """Its function goes with it, and every other stack is deleted later, after a drain."""
    assert [name for name, one in template["Resources"].items() if one["Type"] == "Custom::Drain"] == []


def test_nothing_of_a_watch_is_there_without_one(only_uploaded: dict[str, Any]) -> None:
    kinds = {one["Type"] for one in only_uploaded["Resources"].values()}
    assert "AWS::Scheduler::Schedule" not in kinds
    assert [one["Handler"] for one in resources(only_uploaded, "AWS::Lambda::Function").values()] == [
        "starter.handler.handler"
    ]
    assert "build" not in json.dumps(granted(only_uploaded, "Starter"))


def test_without_a_campaign_the_starter_starts_nothing_and_reads_no_bucket(only_watched: dict[str, Any]) -> None:
    assert resources(only_watched, "AWS::Events::Rule") == {}
    actions = {action for one in rights(only_watched, "Starter") for action in one.actions}
    assert not {one for one in actions if one.startswith("s3:") or one == "states:StartExecution"}


# What is seen


def patterns(template: dict[str, Any]) -> dict[str, EventPattern]:
    """The rules' patterns, as EventBridge gets them, by the campaign."""
    found = {}
    for name, one in resources(template, "AWS::Events::Rule").items():
        text = json.dumps(one["EventPattern"])
        home = json.dumps(one["EventPattern"]["detail"]["bucket"]["name"][0])
        if home.startswith("{"):
            text = text.replace(home, json.dumps(HOME_BUCKET))
        found[name] = EventPattern(text, json.loads(text))
    return found


def matched(template: dict[str, Any], bucket: str, key: str, **changes: str) -> list[str]:
    """The rules that see this upload."""
    event: Any = {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {"bucket": {"name": bucket}, "object": {"key": key, "size": 5}, "reason": "PutObject"},
        **changes,
    }
    return [name for name, pattern in patterns(template).items() if pattern.matches_event(event)]


@pytest.mark.parametrize(
    ("bucket", "key", "seen"),
    [
        (HOME_BUCKET, "uploads/drive-eu/monday/_READY", ["Uploadeddriveeu"]),
        (HOME_BUCKET, "uploads/drive-eu/_READY", ["Uploadeddriveeu"]),
        (HOME_BUCKET, "uploads/drive-eu/a/b/c/x_READY", ["Uploadeddriveeu"]),
        ("imagenet", "near/a.done", ["Uploadednear"]),
        ("laion", "far/a/_READY", ["Uploadedfar"]),
        (HOME_BUCKET, "uploads/drive-eu/monday/data.tar", []),
        (HOME_BUCKET, "uploads/drive-eu/monday/_READY.tmp", []),
        (HOME_BUCKET, "uploads/drive-us/monday/_READY", []),
        (HOME_BUCKET, "jobs/uploads/drive-eu/_READY", []),
        (HOME_BUCKET, "Uploads/drive-eu/_READY", []),
        ("imagenet", "uploads/drive-eu/monday/_READY", []),
        ("imagenet", "near/a_done", []),
        ("laion-2", "far/a/_READY", []),
    ],
)
def test_a_rule_sees_the_uploads_of_its_campaign_and_no_other(
    template: dict[str, Any], bucket: str, key: str, seen: list[str]
) -> None:
    found = matched(template, bucket, key)
    assert [name.rstrip("0123456789ABCDEF") for name in found] == seen


@pytest.mark.parametrize(
    "changes",
    [{"source": "team.s3"}, {"detail-type": "Object Deleted"}, {"detail-type": "Object Tags Added"}],
    ids=["a stranger's event", "a delete", "a tag"],
)
def test_a_rule_sees_nothing_but_s3s_own_events_of_writes(template: dict[str, Any], changes: dict[str, str]) -> None:
    assert matched(template, HOME_BUCKET, "uploads/drive-eu/monday/_READY", **changes) == []


def test_a_rule_sees_exactly_what_the_function_takes_for_the_campaigns(template: dict[str, Any]) -> None:
    chance, seen = random.Random(7), 0
    campaigns = Starts(
        campaigns={
            name: Campaign(bucket=one.get("bucket", ""), prefix=one["prefix"], suffix=one["suffix"], given={})
            for name, one in CAMPAIGNS.items()
        }
    ).at(HOME_BUCKET)
    rules = patterns(template)
    begins, ends = ["uploads/drive-eu/", "uploads/", "near/", "far/", "x/near/", ""], ["_READY", ".done", "_READ", ""]
    for _ in range(3000):
        key = (
            chance.choice(begins)
            + "".join(chance.choices(["a", "/", "*", "near/", ".done"], k=2))
            + chance.choice(ends)
        )
        bucket = chance.choice([HOME_BUCKET, "imagenet", "laion"])
        detail = {"bucket": {"name": bucket}, "object": {"key": key}}
        event: Any = {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}
        by_rule = {name for name, pattern in rules.items() if pattern.matches_event(event)}
        by_function = {name for name, one in campaigns.campaigns.items() if one.covers(bucket, key)}
        seen += len(by_function)
        assert {f"Uploaded{name.replace('-', '')}" for name in by_function} == {
            name.rstrip("0123456789ABCDEF") for name in by_rule
        }, (bucket, key)
    assert seen > 50


@pytest.mark.parametrize(
    ("key", "covered"),
    [("a/_READY", False), ("a//_READY", True), ("a/b/_READY", True), ("a/", False), ("/_READY", False)],
)
def test_no_letter_of_a_key_is_part_of_prefix_and_suffix(key: str, covered: bool) -> None:
    one = Campaign(bucket="b", prefix="a/", suffix="/_READY", given={})
    assert one.covers("b", key) is covered


def test_a_start_is_tried_for_a_day_and_then_a_letter_that_an_alarm_tells_of(template: dict[str, Any]) -> None:
    queue = only(template, "AWS::SQS::Queue", "StartQueue")
    letters = logical_id(template, "AWS::SQS::Queue", "StartLetters")
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": [letters, "Arn"]}
    again = float(variables(function(template, "starter"))["TRAINYARD_AGAIN_S"])
    assert queue["RedrivePolicy"]["maxReceiveCount"] * again == A_DAY_S == Timing().start_patience_s
    assert queue["MessageRetentionPeriod"] > 2 * A_DAY_S
    alarm = only(template, "AWS::CloudWatch::Alarm", "AlarmsStartLetters")
    assert alarm["Threshold"] in (0, 1)
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [letters, "QueueName"]}}]


def test_half_an_hour_in_which_no_branch_can_be_asked_for_is_an_alarm(template: dict[str, Any]) -> None:
    alarm = only(template, "AWS::CloudWatch::Alarm", "AlarmsWatchErrors")
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 1800


# Regions


def test_events_are_forwarded_from_the_region_of_a_bucket_and_from_no_other(started: Synthesised) -> None:
    found = {
        region: list(resources(started.template(f"region-{region}"), "AWS::Events::Rule"))
        for region in (HOME, AWAY, THIRD)
    }
    assert {region: len(rules) for region, rules in found.items()} == {HOME: 0, AWAY: 1, THIRD: 0}
    rule = only(started.template(f"region-{AWAY}"), "AWS::Events::Rule", "Uploadedfar")
    (target,) = rule["Targets"]
    assert plain(target["Arn"]) == f"arn:aws:events:{HOME}:111122223333:event-bus/default"
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": A_DAY_S, "MaximumRetryAttempts": 185}
    assert (
        rule["EventPattern"] == only(started.template("campaigns"), "AWS::Events::Rule", "Uploadedfar")["EventPattern"]
    )


def test_what_forwards_events_may_send_to_the_home_bus_and_nothing_else(started: Synthesised) -> None:
    region = started.template(f"region-{AWAY}")
    bus = (f"arn:aws:events:{HOME}:111122223333:event-bus/default",)
    assert granted(region, "ForwardUploads") == {"SendToTheHomeRegion": (("events:PutEvents",), bus)}
    trust = only(region, "AWS::IAM::Role", "ForwardUploads")["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Principal"] for one in trust] == [{"Service": "events.amazonaws.com"}]
    assert "aws:SourceAccount" in json.dumps(trust[0]["Condition"])


# What the functions have


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of settings in the archives that are put together at synth."""
    folder = tmp_path_factory.mktemp("archives")
    context = CONTEXT | {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": ["trainyard-campaigns"]}
    app = cdk.App(context=context, outdir=str(folder))
    build(app, Settings.parse({**CONTEXT[BLOCK], **AROUND, "campaigns": CAMPAIGNS, "watch": WATCH}))
    app.synth()
    return list(folder.rglob(STARTS_FILE))


def test_both_archives_have_the_settings_exactly(archives: list[Path]) -> None:
    assert len(archives) == 2
    home = {"bucket": "", "prefix": "uploads/drive-eu/", "suffix": "_READY"}
    for one in archives:
        assert decode(Starts, one.read_bytes()) == Starts(
            campaigns={
                "drive-eu": Campaign(**home, given=GRID),
                "near": Campaign(bucket="imagenet", prefix="near/", suffix=".done", given=SEARCH),
                "far": Campaign(bucket="laion", prefix="far/", suffix="_READY", given=JOB),
            },
            watches={
                "digits": Watch(
                    git="https://github.com/owner/digits.git",
                    branch="main",
                    build={"repository": "images", "build_arguments": {"EXTRA": "1"}, "platform": "linux/amd64"},
                ),
                "private": Watch(
                    git="https://git.example.com/owner/private.git",
                    branch="main",
                    build={"repository": "images", "platform": "linux/amd64"},
                ),
            },
        )


def test_no_archive_knows_an_account_or_a_token(archives: list[Path]) -> None:
    """The same settings are the same archive in every account; the home bucket's name has the account in it."""
    for one in archives:
        text = one.read_text()
        assert ("111122223333" in text, "${" in text, "AWS::" in text, "git-token" in text) == (False,) * 4


def test_a_changed_input_is_another_archive(tmp_path: Path) -> None:
    keys = []
    for number in (1, 2):
        context = CONTEXT | {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": ["trainyard-campaigns"]}
        app = cdk.App(context=context, outdir=str(tmp_path / str(number)))
        changed = campaign(input={"manifest": f"{{data}}/{number}.csv"})
        build(app, Settings.parse({**CONTEXT[BLOCK], "campaigns": changed}))
        app.synth()
        starter = function(Synthesised(tmp_path / str(number)).template("campaigns"), "starter")
        keys.append(starter["Code"]["S3Key"])
    assert keys[0] != keys[1]


# Rights


def test_the_starter_may_start_what_campaigns_say_and_see_what_they_and_the_watch_started(
    template: dict[str, Any],
) -> None:
    may = granted(template, "Starter")
    assert may["StartCampaigns"] == (("states:StartExecution",), machines("grid", "search", "train"))
    assert may["SeeWhatWasStarted"] == (
        ("states:DescribeExecution",),
        executions("build:digits-*", "build:private-*", "grid:drive-eu-*", "search:near-*", "train:far-*"),
    )


def test_the_starter_may_see_the_objects_of_campaigns_alone(template: dict[str, Any]) -> None:
    may = granted(template, "Starter")
    assert may["SeeUploads"] == (
        ("s3:GetObject",),
        (
            "arn:aws:s3:::imagenet/near/*.done",
            "arn:aws:s3:::laion/far/*_READY",
            f"arn:aws:s3:::{HOME_BUCKET}/uploads/drive-eu/*_READY",
        ),
    )
    assert {one for _, resource in may.values() for one in resource if ":s3:::" in one and "/" not in one} == {
        *("arn:aws:s3:::imagenet", "arn:aws:s3:::laion", f"arn:aws:s3:::{HOME_BUCKET}")
    }
    for one in rights(template, "Starter"):
        if any(action.startswith("s3:") for action in one.actions):
            assert one.conditions == {"StringEquals": {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}}}


def test_the_watch_may_start_builds_and_see_its_own_and_read_its_hosts_token(template: dict[str, Any]) -> None:
    may = granted(template, "BranchWatch")
    assert may["StartBuilds"] == (("states:StartExecution",), machines("build"))
    assert may["SeeWhatWasStarted"][1] == executions("build:digits-*", "build:private-*")
    assert may["ReadTokensOfGit"][1] == (f"arn:aws:secretsmanager:{HOME}:111122223333:secret:git-token-??????",)
    assert not {action for one in rights(template, "BranchWatch") for action in one.actions if action.startswith("s3:")}


@pytest.mark.parametrize("role", ["Starter", "BranchWatch"])
def test_what_starts_by_itself_ends_deletes_and_writes_nothing(template: dict[str, Any], role: str) -> None:
    actions = {action for one in rights(template, role) for action in one.actions}
    changing = {one for one in actions if not one.split(":")[1].startswith(("Get", "List", "Describe"))}
    own = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage", "states:StartExecution"}
    queue = {"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}
    people = {"sns:Publish", "kms:Decrypt", "kms:GenerateDataKey"}
    assert changing == (own | queue | people if role == "Starter" else own)
    assert [one.name for one in rights(template, role) if "*" in one.resources] == []


def test_only_the_rules_and_the_functions_reach_the_queue(template: dict[str, Any]) -> None:
    for policy in resources(template, "AWS::SQS::QueuePolicy").values():
        for one in policy["PolicyDocument"]["Statement"]:
            if one["Effect"] == "Allow":
                assert one["Principal"] == {"Service": "events.amazonaws.com"}
                assert one["Action"] == "sqs:SendMessage"
                (rules,) = one["Condition"]["ArnLike"].values()
                assert plain(rules) == f"arn:aws:events:{HOME}:111122223333:rule/trainyard-*"


def test_a_rule_may_send_whose_name_cloudformation_has_cut(tmp_path: Path) -> None:
    """It makes a name of at most 64 characters of the stack's, of which it takes 24, the rule's, and some of its own."""
    deployment = "a-very-long-name-abc"
    template = synthesise(tmp_path, deployment=deployment, campaigns=campaign()).template("campaigns")
    name = f"{deployment}-campaigns"[:24] + "-UploadeddriveeuABCDEF01-0123456789AB"
    assert len(deployment) == 20
    for policy in resources(template, "AWS::SQS::QueuePolicy").values():
        (allowed,) = (one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Allow")
        (rules,) = allowed["Condition"]["ArnLike"].values()
        assert fnmatchcase(f"arn:aws:events:{HOME}:111122223333:rule/{name}", plain(rules))


def test_twenty_campaigns_fit_into_the_queues_policy_and_the_starters_rights(tmp_path: Path) -> None:
    many = {
        f"{'c' * 37}-{n:02d}": {"prefix": f"uploads/{n:02d}{'x' * 58}/", "suffix": "_READY", "input": GRID}
        for n in range(20)
    }
    template = synthesise(tmp_path, campaigns=many).template("campaigns")
    assert len(resources(template, "AWS::Events::Rule")) == 20
    for policy in resources(template, "AWS::SQS::QueuePolicy").values():
        assert len(policy["PolicyDocument"]["Statement"]) < 20
    for role in resources(template, "AWS::IAM::Policy").values():
        assert size(role["PolicyDocument"]) < ROLE_CHARACTERS


# With customer keys


def test_with_compliance_what_it_stores_has_the_key_of_home() -> None:
    kept = synthesise_once(**AROUND, campaigns=CAMPAIGNS, watch=WATCH, compliance=True)
    template = kept.template("campaigns")
    for one in resources(template, "AWS::SQS::Queue").values():
        assert "KmsMasterKeyId" in one
        assert "SqsManagedSseEnabled" not in one
    assert [one for one in resources(template, "AWS::Logs::LogGroup").values() if "KmsKeyId" not in one] == []
    assert [name for name, _ in every(kept, "AWS::KMS::Key") if "campaigns" in name] == []

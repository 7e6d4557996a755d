"""`doctor` reads an account, changes nothing, and never takes for well what it could not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.codec import Garbled, encode
from contract.links import of_runbook
from contract.places import Place, Zone
from localaws.model import Refused
from stacks.settings import BLOCK
from tests.builders import PLACE, TOPIC
from tests.command_line.account import PERSON, YARD, Account, Ran, run
from tests.fakes.wire import HOME
from trainyard.diagnoses import (
    Diagnosis,
    Examination,
    Level,
    judge_alarm,
    judge_bootstrap,
    judge_errors,
    judge_image,
    judge_quota,
    judge_stack,
    judge_subscriptions,
    judge_zones,
)
from trainyard.doctor import examine
from trainyard.quotas import QUOTAS, USUAL, find_quota, list_quotas

SETTINGS = {
    "deployment": "yard",
    "regions": [{"region": HOME, "cidr": "10.70.0.0/16"}],
    "images": {"x86_64": "/aws/service/x"},
    "limits": {"instance_types": ["g5.*", "t3.*"]},
}
PARTS = ("reaper", "builds", "images", "pages", "dashboard")
LOG = "yard-workflow-AdmissionLog"
REGION_STACK = names.region_stack("yard", HOME)


@pytest.fixture
def well(there: Account, tmp_path: Path) -> Account:
    """An account in which nothing is wrong."""
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {BLOCK: SETTINGS}}))
    there.outputs |= {names.stack("yard", part): {} for part in PARTS} | {REGION_STACK: {}}
    there.directory.parameters[HOME, "/cdk-bootstrap/hnb659fds/version"] = "33"
    there.directory.parameters[HOME, names.region_parameter("yard", HOME)] = encode(PLACE).decode()
    there.directory.parameters[HOME, "/aws/service/x"] = "ami-0123456789abcdef0"
    there.directory.roles = {"AWSServiceRoleForBatch", "AWSServiceRoleForECS", "AWSServiceRoleForEC2Spot"}
    subscribed = {
        "Protocol": "email",
        "Endpoint": "ada@example.com",
        "SubscriptionArn": f"{TOPIC}:1",
        "TopicArn": TOPIC,
        "Owner": "1",
    }
    there.answers |= {
        "service-quotas:GetServiceQuota": lambda _: {"Quota": {"Value": 64.0}},
        "sns:ListSubscriptionsByTopic": lambda _: {"Subscriptions": [subscribed]},
        "cloudwatch:DescribeAlarms": lambda _: {"MetricAlarms": []},
        "lambda:ListFunctions": lambda _: {
            "Functions": [
                {"FunctionName": "yard-workflow-Admission", "LoggingConfig": {"LogGroup": LOG}},
                {"FunctionName": "other"},
            ]
        },
        "cloudwatch:GetMetricData": lambda _: {"MetricDataResults": [{"Id": "f0", "Values": [0.0]}]},
    }
    return there


@pytest.fixture
def ask_doctor(tmp_path: Path) -> Any:
    def ask(*options: str) -> Ran:
        return run("doctor", "--settings", tmp_path / "cdk.json", *options, *YARD)

    return ask


def levels(ran: Ran) -> dict[str, set[str]]:
    """Subject to the levels of its lines."""
    found = dict[str, set[str]]()
    for line in ran.out.splitlines():
        level, _, rest = line.partition(" ")
        found.setdefault(rest.strip().partition(":")[0], set()).add(level)
    return found


def test_a_good_account_is_ok_in_every_line_and_nothing_is_changed(well: Account, ask_doctor: Any) -> None:
    ran = ask_doctor()
    assert (ran.code, set().union(*levels(ran).values())) == (0, {"ok"})
    assert levels(ran).keys() == {
        "credentials", "bootstrap", "stack", "zones", "image", "quota", "service-linked role", "topic", "alarms", "functions",
    }  # fmt: skip
    assert f"ok     credentials: {PERSON} in {HOME}" in ran.out
    changing = [name for name in well.changes if name != "service-quotas:GetServiceQuota"]
    assert changing == []


def deny(code: str = "AccessDeniedException") -> Any:
    def refuse(_: Mapping[str, Any]) -> dict[str, Any]:
        raise Refused(code, f"User: {PERSON} is not authorized to perform: x:Y on resource: *", 403)

    return refuse


@pytest.mark.parametrize(
    ("call", "subject"),
    [
        ("service-quotas:GetServiceQuota", "quota"),
        ("sns:ListSubscriptionsByTopic", "topic"),
        ("cloudwatch:DescribeAlarms", "alarms"),
        ("lambda:ListFunctions", "functions"),
        ("cloudwatch:GetMetricData", "functions"),
        ("iam:GetRole", "service-linked role"),
        ("ssm:GetParameter", "bootstrap"),
        ("ssm:GetParameter", "image"),
        ("ec2:DescribeAvailabilityZones", "zones"),
        ("cloudformation:DescribeStacks", "stack"),
    ],
)
def test_what_may_not_be_read_is_a_warning_and_never_well(
    well: Account, ask_doctor: Any, call: str, subject: str
) -> None:
    well.answers[call] = deny("UnauthorizedOperation" if call.startswith("ec2") else "AccessDeniedException")
    ran = ask_doctor()
    assert levels(ran)[subject] == {"warn"}
    assert "not known: rights: AWS denies you x:Y on *" in ran.out


def test_without_credentials_nothing_else_is_asked(well: Account, ask_doctor: Any) -> None:
    well.answers["sts:GetCallerIdentity"] = deny("ExpiredToken")
    ran = ask_doctor()
    assert (ran.code, ran.out.count("\n")) == (1, 1)
    assert ran.out.startswith("wrong  credentials: not known: credentials: they have expired")


def test_whatever_is_wrong_is_told_with_what_to_do(well: Account, ask_doctor: Any) -> None:
    del well.outputs[REGION_STACK]
    well.directory.parameters.pop((HOME, "/cdk-bootstrap/hnb659fds/version"))
    well.directory.parameters.pop((HOME, "/aws/service/x"))
    well.answers["cloudwatch:DescribeAlarms"] = lambda _: {
        "MetricAlarms": [
            {"AlarmName": "yard-reaper-silent", "AlarmDescription": "It is \x1b[2J silent.", "StateValue": "ALARM"},
            {"AlarmName": "yard-x", "StateValue": "OK"},
        ]
    }
    ran = ask_doctor()
    wrong = [line for line in ran.out.splitlines() if line.startswith("wrong")]
    assert ran.code == 1
    assert [line.split()[1] for line in wrong] == ["bootstrap:", "stack:", "image:", "alarms:"]
    assert "run: npx cdk bootstrap aws://123456789012/eu-central-1" in ran.out
    assert "run: make deploy" in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("stack", [*(f"yard-{one}" for one in PARTS), "yard-workflow", "yard-search", REGION_STACK])
def test_a_stack_that_is_not_there_is_wrong(well: Account, ask_doctor: Any, stack: str) -> None:
    del well.outputs[stack]
    ran = ask_doctor()
    assert ran.code == 1
    assert f"wrong  stack: {stack} is not deployed in {HOME}; run: make deploy" in ran.out


def test_a_stack_that_the_settings_do_not_bring_is_not_missed(well: Account, ask_doctor: Any, tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {BLOCK: {**SETTINGS, "dashboard": False}}}))
    del well.outputs["yard-dashboard"]
    assert ask_doctor().code == 0


def test_warnings_alone_are_no_failure(well: Account, ask_doctor: Any) -> None:
    well.directory.roles = set()
    well.answers["sns:ListSubscriptionsByTopic"] = lambda _: {"Subscriptions": []}
    well.answers["service-quotas:GetServiceQuota"] = lambda _: {"Quota": {"Value": 0.0}}
    well.answers["cloudwatch:GetMetricData"] = lambda _: {"MetricDataResults": [{"Id": "f0", "Values": [2.0, 1.0]}]}
    ran = ask_doctor()
    assert ran.code == 0
    assert {subject for subject, found in levels(ran).items() if found == {"warn"}} == {
        "quota",
        "service-linked role",
        "topic",
        "functions",
    }
    assert f"aws sns subscribe --topic-arn {TOPIC}" in ran.out
    assert "--quota-code L-DB2E81BA" in ran.out
    (line,) = (one for one in ran.out.splitlines() if "functions:" in one)
    assert "yard-workflow-Admission: 3 calls of a day ended with an error, as one that refuses a request" in line
    assert line.endswith(f"its log says which: log group {LOG}")
    assert "/aws/lambda/" not in ran.out


def test_a_qualifier_of_ones_own_is_the_one_that_is_looked_for(well: Account, ask_doctor: Any, tmp_path: Path) -> None:
    own = {BLOCK: SETTINGS, "@aws-cdk/core:bootstrapQualifier": "mine"}
    (tmp_path / "cdk.json").write_text(json.dumps({"context": own}))
    assert levels(ask_doctor())["bootstrap"] == {"wrong"}
    well.directory.parameters[HOME, "/cdk-bootstrap/mine/version"] = "33"
    assert levels(ask_doctor())["bootstrap"] == {"ok"}


def test_json_is_a_document_a_line(well: Account, ask_doctor: Any) -> None:
    well.directory.roles = set()
    found = ask_doctor("--json").documents
    assert {one["level"] for one in found} == {"ok", "warn"}
    assert all(one.keys() == {"check", "level", "what", "advice"} for one in found)


@pytest.mark.parametrize(
    ("status", "level"),
    [
        (None, Level.WRONG),
        ("CREATE_COMPLETE", Level.OK),
        ("UPDATE_COMPLETE", Level.OK),
        ("UPDATE_ROLLBACK_COMPLETE", Level.OK),
        ("UPDATE_IN_PROGRESS", Level.WARN),
        ("ROLLBACK_COMPLETE", Level.WRONG),
        ("UPDATE_ROLLBACK_FAILED", Level.WRONG),
        ("DELETE_FAILED", Level.WRONG),
    ],
)
def test_a_stack_is_as_good_as_its_status(status: str | None, level: Level) -> None:
    assert judge_stack("yard-grid", HOME, status).level is level


def test_a_region_without_a_bootstrap_a_network_or_its_zones_is_told() -> None:
    assert judge_bootstrap(HOME, "1", None).level is Level.WRONG
    assert judge_zones(HOME, None, ["a"]).level is Level.WRONG
    assert judge_zones(HOME, Place(region=HOME, bucket="b"), ["a"]).level is Level.WRONG
    place = Place(region=HOME, bucket="b", zones=(Zone(name="a", subnet="s"), Zone(name="b", subnet="s")))
    assert judge_zones(HOME, place, ["a"]).level is Level.WARN
    assert judge_zones(HOME, place, ["a", "b", "c"]).level is Level.OK


def test_an_image_that_is_missing_is_wrong_for_the_common_family_alone() -> None:
    assert judge_image(HOME, "x86_64", "/x", None, is_there=False).level is Level.WRONG
    assert judge_image(HOME, "neuron", "/x", None, is_there=False).level is Level.WARN
    assert judge_image(HOME, "x86_64", "/x", "ami-1", is_there=False).level is Level.WRONG
    assert judge_image(HOME, "x86_64", "/x", "ami-1", is_there=True).level is Level.OK


def test_a_quota_that_is_not_told_is_not_taken_for_enough() -> None:
    assert judge_quota(HOME, QUOTAS[0], None, None).level is Level.WARN
    assert judge_quota(HOME, QUOTAS[0], 0.0, 64.0).level is Level.WARN
    assert judge_quota(HOME, QUOTAS[0], 8.0, None).what == f"{HOME}: {QUOTAS[0].words}: 8 vCPUs on demand"


def test_a_subscription_counts_once_it_is_confirmed() -> None:
    (pending,) = judge_subscriptions("t", [("email", "ada@example.com", False)])
    assert pending.level is Level.WARN
    assert next(iter(judge_subscriptions("t", []))).level is Level.WARN


def test_a_function_without_errors_is_no_line() -> None:
    assert judge_errors("f", 0.0, "g") is None


def test_a_log_group_that_is_not_known_is_not_guessed() -> None:
    found = judge_errors("f", 1.0, "")
    assert found is not None
    assert found.what.startswith("f: 1 call of a day")
    assert found.advice == "its log says which: Lambda names its log group"


@pytest.mark.parametrize("page", ["", "https://wiki/runbook"])
def test_an_alarm_is_a_sentence_and_its_place_in_the_runbook(page: str) -> None:
    described = (
        f"For ten minutes it was silent. See{' whether' * 90}. Log: g. More: {of_runbook(page, 'reaper-silent')}."
    )
    found = judge_alarm("yard-reaper-silent", described)
    assert found.what == "yard-reaper-silent is on: For ten minutes it was silent"
    assert found.advice == f"what to do: {of_runbook(page, 'reaper-silent')}"
    assert len(judge_alarm("a", "x" * 700).what) < 250
    assert judge_alarm("a", "") == Diagnosis(Level.WRONG, "a is on")


@pytest.mark.parametrize(
    ("instance_type", "code"),
    [
        ("g5.xlarge", "L-DB2E81BA"),
        ("gr6.4xlarge", "L-DB2E81BA"),
        ("p5.48xlarge", "L-417A185B"),
        ("trn1.2xlarge", "L-2C3B7624"),
        ("inf2.xlarge", "L-1945791B"),
        ("m7i-flex.large", "L-1216C47A"),
        ("t3.*", "L-1216C47A"),
        ("im4gn.large", "L-1216C47A"),
        ("x2idn.16xlarge", None),
        ("u-6tb1.metal", None),
        ("hpc7g.4xlarge", None),
        ("*", None),
        ("", None),
    ],
)
def test_a_type_counts_against_the_quota_of_its_class(instance_type: str, code: str | None) -> None:
    found = find_quota(instance_type)
    assert (found.on_demand if found else None) == code


def test_where_every_type_is_allowed_the_usual_quotas_are_looked_at() -> None:
    assert list_quotas(["*"], []) == list(USUAL)
    assert [one.letters for one in list_quotas(["*"], ["p5.48xlarge", "p4d.24xlarge"])] == [("p",)]


@pytest.mark.parametrize("problem", [Garbled("Place.region is missing"), KeyError("x")], ids=repr)
def test_what_another_version_wrote_spoils_its_own_line_alone(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[Diagnosis]:
        raise problem

    monkeypatch.delenv("TRAINYARD_DEBUG", raising=False)
    (found,) = examine(Examination(subject="zones", find=fail))
    assert found.level is Level.WARN
    assert found.what.startswith("not known: ")

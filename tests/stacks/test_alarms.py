"""Every alarm leads to where the reason is: a log that there is, a queue of letters, and a section of the runbook."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from contract.links import of_runbook
from stacks.parts import checkpoint_alarms, cost_alarm
from tests.stacks.pages import blocks, commands, problems
from tests.stacks.synth import logical_id, outputs_of, plain, resources
from tools.configurations import EVERYTHING
from tools.synthesis import ROOT, Synthesised, synthesise_once

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
ADDRESS = "https://wiki.example.com/runbook"
LONGEST = 1024
"""Characters of an alarm's description."""
CloudAlarm = tuple[str, dict[str, Any]]
ERRORS: dict[str, tuple[str, int, int]] = {
    "attendant-errors": ("attendant", 2, 3),
    "catalogue-errors": ("keeper", 1, 1),
    "cleanup-errors": ("cleanup", 1, 1),
    "grid-errors": ("grid_cleanup", 1, 1),
    "page-errors": ("page_writer", 6, 6),
    "reaper-errors": ("reaper", 1, 1),
    "search-errors": ("search_cleanup", 1, 1),
    "watch-errors": ("branch_watch", 6, 6),
}
"""Alarm on a function's errors to the function, and in how many of how many steps of five minutes it has to fail."""
SILENCES: dict[str, tuple[str, int]] = {
    "attendant-silent": ("attendant", 3),
    "kubernetes-silent": ("cluster_api", 20),
    "reaper-silent": ("reaper", 15),
}
"""Alarm on a function's silence to the function, and its minutes."""
OURS = {"checkpoints-old", "commits-slow", "cost-near-cap", "kubernetes-idle"}
"""Alarms on metrics of ours."""
FIRST_STEP = ("GreaterThanOrEqualToThreshold", 1, 1, 1, 300)
"""When an alarm begins with the first one that is counted."""


@pytest.fixture(scope="module")
def everything() -> Synthesised:
    return synthesise_once(**EVERYTHING)


@pytest.fixture(scope="module")
def alarms(everything: Synthesised) -> dict[str, CloudAlarm]:
    """Name without the deployment's to stack and properties."""
    return {
        one["AlarmName"].removeprefix("trainyard-"): (stack, one)
        for stack, template in everything.stacks.items()
        for one in resources(template, "AWS::CloudWatch::Alarm").values()
    }


def section(name: str) -> str:
    return RUNBOOK.partition(f"\n### {name}\n")[2].partition("\n### ")[0]


def logs_in(description: Any) -> list[str]:
    """Logical ids of what a description names as logs."""
    return re.findall(r"Log: <(\w+)>", plain(description))


def queue_of(alarm: dict[str, Any]) -> str:
    """Logical id of the queue that an alarm watches; empty where it watches none."""
    found = [one["Value"]["Fn::GetAtt"][0] for one in alarm.get("Dimensions", ()) if one["Name"] == "QueueName"]
    return found[0] if found else ""


def outputs_with(stack: dict[str, Any], logical: str) -> list[str]:
    """Outputs of a stack whose value is that resource."""
    return [name for name, one in stack["Outputs"].items() if one["Value"] == {"Ref": logical}]


def test_every_alarm_has_a_section_and_every_message_names_it(alarms: dict[str, CloudAlarm]) -> None:
    assert len(alarms) >= 21
    for name, (_, alarm) in alarms.items():
        assert section(name), name
        assert plain(alarm["AlarmDescription"]).endswith(f'More: docs/runbook.md, "{name}".')
        assert len(plain(alarm["AlarmDescription"])) > 120, "what it means, and what to do"


def test_every_alarm_tells_people_when_it_begins_and_when_it_ends(
    everything: Synthesised, alarms: dict[str, CloudAlarm]
) -> None:
    topic = logical_id(everything.template("foundation"), "AWS::SNS::Topic")
    for name, (_, alarm) in alarms.items():
        ((begins,), (ends,)) = alarm["AlarmActions"], alarm["OKActions"]
        assert begins == ends, name
        assert topic in json.dumps(begins), name
        assert alarm.get("ActionsEnabled", True), name


def test_with_an_address_of_the_runbook_every_message_leads_there() -> None:
    linked = synthesise_once(**EVERYTHING, runbook_url=ADDRESS)
    found = [
        (one["AlarmName"].removeprefix("trainyard-"), plain(one["AlarmDescription"]))
        for template in linked.stacks.values()
        for one in resources(template, "AWS::CloudWatch::Alarm").values()
    ]
    assert found
    for name, description in found:
        assert description.endswith(f" More: {ADDRESS}#{name}")
        assert "docs/runbook.md" not in description
    assert f'"TRAINYARD_RUNBOOK": "{ADDRESS}"' in json.dumps(linked.template("reaper"))


def test_an_alarm_that_speaks_of_a_log_names_one_that_there_is(
    everything: Synthesised, alarms: dict[str, CloudAlarm]
) -> None:
    for name, (stack, alarm) in alarms.items():
        description = plain(alarm["AlarmDescription"])
        if not re.search(r"\blog\b", description):
            continue
        groups = resources(everything.stacks[stack], "AWS::Logs::LogGroup")
        named = logs_in(alarm["AlarmDescription"])
        assert named, name
        assert set(named) <= groups.keys(), name
        for log in named:
            assert [
                one for one in outputs_with(everything.stacks[stack], log) if f"output {one} of {stack}" in description
            ], name


def test_alarms_without_a_log_are_those_of_the_table_alone(alarms: dict[str, CloudAlarm]) -> None:
    without = {name for name, (_, alarm) in alarms.items() if not logs_in(alarm["AlarmDescription"])}
    assert without == {"table-reads-throttled", "table-writes-throttled"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("checkpoints-old", checkpoint_alarms.OLD),
        ("commits-slow", checkpoint_alarms.SLOW),
        ("cost-near-cap", cost_alarm.NEAR),
    ],
)
def test_an_alarm_that_names_no_job_leads_to_the_lines_that_do(
    alarms: dict[str, CloudAlarm], name: str, words: str
) -> None:
    escaped = words.replace(" ", "$2520")
    assert f"/log-events$3FfilterPattern$3D$2522{escaped}$2522" in plain(alarms[name][1]["AlarmDescription"])
    sources = "".join(file.read_text() for file in sorted((ROOT / "lambda" / "attendant").glob("*.py")))
    assert f'"{words}"' in sources
    assert words in section(name)


def test_every_description_fits_its_limit_with_the_longest_names(alarms: dict[str, CloudAlarm]) -> None:
    """CloudFormation's own names have up to 255 characters for a log; those of ours have some 60, of which 20 are the deployment's."""
    for name, (_, alarm) in alarms.items():
        text = re.sub(r"<\w+>", "x" * 100, plain(alarm["AlarmDescription"]))
        assert len(text) + len(ADDRESS) < LONGEST, name


# When they begin


def begins(alarm: dict[str, Any]) -> tuple[Any, ...]:
    """When an alarm begins: comparison, threshold, how many of how many periods, and a period's seconds."""
    fields = ("ComparisonOperator", "Threshold", "DatapointsToAlarm", "EvaluationPeriods", "Period")
    return tuple(alarm.get(one) for one in fields)


def handler_of(stack: dict[str, Any], dimensions: list[dict[str, Any]]) -> str:
    (name,) = [one["Value"]["Ref"] for one in dimensions if one["Name"] == "FunctionName"]
    found: str = stack["Resources"][name]["Properties"]["Handler"]
    return found


def test_no_alarm_is_left_out_of_the_tables(alarms: dict[str, CloudAlarm]) -> None:
    others = {name for name in alarms if name.endswith(("-letters", "-throttled"))}
    assert alarms.keys() == ERRORS.keys() | SILENCES.keys() | OURS | others


@pytest.mark.parametrize("name", ERRORS)
def test_a_function_may_fail_as_often_as_its_next_try_makes_up_for(
    everything: Synthesised, alarms: dict[str, CloudAlarm], name: str
) -> None:
    (stack, alarm), (package, steps, of) = alarms[name], ERRORS[name]
    assert begins(alarm) == ("GreaterThanOrEqualToThreshold", 1, steps, of, 300)
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/Lambda", "Errors", "Sum")
    assert handler_of(everything.stacks[stack], alarm["Dimensions"]) == f"{package}.handler.handler"


@pytest.mark.parametrize("name", SILENCES)
def test_a_function_is_silent_after_minutes_in_a_row_without_an_invocation_that_went_well(
    everything: Synthesised, alarms: dict[str, CloudAlarm], name: str
) -> None:
    (stack, alarm), (package, minutes) = alarms[name], SILENCES[name]
    assert begins(alarm) == ("LessThanThreshold", 1, minutes, minutes, None)
    metrics = {one["Id"]: one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one}
    assert {key: (one["Metric"]["MetricName"], one["Period"], one["Stat"]) for key, one in metrics.items()} == {
        "invocations": ("Invocations", 60, "Sum"),
        "errors": ("Errors", 60, "Sum"),
    }
    (difference,) = [one for one in alarm["Metrics"] if "Expression" in one]
    assert difference["Expression"] == "FILL(invocations, 0) - FILL(errors, 0)"
    assert [one.get("Id") for one in alarm["Metrics"] if one.get("ReturnData", True)] == [difference["Id"]]
    for one in metrics.values():
        assert handler_of(everything.stacks[stack], one["Metric"]["Dimensions"]) == f"{package}.handler.handler"


def test_no_news_is_an_alarm_where_a_function_is_silent_alone(alarms: dict[str, CloudAlarm]) -> None:
    missing = {name: alarm["TreatMissingData"] for name, (_, alarm) in alarms.items()}
    assert missing == {name: "breaching" if name in SILENCES else "notBreaching" for name in alarms}


def test_the_first_letter_and_the_first_throttle_begin_an_alarm(alarms: dict[str, CloudAlarm]) -> None:
    found = {name: alarm for name, (_, alarm) in alarms.items() if name.endswith(("-letters", "-throttled"))}
    assert {name: begins(one) for name, one in found.items()} == dict.fromkeys(found, FIRST_STEP)


def test_machines_of_the_cluster_may_idle_for_half_an_hour(alarms: dict[str, CloudAlarm]) -> None:
    assert begins(alarms["kubernetes-idle"][1]) == ("GreaterThanOrEqualToThreshold", 1, 6, 6, 300)


# Letters


def test_every_alarm_about_letters_says_where_they_are(everything: Synthesised, alarms: dict[str, CloudAlarm]) -> None:
    about = {name: queue_of(alarm) for name, (_, alarm) in alarms.items() if queue_of(alarm)}
    assert about.keys() == {name for name in alarms if name.endswith("-letters")}
    for name, queue in about.items():
        stack, alarm = alarms[name]
        assert f"Letters: <{queue}>" in plain(alarm["AlarmDescription"]), name
        assert outputs_with(everything.stacks[stack], queue), name


def test_the_runbook_reads_and_purges_the_letters_of_every_queue(
    everything: Synthesised, alarms: dict[str, CloudAlarm]
) -> None:
    for name, (stack, alarm) in alarms.items():
        if not (queue := queue_of(alarm)):
            continue
        text = "\n".join(blocks(section(name)))
        (output,) = outputs_with(everything.stacks[stack], queue)
        short = stack.removeprefix("trainyard-")
        assert f"--stack-name $deployment-{short}" in text, name
        assert f"OutputKey==`{output}`" in text, name
        done = {
            (words[1], words[words.index("--queue-url") + 1])
            for words in commands(section(name))
            if "--queue-url" in words
        }
        assert {("receive-message", "$letters"), ("purge-queue", "$letters")} <= done, name


def test_letters_of_a_queue_go_back_to_it_where_it_has_one(
    everything: Synthesised, alarms: dict[str, CloudAlarm]
) -> None:
    """SQS moves letters back to the queue that sent them there, and knows none for what a schedule or a function left."""
    for name, (stack, alarm) in alarms.items():
        if not (queue := queue_of(alarm)):
            continue
        sources = [
            one
            for one in resources(everything.stacks[stack], "AWS::SQS::Queue").values()
            if queue in json.dumps(one.get("RedrivePolicy", {}))
        ]
        moves = any(words[1] == "start-message-move-task" for words in commands(section(name)))
        assert moves == bool(sources) or name == "attendant-letters", name


@pytest.mark.parametrize("name", re.findall(r"^### (\S+)$", RUNBOOK, re.MULTILINE))
def test_the_commands_of_a_section_exist_and_ask_for_outputs_of_the_deployment(
    everything: Synthesised, name: str
) -> None:
    for words in commands(section(name)):
        assert problems(words) == [], words
    known = outputs_of(everything).keys()
    assert set(re.findall(r"OutputKey==`(\w+)`", section(name))) <= known


@pytest.mark.parametrize(
    ("page", "where"),
    [("", 'docs/runbook.md, "Turn it off now"'), (ADDRESS, f"{ADDRESS}#turn-it-off-now")],
)
def test_a_section_has_the_anchor_that_its_heading_gets(page: str, where: str) -> None:
    assert of_runbook(page, "Turn it off now") == where

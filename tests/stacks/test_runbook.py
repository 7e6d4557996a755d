"""The commands of the runbook exist: every service, operation and argument is one of AWS's own models."""

from __future__ import annotations

import re

import pytest

from contract import items, tags
from reaper.policy import Rule
from tests.stacks.pages import commands, outputs, problems
from tests.stacks.synth import outputs_of
from tools.configurations import EVERYTHING
from tools.synthesis import ROOT, Synthesised, synthesise_once

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
SECTIONS = [
    "A machine is still running",
    "The reaper ended something",
    "Turn it off now",
    "A deploy failed",
    "Take over kept buckets",
    "Restore the table",
    "A job waits for capacity",
    "Protect an instance",
    "Alarms",
]
SILENT = {Rule.ENDING, Rule.FOREIGN, Rule.PROTECTED, Rule.YOUNG, Rule.RUNNING, Rule.ENDED_LATELY}
"""Rules by which the reaper keeps without a word."""
NAMED = (items.ADMISSION_CLOSED, items.region("eu-west-1"))
"""Items that the runbook writes or deletes."""
COMMANDS = list(commands(RUNBOOK))


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_of_the_runbook_exists(words: list[str]) -> None:
    assert problems(words) == []


def test_the_commands_were_found() -> None:
    assert len(COMMANDS) >= 25
    assert {"terminate-instances", "stop-execution", "create-tags", "start-message-move-task"} <= {
        words[1] for words in COMMANDS
    }


def test_the_runbook_has_the_sections_that_messages_name() -> None:
    assert [line.removeprefix("## ") for line in RUNBOOK.splitlines() if line.startswith("## ")] == SECTIONS


def test_what_the_runbook_names_is_what_the_deployment_has(deployment: Synthesised) -> None:
    named = outputs(RUNBOOK) | {"CleanupDeadLetters", "ReaperLogGroup"}
    optional = synthesise_once(**EVERYTHING)
    assert named <= outputs_of(deployment).keys() | outputs_of(optional).keys()
    assert named >= {"ReaperFunction", "ReaperDeadLetters", "NotificationTopic"}
    for word in (
        *(f'{{"{items.PARTITION}": {{"S": "{one.partition}"}}, "{items.SORT}": {{"S": "{one.sort}"}}' for one in NAMED),
        f'{{":p": {{"S": "{items.REGIONS}"}}}}',
        tags.PROTECTED,
        tags.DEPLOYMENT,
        tags.DEADLINE,
        "DrainOnDelete",
    ):
        assert word in RUNBOOK, word


def test_the_runbook_names_the_units_of_the_node() -> None:
    units = set(re.findall(r"trainyard-[a-z-]+\.(?:timer|service)", (ROOT / "node" / "user_data.sh").read_text()))
    assert units == set(re.findall(r"trainyard-[a-z-]+\.(?:timer|service)", RUNBOOK))
    assert "/opt/trainyard/power-off" in RUNBOOK


def test_the_runbook_says_what_to_do_about_every_word_of_the_reaper() -> None:
    assert [rule.value for rule in Rule if rule not in SILENT and f"`{rule.value}`" not in RUNBOOK] == []

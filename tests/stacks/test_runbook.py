"""The commands of the runbook exist: every service, operation and argument is one of AWS's own models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import botocore.session
import pytest
from botocore import xform_name

from contract import keys, tags
from reaper.policy import Rule
from tests.stacks.synth import ROOT, Synthesised

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
SECTIONS = [
    "A machine is still running",
    "The reaper ended something",
    "Turn it off now",
    "Protect an instance",
    "Alarms",
]
OF_ALL = {"region", "query", "output", "cli-binary-format"}
"""Arguments of the command line itself."""
SILENT = {Rule.ENDING, Rule.FOREIGN, Rule.PROTECTED, Rule.YOUNG, Rule.RUNNING, Rule.ENDED_LATELY}
"""Rules by which the reaper keeps without a word."""
RENAMED = {"notification-endpoint": "endpoint"}
"""`--endpoint` would look like the command line's own `--endpoint-url`."""
OWN = {("s3", "ls"), ("s3", "cp"), ("s3", "rm")}
"""What the command line adds to the services' operations."""


def commands() -> Iterator[list[str]]:
    """Every `aws ...` of the blocks, with what a shell would make of its words."""
    for block in re.findall(r"```bash\n(.*?)```", RUNBOOK, re.DOTALL):
        joined = re.sub(r"\\\n\s*", " ", block)
        for found in re.finditer(r"(?<![\w/-])aws (?=[a-z])", joined):
            yield shlex.split(_until_its_end(joined[found.end() :]), comments=True)


def _until_its_end(text: str) -> str:
    """Up to the end of the line, or the parenthesis that closes `$(aws ...)`, outside of quotes."""
    quote, depth = "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        if not quote and (letter == "\n" or depth < 0):
            return text[:place]
    return text


COMMANDS = list(commands())


def operation(service: str, command: str) -> tuple[set[str], set[str]]:
    """Arguments that the operation takes and those that it wants, as the command line spells them."""
    model = botocore.session.get_session().get_service_model(service)
    (name,) = [one for one in model.operation_names if xform_name(one, "-") == command]
    shape = model.operation_model(name).input_shape
    assert shape is not None
    taken = {xform_name(member, "-") for member in shape.members}
    return taken, {xform_name(member, "-") for member in shape.required_members}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_of_the_runbook_exists(words: list[str]) -> None:
    service, command = words[:2]
    if (service, command) in OWN:
        return
    taken, wanted = operation(service, command)
    named = {word.removeprefix("--").removeprefix("no-") for word in words if word.startswith("--")} - OF_ALL
    given = {RENAMED.get(name, name) for name in named}
    assert given - taken == set()
    assert wanted - given <= {"outfile"}


def test_the_commands_were_found() -> None:
    assert len(COMMANDS) >= 25
    assert {"terminate-instances", "stop-execution", "create-tags", "start-message-move-task"} <= {
        words[1] for words in COMMANDS
    }


def test_the_runbook_has_the_sections_that_messages_name() -> None:
    assert [line.removeprefix("## ") for line in RUNBOOK.splitlines() if line.startswith("## ")] == SECTIONS


def test_what_the_runbook_names_is_what_the_deployment_has(deployment: Synthesised) -> None:
    outputs = {
        name
        for template in deployment.stacks.values()
        for name, one in template.get("Outputs", {}).items()
        if "Export" not in one
    }
    named = set(re.findall(r"OutputKey==`(\w+)`", RUNBOOK)) | {"CleanupDeadLetters", "ReaperLogGroup"}
    assert named <= outputs
    assert named >= {"ReaperFunction", "ReaperDeadLetters", "NotificationTopic"}
    for word in (
        keys.ADMISSION,
        keys.LAUNCHED_REGIONS,
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

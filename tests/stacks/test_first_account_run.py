"""The page for a first run in an account: what it tells a person to type exists, and its jobs are ones that Admit takes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from contract import names
from contract.timing import Timing
from job_requests.reading import read
from refusals.archive import MOST_CODE
from stacks.settings import BLOCK, Settings
from tests.builders import LIMITS
from tests.stacks.pages import blocks, commands, outputs, problems
from tests.stacks.synth import every, function, outputs_of
from tools.synthesis import CONTEXT, ROOT, Synthesised

PAGE = (ROOT / "docs" / "tutorials" / "first-account-run.md").read_text()
README = (ROOT / "README.md").read_text()
COMMANDS = list(commands(PAGE))
INPUTS = sorted((ROOT / "examples" / "first_job").glob("*.json"))
PLACEHOLDER = "s3://REPLACE-WITH-UploadPrefix"
ROWS = re.findall(r"^\| (?!what |---)(.*) \|$", PAGE.partition("## Only an account shows")[2], re.MULTILINE)
ANY_TYPE = replace(LIMITS, instance_types=("*",))


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_every_command_of_the_page_exists(words: list[str]) -> None:
    assert problems(words) == []


def test_the_commands_were_found() -> None:
    assert len(COMMANDS) >= 45
    assert {"start-execution", "stop-execution", "get-console-output", "redrive-execution"} <= {
        one[1] for one in COMMANDS
    }


def test_every_target_and_file_that_the_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", PAGE, re.MULTILINE)) <= targets
    named = set(re.findall(r"examples/[\w./-]*\w", PAGE))
    assert [file for file in sorted(named) if not (ROOT / file).exists()] == []
    assert len(named) >= 8


def test_what_the_page_names_is_what_the_deployment_has(deployment: Synthesised) -> None:
    assert outputs(PAGE) | {"NotificationTopic", "Console"} <= outputs_of(deployment).keys()
    assert "trainyard-reaper-silent" in {one["AlarmName"] for _, one in every(deployment, "AWS::CloudWatch::Alarm")}
    assert set(re.findall(r"/aws/service/\S*?ami-id", PAGE)) == {Settings.parse(CONTEXT[BLOCK]).images["x86_64"]}
    for name in (names.log_group("$deployment"), names.node_metrics("$deployment"), f"--namespace {names.METRICS} "):
        assert name in PAGE, name


def test_the_page_follows_the_order_of_a_first_deploy() -> None:
    sections = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]
    assert sections == [
        "Before",
        "Deploy",
        "1. One node",
        "2. One that fails on purpose",
        "3. Two nodes, requirements, torchrun",
        "4. One that is stopped",
        "5. Destroy, and deploy again",
        "6. GPUs",
        "Only an account shows",
    ]
    for section in re.split(r"^## (?=\d)", PAGE, flags=re.MULTILINE)[1:]:
        assert re.search(r"^About \d+ minutes", section, re.MULTILINE), section.splitlines()[0]


def test_every_row_of_what_only_an_account_shows_has_a_command() -> None:
    assert len(ROWS) >= 20
    assert [row for row in ROWS if len(list(commands(row))) != 1] == []
    assert [row for row in ROWS if row.count(" | ") != 2] == []


def test_figures_of_the_page_are_those_of_the_product(deployment: Synthesised) -> None:
    assert f"allowance of {Timing().metal_boot_allowance_s / 60:.0f} minutes" in PAGE
    assert MOST_CODE > 4 * 1024**3
    assert function(deployment.template("workflow"), "admission")["Timeout"] == 180
    assert "Admit takes less than its three minutes" in PAGE


@pytest.mark.parametrize("file", INPUTS, ids=lambda file: file.name)
def test_an_input_is_one_that_admit_takes(file: Path) -> None:
    request = json.loads(file.read_text())
    archive = re.search(r"aws s3 cp (\S+) \$\{uploads%/\}/(\S+)", PAGE)
    assert archive is not None
    assert request["code"] == f"{PLACEHOLDER}/{archive[2]}"
    read_, wrong = read({**request, "code": f"s3://yard-home/uploads/{archive[2]}"}, ANY_TYPE)
    assert wrong == []
    assert read_.max_hours is not None
    assert read_.max_hours <= 1
    assert file.name in PAGE


def test_what_runs_before_the_gpus_needs_no_quota() -> None:
    cheap = [json.loads(file.read_text()) for file in INPUTS if file.name != "gpu.json"]
    assert {kind for one in cheap for kind in one["instance_types"]} == {"t3.medium", "m7i-flex.large"}
    assert max(one.get("nodes", 1) for one in cheap) <= 2


def test_the_page_starts_each_input_under_a_name_of_its_own() -> None:
    started = re.findall(r"^start (\S+) (\S+)$", "\n".join(blocks(PAGE)), re.MULTILINE)
    assert len({name for name, _ in started}) == len(started) == 5
    assert {file for _, file in started} <= {str(file.relative_to(ROOT)) for file in INPUTS}


def test_the_readmes_first_job_is_the_examples() -> None:
    """One source: what a person pastes into the console is what the page starts."""
    if "examples/first_job" not in README:
        pytest.skip("the README does not name examples/first_job")
    first = json.loads((ROOT / "examples/first_job/one_node.json").read_text())
    assert json.dumps(first) in [
        json.dumps(json.loads(one)) for one in re.findall(r"```json\n(\{.*?\})\n```", README, re.DOTALL)
    ]

"""The command line of a job's rehearsal: a mistake is a line that names the argument and what is allowed, told before anything starts."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from localaws.ports import Port
from rehearsal import job_run
from rehearsal.deployment import ROOT
from rehearsal.diagnosis import LINES, matters
from rehearsal.job_command import arguments
from rehearsal.parts import Part
from rehearsal.replaced import OWN_PATHS, SAME_PATH, describe_replaced, not_deployed
from rehearsal.request_check import CannotCheck, list_search_problems
from rehearsal.runs import Run
from rehearsal.screen import Screen

EXAMPLE = ROOT / "examples" / "ddp_digits"
FIRST = ROOT / "examples" / "first_job"
FIRST_PORT = 8940
"""Not that of a workbench: a test may serve one beside this one."""
JOB = ["--job", str(EXAMPLE / "job.json"), "--code", str(EXAMPLE)]
WRONG = [
    *(
        (option, value, "above 0")
        for option in ("--speed", "--limit")
        for value in ("nan", "inf", "-inf", "x", "0", "-1", "")
    ),
    *(("--nodes", value, "a whole number of at least 1") for value in ("0", "-1", "1.5", "nan", "x", "")),
    *(("--metric-at-least", value, "a number") for value in ("nan", "inf", "x")),
    ("--seed", "x", "a whole number"),
    ("--code", str(EXAMPLE / "job.json"), "is a file; it must be a folder"),
    ("--code", "nowhere", "there is no such folder"),
    ("--job", str(EXAMPLE), "is a folder; it must be a file"),
    ("--job", "nowhere.json", "there is no such file"),
    ("--job", str(EXAMPLE / "train.py"), "is not JSON"),
    ("--job", "/bin/true", "is not a string in UTF-8"),
    ("--fault", "no-such", "no-such"),
    ("--image", "nowhere", "there is no such folder"),
    ("--image", str(EXAMPLE), "there is no such file"),
]


@pytest.mark.parametrize(("option", "value", "allowed"), WRONG)
def test_a_wrong_value_is_a_line_and_exit_code_2(
    option: str, value: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments([*JOB, f"{option}={value}"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert allowed in told
    assert option.lstrip("-") in told or option == "--fault"
    assert "Traceback" not in told
    assert "usage:" not in told


@pytest.mark.usefixtures("checked_here")
def test_an_image_needs_no_code_and_is_what_the_request_names() -> None:
    folder = ROOT / "examples" / "image_job"
    found = arguments(["--job", str(folder / "job.json"), "--image", str(folder)])
    assert (found.code, found.request["image"]) == (None, "images:line-1")


def test_neither_code_nor_an_image_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["--job", str(EXAMPLE / "job.json")])
    assert "--code is missing" in capsys.readouterr().err


def test_a_request_whose_code_lies_elsewhere_says_that_a_folder_takes_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        arguments(["--job", str(FIRST / "one_node.json")])
    assert "allowed: a folder, which is uploaded in its place" in capsys.readouterr().err


@pytest.mark.usefixtures("checked_here")
@pytest.mark.parametrize("example", sorted(FIRST.glob("*.json")), ids=lambda file: file.name)
def test_every_example_of_a_first_job_can_be_rehearsed_as_it_is(example: Path) -> None:
    found = arguments(["--job", str(example), "--code", str(EXAMPLE)])
    assert "REPLACE" in found.request["code"]
    assert found.archive


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str, **fields: object) -> list[str]:
    """What is said to a request with these fields, before anything is deployed."""
    request = json.loads((EXAMPLE / "job.json").read_text()) | fields
    (tmp_path / "mine.json").write_text(json.dumps(request))
    with pytest.raises(SystemExit) as ended:
        arguments(["--job", str(tmp_path / "mine.json"), "--code", str(EXAMPLE), *options])
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()


def test_a_wrong_request_is_refused_before_the_deployment_in_the_words_of_admit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(tmp_path, capsys, nodes="2", timeout=1, region="us-east-1", command=["python", "trian.py"])
    assert [line.split(":")[1].strip() for line in lines] == [
        "nodes",
        "timeout",
        "region",
        "command",
    ]
    assert all(line.startswith("mine.json: ") and "; allowed: " in line for line in lines)
    assert "(did you mean max_hours?)" in lines[1]
    assert "(did you mean train.py?)" in lines[3]


@pytest.mark.usefixtures("checked_here")
def test_more_nodes_than_the_settings_allow_are_refused_on_the_command_line_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = refused(tmp_path, capsys, "--nodes=9999")
    assert line.startswith("mine.json: nodes: 9999 is too large; allowed: ")


@pytest.mark.usefixtures("checked_here")
def test_code_that_cannot_be_read_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").symlink_to("/nowhere")
    (folder / "pipe").mkdir()
    with pytest.raises(SystemExit):
        arguments(["--job", str(EXAMPLE / "job.json"), "--code", str(folder)])
    assert "a link to '/nowhere', out of its folder" in capsys.readouterr().err


@pytest.mark.usefixtures("checked_here")
def test_all_mistakes_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments([*JOB, "--speed=nan", "--nodes=0", "--limit=x"])
    assert len(capsys.readouterr().err.splitlines()) == 3


@pytest.mark.usefixtures("checked_here")
def test_right_values_are_numbers() -> None:
    found = arguments([*JOB, "--speed=2.5", "--nodes=3", "--metric-at-least=0"])
    assert (found.speed, found.nodes, found.metric_at_least, found.limit, found.seed) == (2.5, 3, 0.0, 900.0, 0)


def test_a_mistake_is_told_without_the_local_aws() -> None:
    """moto takes seconds to import."""
    code = "import sys; from rehearsal import command; sys.exit('moto' in sys.modules or 'boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_process_of_a_rehearsal_starts_no_node_js_and_imports_no_function() -> None:
    """The CDK's Node.js would end with its own traceback where a person interrupts."""
    code = f"""
import sys
from rehearsal.job_command import arguments
arguments({JOB!r})
sys.exit(bool({{'aws_cdk', 'jsii', 'job_requests', 'pydantic'}} & sys.modules.keys()))
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_check_that_fails_is_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rehearsal.request_check.__name__", "rehearsal.no_such_module")
    with pytest.raises(CannotCheck, match=r"No module named rehearsal\.no_such_module"):
        list_search_problems({})


def test_a_check_needs_nothing_that_only_the_command_line_has() -> None:
    """What a rehearsal sets up has no Typer."""
    asks = "import sys; sys.modules['typer'] = None; from rehearsal.request_check import check; print(*check('job', {'nodes': 0}).values())"
    paths = os.pathsep.join(str(ROOT / folder) for folder in (".", "lambda"))
    done = subprocess.run(
        [sys.executable, "-c", asks],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("['code: is missing"), done.stderr


# the screen


def test_without_a_terminal_the_beginning_of_a_part_is_a_line_at_once() -> None:
    written = io.StringIO()
    screen = Screen(Console(file=written, soft_wrap=True))
    with screen.parts.part("synth"):
        assert written.getvalue().rstrip().endswith("synth ...")
    assert "  synth: " in written.getvalue()


def test_a_part_that_failed_has_no_end() -> None:
    screen = Screen(Console(file=io.StringIO()))
    with pytest.raises(ZeroDivisionError), screen.parts.part("deploy"):
        raise ZeroDivisionError
    assert screen.parts.going_on() == ["deploy"]


def test_what_was_not_deployed_is_said() -> None:
    assert "t-images" in not_deployed(["t-images"])
    assert not_deployed([]) == "Every stack was deployed."


@pytest.mark.parametrize(("can", "says"), [(True, SAME_PATH), (False, OWN_PATHS)])
def test_whether_nodes_have_one_path_is_said(monkeypatch: pytest.MonkeyPatch, can: bool, says: str) -> None:
    monkeypatch.setattr("rehearsal.replaced.can_separate", lambda: can)
    assert describe_replaced().endswith(says)


def test_parts_are_written_with_what_still_goes_on(tmp_path: Path) -> None:
    screen = Screen(Console(file=io.StringIO()))
    screen.parts.begin("deploy")
    screen.parts.known("Admit", 1.0, 2.0)
    screen.parts.write(tmp_path / "parts.json")
    assert '"took_s": null' in (tmp_path / "parts.json").read_text()
    assert screen.parts.all[1] == Part("Admit", 1.0, 2.0)


# a failure


def test_of_a_function_s_log_what_is_an_error_matters() -> None:
    traceback = "Traceback (most recent call last):\n  here\nKeyError: 'x'"
    entries = [
        "START",
        '{"level": "INFO", "error": "", "reason": "rank 0 failed with an error"}',
        '{"level": "WARNING", "message": "refused"}',
        json.dumps({"level": "ERROR", "message": "the table is away", "exception": traceback}),
        traceback,
        "REPORT",
    ]
    assert matters(entries) == ["the table is away", "KeyError: 'x'", *traceback.splitlines()]
    assert matters(["START", "REPORT", "[1, 2]", "failed successfully"]) == []


def test_of_much_trouble_the_last_lines_matter() -> None:
    entries = [json.dumps({"level": "ERROR", "message": f"error {number}"}) for number in range(100)]
    assert matters(entries) == [f"error {n}" for n in range(100 - LINES, 100)]


def test_a_workbench_is_not_rehearsed_beside_another_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_given: Any, **_named: Any) -> None:
        raise AssertionError("something was deployed")

    monkeypatch.setattr(job_run, "Yard", refuse)
    monkeypatch.setattr(job_run.workbench, "PORT", FIRST_PORT)
    console = io.StringIO()
    run, screen = Run("bench", out=tmp_path / "out", work=tmp_path / "work"), Screen(Console(file=console, width=200))
    options = argparse.Namespace(request={"workbench": {}})
    other = Port(FIRST_PORT, many=1)
    assert job_run.carry_out(options, screen, run) == 1
    assert "on which every workbench listens, is taken on this computer" in console.getvalue()
    other.release()
    run.close()

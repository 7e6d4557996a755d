"""A new user makes each mistake of the table, for real: at most three lines say what is wrong and what to do, without our traceback."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from localaws.testing.waiting import HANG_S
from rehearsal.command import main
from rehearsal.diagnosis import diagnose
from rehearsal.yard import StartedJob, Yard
from tools.mistakes import ANY, CODE, MOST_LINES, REQUEST, ROWS, Mistake, Stage

ROOT = Path(__file__).parents[2]
BY_NAME = {one.name: one for one in ROWS}
READ = [one.name for one in ROWS if one.stage is Stage.READING]
DEPLOYED = [one.name for one in ROWS if one.stage in (Stage.ADMIT, Stage.TRAINING) and not one.does]
PACKED = (*ROOT.glob("package*.json"), *ROOT.glob("*/*requirements*.txt"), ROOT / "requirements.txt", ROOT / "uv.lock")


def fits(line: str, said: str) -> bool:
    """Whether a line of the table is the one that was said."""
    return re.fullmatch(re.escape(line).replace(re.escape(ANY), ".*"), said) is not None


def missing(mistake: Mistake, said: str) -> list[str]:
    """Lines of the table that were not said in their order."""
    lines, absent = iter(said.splitlines()), list[str]()
    for line in mistake.says:
        if not any(fits(line, one) for one in lines):
            absent.append(line)
    return absent


def prepared(folder: Path, mistake: Mistake) -> list[str]:
    """Writes the person's files; returns the options of the command."""
    (folder / "mine.json").write_text(mistake.text or json.dumps({**REQUEST, **mistake.fields}))
    (folder / "my-code").mkdir()
    for name, text in {**CODE, **mistake.code}.items():
        (folder / "my-code" / name).write_text(text)
    return ["--job", str(folder / "mine.json"), *mistake.options]


def run(*words: str, cwd: Path, path: str = str(ROOT), python: tuple[str, ...] = (sys.executable,)) -> tuple[int, str]:
    """Runs the command, as in a shell, and returns its exit code and all that it says."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    done = subprocess.run(
        [*python, "-m", "rehearsal", *words], cwd=cwd, env=variables | ({"PYTHONPATH": path} if path else {}),
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_an_answer_has_three_lines_at_most_and_a_name_of_its_own() -> None:
    assert [one.name for one in ROWS if not 0 < len(one.says) <= MOST_LINES] == []
    assert len(BY_NAME) == len(ROWS)
    assert len(ROWS) >= 20


@pytest.mark.parametrize("name", READ)
@pytest.mark.usefixtures("checked_here")
def test_what_is_wrong_with_the_command_or_the_request_is_all_that_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = prepared(tmp_path, BY_NAME[name])
    monkeypatch.chdir(tmp_path)
    try:
        code = main(options)
    except SystemExit as ended:
        code = int(str(ended.code))
    said = "".join(capfd.readouterr())
    assert code == 2
    assert len(said.splitlines()) == len(BY_NAME[name].says), said
    assert missing(BY_NAME[name], said) == [], said


def test_the_process_of_the_command_says_it_and_ends_with_2(tmp_path: Path) -> None:
    code, said = run(*prepared(tmp_path, BY_NAME[READ[0]]), cwd=tmp_path)
    assert (code, missing(BY_NAME[READ[0]], said)) == (2, []), said


def test_without_its_environment_a_rehearsal_says_what_to_do() -> None:
    code, said = run("--job", "mine.json", cwd=ROOT, path="", python=(sys.executable, "-S"))
    assert (code, missing(BY_NAME["the environment is not activated"], said)) == (2, []), said


def test_a_clone_that_was_never_set_up_says_what_to_do(tmp_path: Path) -> None:
    for folder in ("rehearsal", "contract", "localaws"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "rehearsal").unlink()
    shutil.copytree(ROOT / "rehearsal", tmp_path / "rehearsal", ignore=shutil.ignore_patterns("out", "__pycache__"))
    code, said = run("--job", "mine.json", cwd=tmp_path, path=str(tmp_path))
    assert (code, missing(BY_NAME["it was never set up"], said)) == (2, []), said


def test_in_another_folder_python_finds_no_rehearsal(tmp_path: Path) -> None:
    code, said = run("--job", "mine.json", cwd=tmp_path, path="")
    name = next(one for one in BY_NAME if one.startswith("another folder"))
    assert (code, missing(BY_NAME[name], said)) == (1, []), said


@pytest.mark.at_length
def test_set_up_without_a_network_says_so(tmp_path: Path) -> None:
    for file in (ROOT / "Makefile", *ROOT.glob("tools/*.py"), ROOT / "tools" / "uv.txt", *PACKED):
        (tmp_path / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{held.getsockname()[1]}/simple"
        done = subprocess.run(
            ["make", f"PYTHON={sys.executable}", "setup-rehearsal"], cwd=tmp_path, check=False, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "PIP_INDEX_URL": index, "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull},
        )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert missing(BY_NAME["no network"], said) == [], said
    assert "Could not find a version" not in said


def interrupted(folder: Path) -> tuple[int, str]:
    """Starts a rehearsal, and presses Ctrl-C once its deployment has begun."""
    options = prepared(folder, Mistake(name="", stage=Stage.SET_UP, says=()))
    options = [str(folder / "my-code") if one == "my-code" else one for one in options]
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "rehearsal", *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = list[str]()
        for line in process.stdout:
            said.append(line)
            if "deploy ..." in line:
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to whatever is in its group
        process.wait()
    return process.returncode, "".join(said)


@pytest.mark.rehearsal
def test_an_interrupt_is_a_line_and_leaves_nothing(tmp_path: Path) -> None:
    code, said = interrupted(tmp_path)
    assert (code, missing(BY_NAME["Ctrl-C half way"], said)) == (130, []), said
    assert "Traceback" not in said


@pytest.fixture(scope="module")
def jobs(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> dict[str, StartedJob]:
    """Every mistake that only an account notices, at once."""
    started = {}
    for number, name in enumerate(DEPLOYED):
        folder = tmp_path_factory.mktemp("mistake")
        prepared(folder, BY_NAME[name])
        code = yard.upload(folder / "my-code", f"mistake-{number}")
        request = {**REQUEST, **BY_NAME[name].fields, "code": code}
        started[name] = yard.start(request, f"mistake-{number}")
    return started


@pytest.mark.rehearsal
@pytest.mark.at_length
@pytest.mark.parametrize("name", DEPLOYED)
def test_what_an_account_notices_is_its_cause_and_what_to_do(
    jobs: dict[str, StartedJob], name: str, tmp_path: Path
) -> None:
    jobs[name].wait(HANG_S)
    console = Console(record=True, width=80, file=io.StringIO(), soft_wrap=True, emoji=False)
    diagnose(jobs[name], console, tmp_path)
    said = console.export_text()
    assert missing(BY_NAME[name], said) == [], said
    assert said.count("Traceback") == said.count("ModuleNotFoundError: ")
    assert "https://" not in said
    assert "functions/" not in said


@pytest.mark.rehearsal
@pytest.mark.at_length
def test_a_second_execution_of_one_name_is_refused_by_its_name(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    with pytest.raises(ClientError) as refused:
        yard.start({"another": "input"}, jobs[DEPLOYED[0]].name)
    assert missing(BY_NAME["the name of another job"], str(refused.value)) == []

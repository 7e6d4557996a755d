"""The command line as a person runs it, in processes of its own, against the deployment on the local AWS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from localaws.account import DEPLOYER
from localaws.testing.waiting import HANG_S, until
from rehearsal.deployment import ROOT
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ENDLESS, ONE, TWO, ended, stopped, succeeded, train

pytestmark = [pytest.mark.rehearsal]
TRAINER = Path(__file__).with_name("trainer")
WRONG = {"command": "python 'train.py", "instance_types": ["t3.large"], "nodes": "2", "gpu": 1}
NOWHERE = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Person:
    """Somebody at a terminal, in a folder of their own."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        self.yard, self.folder = yard, folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        path = os.pathsep.join([str(ROOT), str(ROOT / "lambda"), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.variables = {**kept, **NOWHERE, **yard.aws.environment(), "PYTHONPATH": path}
        self.credentials = yard.aws.credentials_for(DEPLOYER).variables()

    def write(self, request: object, name: str = "job.json") -> Path:
        (self.folder / name).write_text(json.dumps(request))
        return self.folder / name

    def run(self, *arguments: object, credentials: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "trainyard", *map(str, arguments)],
            cwd=self.folder,
            env={**self.variables, **(self.credentials if credentials else {})},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    @contextmanager
    def start(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        """Starts a command that goes on."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainyard", *map(str, arguments)],
            cwd=self.folder,
            env={**self.variables, **self.credentials, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def job(self, name: str) -> StartedJob:
        arn = f"{self.yard.places.machine.replace(':stateMachine:', ':execution:')}:{name}"
        return StartedJob(self.yard, name, arn)


@pytest.fixture
def person(yard: Yard, tmp_path: Path) -> Person:
    return Person(yard, tmp_path)


def lines(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of a refusal."""
    return [line for line in ran.stderr.splitlines() if line.startswith("- ")]


def test_a_job_from_its_check_to_its_results(person: Person) -> None:
    request = person.write({**TWO, "command": train(20, 0.2), "checkpoint_minutes": 0.02})
    assert person.run("check", request, "--code", TRAINER, credentials=False).returncode == 0
    ran = person.run("run", request, "--code", TRAINER, "--name", "typed", "--every", 0.5)
    assert (ran.returncode, ran.stderr) == (0, "")
    for words in (
        "code: 1 file, ",
        "1  g5.xlarge in eu-central-1a",
        "at most",
        "attempt 1: launched 2 x g5.xlarge",
        "rank 0 training, rank 1 training",
        "typed: SUCCEEDED",
        "cost: $",
        "artifacts: 2 files",
    ):
        assert words in ran.stdout
    assert person.job("typed-plan").states() == ["Admit", "Plan only?", "Planned"]
    status = json.loads(person.run("status", "typed", "--json").stdout)
    assert (status["status"], status["state"], status["attempts"]) == ("SUCCEEDED", "Done", 1)
    assert "typed-plan" in person.run("status").stdout
    logs = person.run("logs", "typed", "--rank", 1)
    assert "1/1  rank 1 is done, the last line" in logs.stdout
    assert "1/0" not in logs.stdout
    assert person.run("artifacts", "typed", "--to", "results").returncode == 0
    found = {str(path.relative_to(person.folder)) for path in (person.folder / "results").rglob("*") if path.is_file()}
    assert found == {"results/rank-0000/result-0.json", "results/rank-0001/result-1.json"}
    report = json.loads(person.run("report", "typed", "--json").stdout)
    assert (report["job"], report["attempts"], report["error"]) == ("typed", 1, None)


def test_what_the_check_says_is_what_admit_says(person: Person) -> None:
    request = person.write({**WRONG, "code": f"s3://{person.yard.places.home}/uploads/none"})
    checked, ran = person.run("check", request, credentials=False), person.run("run", request, "--name", "wrong")
    assert (checked.returncode, ran.returncode) == (2, 2)
    assert ran.stderr.startswith("InvalidRequest: The request was refused for ")
    assert lines(checked) == lines(ran)
    assert len(lines(ran)) >= 4
    with pytest.raises(person.yard.client("stepfunctions").exceptions.ExecutionDoesNotExist):
        person.job("wrong").describe()


def test_an_interrupt_stops_following_and_not_the_job_and_stop_ends_it(person: Person) -> None:
    request = person.write({**ONE, **ENDLESS, "command": train(100_000, 0.2)})
    with person.start("run", request, "--code", TRAINER, "--name", "left", "--every", 0.5) as following:
        assert following.stdout is not None
        until(lambda: "rank 0 training" in (following.stdout.readline() if following.stdout else ""))
        following.send_signal(signal.SIGINT)
        out, _ = following.communicate(timeout=HANG_S)
    assert following.returncode == 130
    assert "left goes on; to follow it again: trainyard status left -f; to stop it: trainyard stop left" in out
    assert "Traceback" not in out
    job = person.job("left")
    assert job.runs()
    with person.start("logs", "left", "-f", "--every", 0.5) as reading:
        assert "job left: stopped by arn:aws:" in person.run("stop", "left").stdout
        reading.communicate(timeout=HANG_S)
    assert reading.returncode == 0
    stopped(job)
    assert "stopped by arn:aws:" in job.describe()["cause"]
    assert person.run("status", "left", "-f").returncode == 1
    job.settle()


def test_a_lost_node_is_told_with_the_step_from_which_the_job_goes_on(
    person: Person, first_wave: dict[str, StartedJob]
) -> None:
    succeeded(first_wave["recovering"])
    ran = person.run("status", "recovering")
    assert "attempt 1 ended: NodeLost: rank 1 " in ran.stdout
    assert "attempt 2 follows, and goes on from step " in ran.stdout


def test_a_job_whose_code_fails_has_exit_code_1_and_its_last_lines(
    person: Person, first_wave: dict[str, StartedJob]
) -> None:
    ended(first_wave["failing"])
    ran = person.run("status", "failing", "-f")
    assert ran.returncode == 1
    assert "TrainingFailed: rank 1: the command exited with code 3" in ran.stdout
    assert "rank 1 is done, the last line" in ran.stdout


def test_a_grid_is_started_followed_and_its_results_are_shown(person: Person, trainer: str) -> None:
    line: dict[str, Any] = {"backend": "ec2", "code": trainer, "command": train(2, 0.1), "instance_types": ["t3.large"]}
    manifest = person.folder / "sweep.jsonl"
    manifest.write_text("".join(json.dumps(one) + "\n" for one in (line, {**line, "command": train(2, 0.1, 3)})))
    ran = person.run("grid", "run", manifest, "--name", "typed-grid", "--every", 0.5)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 of 2 lines have ended: 1 Completed, 1 Failed" in ran.stdout
    assert "1 line, the first is line 2: TrainingFailed" in ran.stdout
    results = [json.loads(one) for one in person.run("grid", "results", "typed-grid", "--json").stdout.splitlines()]
    assert [one["index"] for one in results] == [0, 1]


def test_the_doctor_reads_and_says_what_to_do(person: Person) -> None:
    ran = person.run("doctor")
    assert ran.returncode in {0, 1}
    assert ran.stdout.startswith("ok     credentials: arn:aws:")
    assert "ok     stack: trainyard-workflow: CREATE_COMPLETE" in ran.stdout
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "credentials", "begins"),
    [
        (["status"], False, "credentials: "),
        (["status", "--deployment", "other"], True, "deployment: there is no stack other-foundation in "),
        (["status", "none"], True, "NAME: trainyard has no job or grid or search called none"),
        (["run", "none.json"], True, "none.json: there is no such file"),
    ],
    ids=["no credentials", "no deployment", "no such job", "no such file"],
)
def test_what_is_missing_is_one_line(person: Person, arguments: list[str], credentials: bool, begins: str) -> None:
    ran = person.run(*arguments, credentials=credentials)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith(begins)

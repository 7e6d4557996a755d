"""`run` uploads, asks for price and ladder, starts, and follows; what cannot be carried out starts nothing."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.parsers import ResponseParserError

from tests.builders import JOB
from tests.command_line.account import HOME_BUCKET, LAUNCH, PLAN, YARD, Account, History, run
from tests.fakes.causes import write_cause
from tests.fakes.executions import Execution
from tests.fakes.faults import Kind
from trainyard import starting
from trainyard.starting import choose_name
from trainyard.stops import CannotProceed

REQUEST = {"command": ["python", "train.py"], "instance_types": ["g5.xlarge"]}
REFUSED = "The request was refused; nothing was started.\n- nodes: 0 is too small; allowed: a whole number from 1 to 16"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(REQUEST))
    return path


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print()")
    return folder


def admits(there: Account, end: Callable[[Execution], None] = lambda _: None) -> None:
    """Admit takes every request; `end` is what becomes of the job."""

    def begin(execution: Execution) -> None:
        if json.loads(execution.input).get("dry_run"):
            there.end(execution, output={**PLAN, "dry_run": True})
        else:
            end(execution)

    there.states.executions.began = begin


def started(there: Account) -> dict[str, dict[str, Any]]:
    """Name to input of every execution."""
    return {one.name: json.loads(one.input) for one in there.states.executions.known.values()}


def test_code_is_uploaded_the_plan_is_shown_and_the_job_is_followed_to_its_end(
    there: Account, job: Path, code: Path
) -> None:
    def succeed(execution: Execution) -> None:
        there.histories[execution.arn] = History().admit().launch().end_attempt(usd=0.5).enter("Done")
        there.end(execution, output={"progress": {"step": 7}, "artifacts": {"artifacts": 3}})

    admits(there, succeed)
    ran = run("run", job, "--code", code, "--name", "digits", *YARD)
    assert (ran.code, ran.err) == (0, "")
    address = started(there)["digits"]["code"]
    key = address.removeprefix(f"s3://{HOME_BUCKET}/")
    assert re.fullmatch(r"uploads/digits-[0-9a-f]{16}\.tar\.gz", key)
    assert started(there) == {
        "digits-plan": {**REQUEST, "code": address, "dry_run": True},
        "digits": {**REQUEST, "code": address},
    }
    with tarfile.open(fileobj=io.BytesIO(there.s3.read(HOME_BUCKET, key) or b"")) as archive:
        assert archive.getnames() == ["train.py"]
    for words in (
        "code: 1 file, 7 bytes",
        "1  g5.xlarge in eu-central-1a  on-demand  $1.2500 an hour",
        "left out: 2 dearer places",
        "cost: $12.50 at most. 1 node of g5.xlarge costs",
        "attempt 1: launched 2 x g5.xlarge",
        "digits: SUCCEEDED",
        "cost: $0.50 at most",
        "artifacts: 3 files: trainyard artifacts digits",
    ):
        assert words in ran.out


def test_a_refused_request_is_admits_own_words_and_nothing_is_started(there: Account, job: Path) -> None:
    there.states.executions.began = lambda execution: there.end(
        execution, "FAILED", error="InvalidRequest", cause=REFUSED
    )
    ran = run("run", job, "--name", "digits", *YARD)
    assert (ran.code, list(started(there))) == (2, ["digits-plan"])
    assert ran.err == f"InvalidRequest: {REFUSED}\n"


def test_a_dry_run_starts_nothing(there: Account, job: Path) -> None:
    admits(there)
    ran = run("run", job, "--name", "digits", "--dry-run", *YARD)
    assert (ran.code, list(started(there))) == (0, ["digits-plan"])
    assert ran.out.endswith("nothing was started (dry run)\n")
    job.write_text(json.dumps({**REQUEST, "dry_run": True}))
    assert run("run", job, "--name", "other", *YARD).code == 0
    assert list(started(there)) == ["digits-plan", "other-plan"]


def test_a_job_may_be_planned_again_before_it_is_started(there: Account, job: Path) -> None:
    admits(there)
    for _ in range(2):
        assert run("run", job, "--name", "digits", "--dry-run", *YARD).code == 0
    first, second = started(there)
    assert first == "digits-plan"
    assert re.fullmatch("digits-plan[0-9a-f]+", second)


@pytest.mark.parametrize(
    ("error", "code"), [("TrainingFailed", 1), ("InvalidRequest", 2), ("RoleRefused", 1), ("", 1)], ids=str
)
def test_the_exit_code_says_how_the_job_ended(there: Account, job: Path, error: str, code: int) -> None:
    cause = write_cause(JOB, "rank 0: code 3")
    admits(there, lambda execution: there.end(execution, "FAILED", error=error, cause=cause))
    ran = run("run", job, "--name", "digits", *YARD)
    assert ran.code == code
    assert f"{error or 'Failed'}: rank 0: code 3\nconsole: https://" in ran.out
    assert ran.out.count("https://") == 2  # where it was started, and at its end


def test_without_following_it_says_how_to_follow_and_how_to_stop(there: Account, job: Path) -> None:
    admits(there)
    ran = run("run", job, "--name", "digits", "--no-follow", *YARD)
    assert ran.code == 0
    assert ran.out.endswith("to follow it: trainyard status digits -f; to stop it: trainyard stop digits\n")


def test_an_interrupt_stops_following_and_not_the_job(
    there: Account, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    admits(there)
    monkeypatch.setattr(starting, "follow_job", interrupt)
    ran = run("run", job, "--name", "digits", *YARD)
    assert ran.code == 130
    assert (
        "digits goes on; to follow it again: trainyard status digits -f; to stop it: trainyard stop digits" in ran.out
    )
    assert there.states.executions.known[f"{there_arn(there)}:digits"].status == "RUNNING"


def there_arn(there: Account) -> str:
    return next(iter(there.states.executions.known)).rpartition(":")[0]


def test_a_job_whose_start_is_interrupted_has_a_name_all_the_same(
    there: Account, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = starting.start

    def interrupt(deployment: Any, kind: str, name: str, given: Any) -> Any:
        found = start(deployment, kind, name, given)
        if name == "digits":
            raise KeyboardInterrupt
        return found

    admits(there)
    monkeypatch.setattr(starting, "start", interrupt)
    ran = run("run", job, "--name", "digits", *YARD)
    assert (ran.code, list(started(there))) == (130, ["digits-plan", "digits"])
    assert ran.out.splitlines()[-1] == (
        "digits may have been started; to see it: trainyard status digits; to stop it: trainyard stop digits"
    )


@pytest.mark.parametrize(("fault", "is_started"), [(Kind.LOST, True), (Kind.ERROR, False), (Kind.ERROR_AFTER, True)])
def test_a_start_without_an_answer_names_the_job_that_may_run(
    there: Account, job: Path, fault: Kind, is_started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(execution: Execution) -> None:
        if execution.name == "digits-plan":
            there.end(execution, output={**PLAN, "dry_run": True})
            there.faults.add(fault, "stepfunctions:StartExecution", times=4)

    monkeypatch.setattr("botocore.endpoint.time", there.clock)
    there.states.executions.began = begin
    ran = run("run", job, "--name", "digits", "--no-follow", *YARD)
    assert (ran.code, "digits" in started(there)) == (130, is_started)
    assert ran.out.splitlines()[-1].startswith("digits may have been started; to see it: trainyard status digits;")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "answer",
    [{}, {"executionArn": "x"}, ResponseParserError("no JSON"), ValueError("no time"), AttributeError("a list")],
    ids=repr,
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_start_whose_answer_cannot_be_read_names_the_job_that_may_run(
    there: Account, job: Path, answer: dict[str, Any] | Exception, as_json: bool
) -> None:
    def garble(_: object) -> dict[str, Any]:
        if isinstance(answer, Exception):
            raise answer
        return answer

    def begin(execution: Execution) -> None:
        there.end(execution, output={**PLAN, "dry_run": True})
        there.answers["stepfunctions:StartExecution"] = garble

    there.states.executions.began = begin
    ran = run("run", job, "--name", "digits", "--no-follow", *["--json"] * as_json, *YARD)
    assert ran.code == 130
    assert ran.err.startswith("network: the answer is not one of AWS: ")
    assert "digits may have been started; to see it: trainyard status digits;" in ran.out + ran.err


def test_a_right_that_is_missing_while_following_says_that_the_job_goes_on(there: Account, job: Path) -> None:
    admits(there, lambda _: there.denied.add("stepfunctions:DescribeExecution"))
    ran = run("run", job, "--name", "digits", *YARD)
    assert ran.code == 130
    assert ran.err.startswith("rights: AWS denies you stepfunctions:DescribeExecution")
    assert ran.out.splitlines()[-1].startswith("digits goes on; to follow it again: trainyard status digits -f;")


def test_an_interrupt_before_the_start_starts_nothing(
    there: Account, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(starting, "plan", interrupt)
    ran = run("run", job, "--name", "digits", *YARD)
    assert (ran.code, started(there)) == (130, {})
    assert ran.err == "interrupted; digits was not started\n"


def test_a_name_that_was_taken_is_one_line(there: Account, job: Path) -> None:
    admits(there)
    there.end(there.begin("digits"), "FAILED")
    ran = run("run", job, "--name", "digits", *YARD)
    assert ran.code == 2
    assert ran.err == "--name: digits is the name of an earlier execution; allowed: a name that none had in 90 days\n"
    assert list(started(there)) == ["digits"]


@pytest.mark.parametrize("is_dry", [True, False])
def test_a_name_that_was_taken_leaves_the_code_of_the_earlier_job(
    there: Account, job: Path, code: Path, is_dry: bool
) -> None:
    there.begin("digits")
    ran = run("run", job, "--code", code, "--name", "digits", *["--dry-run"] * is_dry, *YARD)
    assert (ran.code, list(started(there))) == (2, ["digits"])
    assert not any(name.startswith("s3:Put") for name in there.changes)


def test_of_two_who_start_a_name_at_once_one_is_refused_and_the_code_of_the_other_stays(
    there: Account, job: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admits(there)
    monkeypatch.setattr(starting, "require_free", lambda *_: None)  # both have seen that the name is free
    assert run("run", job, "--code", code, "--name", "digits", "--no-follow", *YARD).code == 0
    (key,) = (name for name in there.s3.buckets[HOME_BUCKET].objects if name.startswith("uploads/"))
    first = there.s3.read(HOME_BUCKET, key)
    (code / "train.py").write_text("print(2)")
    ran = run("run", job, "--code", code, "--name", "digits", "--no-follow", *YARD)
    assert (ran.code, ran.err.splitlines()[-1][:36]) == (2, "--name: digits is the name of an ear")
    assert there.s3.read(HOME_BUCKET, key) == first


@pytest.mark.parametrize("name", ["", ".", "../up", "a b", "a" * 76, "ü", "a\nb", "\x1b[2J"])
def test_a_name_that_cannot_be_one_is_refused_before_anything_is_called(there: Account, job: Path, name: str) -> None:
    ran = run("run", job, "--name", name, *YARD)
    assert (ran.code, there.calls) == (2, [])
    assert ran.err.startswith("--name: ")
    assert "\x1b" not in ran.err


@pytest.mark.parametrize("origin", ["digits", "Übung 1", "....", "x" * 300, "日本", "-rf"])
def test_a_name_that_is_made_is_one_that_admit_takes(origin: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-]{1,75}", name := choose_name(None, origin))
    assert choose_name(name, "") == name


def test_inputs_of_grids_and_searches_are_sent_to_their_own_commands(there: Account, job: Path) -> None:
    for given, command in (({"manifest": "s3://a/b"}, "grid"), ({"template": {}}, "search")):
        job.write_text(json.dumps(given))
        ran = run("run", job, *YARD)
        assert (ran.code, there.calls) == (2, [])
        assert f"trainyard {command} run" in ran.err


def test_a_code_folder_that_is_none_uploads_nothing(there: Account, job: Path, tmp_path: Path) -> None:
    ran = run("run", job, "--code", tmp_path / "none", *YARD)
    assert (ran.code, started(there)) == (2, {})
    assert ran.err.startswith("--code ")


def test_a_person_who_may_not_upload_reads_which_right_is_missing(there: Account, job: Path, code: Path) -> None:
    there.denied = {"s3:PutObject"}
    ran = run("run", job, "--code", code, *YARD)
    assert (ran.code, started(there)) == (2, {})
    assert ran.err == "rights: AWS denies you s3:PutObject on *; allowed: what docs/guides/command-line.md names\n"


def test_a_person_who_may_not_start_reads_which_right_is_missing(there: Account, job: Path) -> None:
    there.denied = {"stepfunctions:StartExecution"}
    ran = run("run", job, *YARD)
    assert ran.code == 2
    assert ran.err.count("\n") == 1


def test_with_json_stdout_has_documents_alone(there: Account, job: Path, code: Path) -> None:
    def fail(execution: Execution) -> None:
        there.histories[execution.arn] = History().admit().enter("Launch").leave("Launch", LAUNCH)
        there.end(execution, "FAILED", error="TrainingFailed", cause="code 3")

    admits(there, fail)
    ran = run("run", job, "--code", code, "--name", "digits", "--json", *YARD)
    plan, begun, *events, end = ran.documents
    assert ran.code == 1
    assert plan["plan"]["estimate"]["usd_at_most"] == 12.5
    assert begun["started"].endswith(":digits")
    assert [one["event"].partition(":")[0] for one in events] == ["admitted", "attempt 1", "attempt 1"]
    assert (end["status"], end["error"], end["attempts"]) == ("FAILED", "TrainingFailed", 1)
    assert ran.err.startswith("code: 1 file,")


def test_a_price_that_is_not_known_is_said_so(there: Account, job: Path) -> None:
    plan = {**PLAN, "estimate": {"usd_at_most": "unknown", "words": "The price is unknown."}}
    there.states.executions.began = lambda execution: there.end(execution, output=plan)
    assert "cost: unknown. The price is unknown." in run("run", job, "--dry-run", *YARD).out


def test_a_large_input_is_refused_by_step_functions_in_one_line(there: Account, job: Path) -> None:
    def too_large(_: object) -> dict[str, Any]:
        from localaws.model import Refused

        raise Refused("InvalidExecutionInput", "Invalid State Machine Execution Input", 400)

    there.answers["stepfunctions:StartExecution"] = too_large
    ran = run("run", job, *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "262,144 bytes" in ran.err


def test_a_file_that_packs_nothing_of_a_deployment_that_is_not_there_says_so(there: Account, job: Path) -> None:
    there.outputs.clear()
    ran = run("run", job, *YARD)
    assert (ran.code, started(there)) == (2, {})
    assert "there is no stack yard-foundation in eu-central-1" in ran.err


def test_choosing_a_name_says_what_is_allowed() -> None:
    with pytest.raises(CannotProceed, match="1 to 75 letters"):
        choose_name("a" * 76, "")

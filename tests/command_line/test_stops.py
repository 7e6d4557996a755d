"""Whatever a person lacks, or did wrong, is a line that says what to do, and exit code 2."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from botocore import exceptions as aws
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from contract.codec import Garbled
from localaws.testing.waiting import HANG_S
from tests.command_line.account import YARD, Account, run
from tests.fakes.faults import Kind
from trainyard.app import run_app
from trainyard.options import carry_out
from trainyard.printer import Printer
from trainyard.settings import name_deployment
from trainyard.stops import DEBUG, CannotProceed, explain, say_problem

ROOT = Path(__file__).parents[2]
DENIED = "User: arn:aws:iam::1:user/ada is not authorized to perform: states:StartExecution on resource: arn:aws:states:x because no policy"


def answer(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "StartExecution")


@pytest.mark.parametrize(
    ("problem", "begins", "has"),
    [
        (answer("ExpiredTokenException"), "credentials: they have expired", "aws sso login"),
        (answer("InvalidClientTokenId"), "credentials: AWS does not know them", "--profile"),
        (
            answer("AccessDeniedException", DENIED),
            "rights: AWS denies you states:StartExecution on arn:aws:states:x",
            "command-line.md",
        ),
        (answer("AccessDenied"), "rights: AWS denies you StartExecution", "command-line.md"),
        (answer("ThrottlingException"), "AWS throttles the account", "try again"),
        (answer("Strange", "Something new"), "AWS: ", "Something new"),
        (aws.NoCredentialsError(), "credentials: ", "AWS_PROFILE"),
        (aws.PartialCredentialsError(provider="env", cred_var="x"), "credentials: ", "aws configure"),
        (aws.ProfileNotFound(profile="none"), "--profile: ", "~/.aws/config"),
        (aws.UnauthorizedSSOTokenError(), "credentials: ", "aws sso login"),
        (aws.TokenRetrievalError(provider="sso", error_msg="x"), "credentials: ", "aws sso login"),
        (aws.EndpointConnectionError(endpoint_url="https://x"), "network: ", "--endpoint-url"),
        (aws.ConnectTimeoutError(endpoint_url="https://x"), "network: ", "a proxy"),
        (aws.ReadTimeoutError(endpoint_url="https://x"), "network: ", "a proxy"),
        (aws.SSLError(endpoint_url="https://x", error=ValueError("bad")), "network: ", "bad"),
        (ResponseParserError("no element found"), "network: ", "--endpoint-url"),
        (aws.NoRegionError(), "AWS: ", "region"),
        (PermissionError(13, "Permission denied", "/root/x"), "/root/x: Permission denied", ""),
        (Garbled("Job.nodes is missing"), "Job.nodes is missing", "another version"),
        (CannotProceed("--name: no"), "--name: no", ""),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_an_expected_error_is_a_line_with_what_to_do(problem: Exception, begins: str, has: str) -> None:
    told = explain(problem)
    assert told.startswith(begins)
    assert has in told
    assert "\n" not in told


def say(problem: Exception, *, as_json: bool = False) -> tuple[str, str]:
    """What is printed of an error, on stdout and on stderr."""
    out, err = io.StringIO(), io.StringIO()
    say_problem(problem, Printer(as_json=as_json, out=out, err=err))
    return out.getvalue(), err.getvalue()


FAULTS = [ValueError("x"), KeyError("x"), AssertionError("x"), OSError("no file"), RecursionError(), MemoryError()]


@pytest.mark.parametrize("problem", FAULTS)
def test_a_fault_of_this_program_is_a_line_that_says_how_to_see_its_traceback(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEBUG, raising=False)
    out, err = say(problem)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"a fault of trainyard: {type(problem).__name__}: ")
    assert "TRAINYARD_DEBUG=1" in err


@pytest.mark.parametrize("problem", FAULTS)
def test_a_fault_of_this_program_keeps_its_traceback_where_a_person_wants_it(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEBUG, "1")
    with pytest.raises(type(problem)):
        say(problem)


@pytest.mark.parametrize(
    ("problem", "word"),
    [(answer("ThrottlingException"), "ThrottlingException"), (CannotProceed("a\nb"), "CannotProceed")],
)
def test_an_error_is_a_document_for_a_program(problem: Exception, word: str) -> None:
    out, err = say(problem, as_json=True)
    document = json.loads(out)
    assert (document["error"], document["cause"]) == (word, err.rstrip("\n"))


def test_every_command_that_cannot_be_carried_out_prints_a_document_for_a_program(there: Account) -> None:
    there.outputs.clear()
    ran = run("status", "digits", "--json", *YARD)
    (document,) = ran.documents
    assert (ran.code, document["error"]) == (2, "CannotProceed")
    assert document["cause"].startswith("deployment: there is no stack yard-foundation")


@pytest.mark.parametrize("arguments", [["status", "--none", "--json"], ["logs", "--json"]], ids=str)
def test_a_wrong_command_line_is_a_document_for_a_program(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(arguments) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["cause"] in err


def test_words_of_aws_steer_no_terminal() -> None:
    assert not {"\x1b", "\u202e"} & set(say(answer("Strange", "\x1b[2J\u202e"))[1])


@pytest.mark.parametrize(
    "url", ["nonsense", "localhost:5000", "ftp://x", "http://", "http://a b", "http://x:99999", "http://[::1"]
)
def test_an_endpoint_that_is_no_address_is_refused_before_anything_is_called(
    there: Account, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    ran = run("status", "--endpoint-url", url, *YARD)
    assert (ran.code, ran.err.count("\n"), there.calls) == (2, 1, [])
    assert ran.err.startswith(f"--endpoint-url: {url} is not an address; allowed: one such as https://")


def test_an_endpoint_of_the_variable_that_is_no_address_is_refused_too(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    assert (run("status", *YARD).code, there.calls) == (2, [])


def test_an_endpoint_of_a_single_service_that_is_no_address_is_one_line() -> None:
    assert explain(ValueError("Invalid endpoint: nonsense")).startswith(
        "--endpoint-url: Invalid endpoint: nonsense; allowed: "
    )


@pytest.mark.parametrize("stack", ["yard-foundation", "yard-workflow"])
def test_a_stack_without_outputs_is_one_line(there: Account, stack: str) -> None:
    there.outputs[stack] = {}
    ran = run("status", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.startswith(f"deployment: the stack {stack} in eu-central-1 has no output ")
    assert "allowed: wait until it has, or `make deploy` of this version" in ran.err


def test_an_output_that_is_no_machine_is_one_line(there: Account) -> None:
    there.outputs["yard-workflow"]["TrainMachine"] = "x"
    ran = run("status", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "TrainMachine, or a strange one" in ran.err


@pytest.mark.parametrize(
    "command", [["status", "\udcff"], ["report", "\udcff"], ["status", "--deployment", "\udcff"]], ids=ascii
)
def test_an_argument_that_is_no_text_is_refused_before_anything_is_called(there: Account, command: list[str]) -> None:
    ran = run(*command, "--region", "eu-central-1")
    assert (ran.code, there.calls) == (2, [])
    assert "is not text in UTF-8" in ran.err


@pytest.mark.parametrize("pause", ["nan", "inf", "-inf", "0", "-1", "3601"])
def test_a_pause_that_no_clock_can_wait_is_refused(there: Account, pause: str) -> None:
    ran = run("status", "digits", "-f", "--every", pause, *YARD)
    assert (ran.code, there.calls) == (2, [])
    assert "--every" in ran.err


class Closed(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_output_that_is_read_no_longer_ends_the_command_quietly() -> None:
    err = io.StringIO()
    for as_json in (False, True):
        printer = Printer(as_json=as_json, out=Closed(), err=err)

        def print_all(printer: Printer = printer) -> int:
            printer.document({})
            printer.table(["a"], [("b",)])
            return 0

        assert carry_out(print_all, {}, printer) == 130
    assert err.getvalue() == ""


def test_a_deployment_that_is_not_there_is_one_line(there: Account) -> None:
    there.outputs.clear()
    for arguments in (
        ["status"],
        ["logs", "x"],
        ["stop", "x"],
        ["artifacts", "x"],
        ["report", "x"],
        ["grid", "results", "x"],
    ):
        ran = run(*arguments, *YARD)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(
            "deployment: there is no stack yard-foundation in eu-central-1, so yard is not deployed there; allowed: "
        )


def test_a_deployment_that_is_half_there_is_one_line(there: Account) -> None:
    del there.outputs["yard-workflow"]
    assert "there is no stack yard-workflow" in run("status", *YARD).err


@pytest.mark.parametrize("operation", ["cloudformation:DescribeStacks", "stepfunctions:ListExecutions"])
def test_a_right_that_is_missing_is_named(there: Account, operation: str) -> None:
    there.denied = {operation}
    ran = run("status", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert operation in ran.err


@pytest.mark.parametrize(("kind", "words"), [(Kind.THROTTLED, "throttles"), (Kind.UNREACHABLE, "network: ")])
def test_a_service_that_does_not_answer_is_one_line(
    there: Account, kind: Kind, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time", there.clock)
    there.faults.add(kind, "cloudformation:*", times=99)
    ran = run("status", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert words in ran.err


@pytest.mark.parametrize(
    "option",
    [["--deployment", "Yard"], ["--deployment", ""], ["--region", "mars"], ["--region", "eu central"]],
    ids=str,
)
def test_a_deployment_that_cannot_be_is_refused_before_anything_is_called(there: Account, option: list[str]) -> None:
    ran = run("status", *option)
    if option[1]:
        assert (ran.code, there.calls) == (2, [])
        assert ran.err.startswith(option[0])


def test_name_and_region_come_from_the_settings(tmp_path: Path) -> None:
    from trainyard.settings import SettingsFile

    assert name_deployment(SettingsFile(tmp_path, {"deployment": "mine", "home_region": "us-east-1"}), None, None) == (
        "mine",
        "us-east-1",
    )
    assert name_deployment(SettingsFile(tmp_path, {}), None, None) == ("trainyard", "eu-central-1")
    with pytest.raises(CannotProceed):
        name_deployment(SettingsFile(tmp_path, {"home_region": "eu-central-1", "regions": []}), None, None)


@pytest.mark.parametrize("arguments", [["none"], ["status", "--none"], ["logs"], ["run"], ["check"], ["grid"]], ids=str)
def test_a_wrong_command_line_has_exit_code_2_and_no_traceback(arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err + ran.out


def spawn(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, of a person without credentials."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    nowhere = {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    path = os.pathsep.join([str(ROOT), str(ROOT / "lambda"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-P", "-m", "trainyard", *arguments]
    return subprocess.run(
        command,
        env={**kept, **nowhere, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


def test_without_credentials_each_command_is_one_line() -> None:
    ended = spawn("status", *YARD)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith("credentials: ")


def test_a_profile_that_is_none_is_one_line() -> None:
    ended = spawn("status", "--profile", "none", *YARD)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("--profile: ")


def test_an_endpoint_that_does_not_answer_is_one_line() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        # The socket keeps its port until the end, so that no other server answers there.
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_MAX_ATTEMPTS": "1"}
        ended = spawn("status", "--endpoint-url", url, *YARD, **keys)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("network: ")


def test_the_help_imports_neither_boto3_nor_the_cdk() -> None:
    code = "import sys; from trainyard.app import app; print(sorted({'boto3', 'aws_cdk', 'pydantic', 'rich'} & set(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert ended.stdout == "[]\n"


def test_every_command_has_an_example_in_its_help() -> None:
    for command in (
        ["check"], ["run"], ["status"], ["logs"], ["stop"], ["artifacts"], ["report"], ["doctor"],
        ["grid", "run"], ["grid", "status"], ["grid", "results"], ["search", "run"], ["search", "status"],
    ):  # fmt: skip
        ran = run(*command, "--help")
        assert ran.code == 0
        assert f"Example: trainyard {' '.join(command)}" in ran.out
        assert "--json" in ran.out
        assert "--endpoint-url" in ran.out

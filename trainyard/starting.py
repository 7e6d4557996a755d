"""The command `run`: packs and uploads the code, asks for price and ladder, starts the job, and follows it."""

from __future__ import annotations

import hashlib
import json
import re
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from aws.clients import BRISK, client
from aws.facts import Status
from contract import keys, names
from contract.aws_errors import code_of
from contract.campaigns import Started
from contract.execution_facts import RUNNING
from pages.words import entry_of, finite, usd
from trainyard import interrupts
from trainyard.deployment import Deployment
from trainyard.following import EVERY_S, follow_job, read_followed
from trainyard.options import Command
from trainyard.packing import pack
from trainyard.patience import PatientReader, Timekeeper, keep_following, name_status
from trainyard.printer import Printer
from trainyard.settings import read_object
from trainyard.stops import CannotProceed, CommandExit, OutputFailed, is_without_answer, say_problem
from trainyard.watching import Watched, read_execution

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_stepfunctions.client import SFNClient

PLAN = "-plan"
"""Behind the job's name in that of its dry run: an execution's name is taken for 90 days."""
NAME_LONGEST = 80
DIGITS = 16
"""Of the digest of an upload, in its key."""
PLAN_S = 240.0
"""Admit may take three minutes."""
LOOK_S = 1.0
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, ArithmeticError)
"""What reading an answer raises that is none of Step Functions."""


def run(
    command: Command,
    file: Path,
    *,
    code: Path | None,
    name: str | None,
    dry_run: bool,
    follow: bool,
    every_s: float = EVERY_S,
) -> int:
    """Returns the exit code."""
    printer = command.printer
    given = read_request(file)
    name = choose_name(name, (code or file.with_suffix("")).resolve().name)
    with interrupts.explain(f"interrupted; {name} was not started"):
        deployment = command.open_deployment()
        require_free(deployment, "job", name)
        if code is not None:
            given["code"] = upload_code(deployment, code, name, printer)
        wanted = given.pop("dry_run", False) is True or dry_run
        planned = plan(deployment, given, name, printer)
    if planned.status.name != "SUCCEEDED":
        printer.document(
            {"job": name, "status": "refused", "error": planned.status.error, "cause": planned.status.cause}
        )
        printer.complain(
            f"{planned.status.error or planned.status.name}: {planned.status.cause or 'no reason was given'}"
        )
        return CommandExit.STOPPED
    show_plan(name, planned.output, printer, is_last=wanted)
    if wanted:
        return CommandExit.DONE
    return begin(
        deployment,
        "job",
        name,
        given,
        printer,
        (lambda job: follow_job(deployment, job, printer, every_s=every_s)) if follow else None,
    )


def begin(
    deployment: Deployment,
    kind: str,
    name: str,
    given: Mapping[str, Any],
    printer: Printer,
    follow: Callable[[Watched], int] | None,
) -> int:
    """Starts an execution and, if wanted, follows it. Whatever ends the command from the start on, it says which execution may run."""

    def show(started: Watched) -> int:
        printer.document({kind: name, "started": started.arn, "links": started.links(deployment)})
        if not printer.as_json:
            printer.say(f"started: {name}, {started.links(deployment)['execution']}")
        if follow is not None:
            return follow(started)
        printer.say(f"to follow it: {name_status(kind, name)} -f; to stop it: trainyard stop {name}")
        return CommandExit.DONE

    unsure = f"{name} may have been started; to see it: {name_status(kind, name)}; to stop it: trainyard stop {name}"
    try:
        return _start_or_be_unsure(
            lambda: start(deployment, kind, name, given),
            lambda started: keep_following(kind, name, printer, lambda: show(started)),
            unsure,
            printer,
        )
    except OutputFailed as problem:
        printer.complain(f"{problem}\n{unsure}")
        return CommandExit.LEFT


def _start_or_be_unsure(
    begin: Callable[[], Watched], follow: Callable[[Watched], int], unsure: str, printer: Printer
) -> int:
    """Says so where it is not known whether the execution was started."""
    try:
        return follow(begin())
    except KeyboardInterrupt:
        printer.document({"error": KeyboardInterrupt.__name__, "cause": unsure})
    except Exception as problem:
        if not is_without_answer(problem):
            raise
        say_problem(problem, printer)
    printer.say(unsure)
    return CommandExit.LEFT


def read_request(file: Path) -> dict[str, Any]:
    """Reads a job's request. Raises CannotProceed for the input of a grid or a search, which other commands start."""
    given = read_object(file)
    if (kind := Started.of_input(given)) is not Started.JOB:
        raise CannotProceed(
            f"{file}: is the input of a {kind.value}; allowed: the request of a job, or `trainyard {kind.value} run`"
        )
    return given


def choose_name(named: str | None, origin: str) -> str:
    """Returns the execution's name: a person's own, or one made of a file's name and the time. Raises CannotProceed."""
    if named is None:
        plain = unicodedata.normalize("NFKD", origin).encode("ascii", "ignore").decode()
        ending = time.strftime("-%m%d-%H%M%S", time.localtime())
        words = re.sub("[^A-Za-z0-9]+", "-", plain).strip("-")[: NAME_LONGEST - len(ending) - len(PLAN)].rstrip("-")
        return f"{words or 'job'}{ending}"
    longest = NAME_LONGEST - len(PLAN)
    if not names.JOB_PATTERN.fullmatch(named) or len(named) > longest:
        raise CannotProceed(f"--name: {named} cannot be a name; allowed: {names.JOB_WORDS.replace('80', str(longest))}")
    return named


def upload_code(deployment: Deployment, folder: Path, name: str, printer: Printer) -> str:
    """Packs the folder, uploads it, and returns its address."""
    with TemporaryDirectory() as work:
        packed = pack(folder, Path(work, "code.tar.gz"))
        printer.say(f"code: {packed.describe()}")
        return upload(deployment, packed.path, name, ".tar.gz")


def upload(deployment: Deployment, path: Path, name: str, ending: str) -> str:
    """Uploads a file to the home bucket, in parts where it is large; returns its address. The digest of what it holds is in its key: of two
    persons who start the same name at once, none replaces what the other's execution reads."""
    from boto3.exceptions import S3UploadFailedError

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]
    key = f"{keys.UPLOADS}{name}-{digest}{ending}"
    s3: S3Client = client("s3", deployment.region)
    try:
        s3.upload_file(str(path), deployment.home_bucket, key)
    except S3UploadFailedError as problem:
        raise problem.__cause__ or problem.__context__ or problem from None
    return f"s3://{deployment.home_bucket}/{key}"


def plan(
    deployment: Deployment, given: Mapping[str, Any], name: str, printer: Printer, clock: Timekeeper | None = None
) -> Watched:
    """Has Admit check and price the request; returns the execution of the dry run once it has ended."""
    execution = start(deployment, "job", _name_plan(deployment, name), {**given, "dry_run": True})
    patience = PatientReader(printer.say, clock or Timekeeper())
    until = patience.clock.now() + PLAN_S
    while True:
        now = read_followed(deployment, execution, patience)
        if not now.status.runs:
            return now
        if patience.clock.now() > until:
            raise CannotProceed(
                f"plan: the execution {execution.name} still runs after {PLAN_S:.0f} s; the console says why"
            )
        patience.clock.sleep(LOOK_S)


def _name_plan(deployment: Deployment, name: str) -> str:
    """A person may plan a job again before it is started: each dry run has a name of its own."""
    first = f"{name}{PLAN}"
    if read_execution(deployment, "job", first) is None:
        return first
    ending = f"{PLAN}{time.time_ns() // 1_000_000:x}"
    return f"{name[: NAME_LONGEST - len(ending)]}{ending}"


def show_plan(name: str, planned: Mapping[str, Any], printer: Printer, *, is_last: bool) -> None:
    """Prints the ladder and the price."""
    printer.document({"job": name, "plan": dict(planned)})
    if printer.as_json:
        return
    rungs = [str(rung).split(", ", 2) for rung in list_entries(planned, "ladder")]
    rows = [(number, *rung, *[""] * (3 - len(rung))) for number, rung in enumerate(rungs, 1)]
    printer.table(["", "place", "market", "price of a node"], rows, "places, in the order in which they are tried:")
    for what in ("network", "mounts", "left_out"):
        for line in list_entries(planned, what):
            printer.say(f"{what.replace('_', ' ')}: {line}")
    if planned.get("resumes"):
        printer.say(f"begins from: {planned['resumes']}")
    estimate = entry_of(planned, "estimate")
    most = finite(estimate.get("usd_at_most"))
    printer.say(f"cost: {'unknown' if most is None else f'{usd(most)} at most'}. {estimate.get('words', '')}")
    if is_last:
        printer.say("nothing was started (dry run)")


def list_entries(document: Mapping[str, Any], name: str) -> list[Any]:
    """Returns a list of a document; an empty one where there is none."""
    found = document.get(name)
    return found if isinstance(found, list) else []


def require_free(deployment: Deployment, kind: str, name: str) -> None:
    """Raises CannotProceed where an execution has the name, whose upload would be replaced, or where the kind is not deployed."""
    deployment.machine(kind)
    if read_execution(deployment, kind, name) is not None:
        raise _name_taken(name)


def _name_taken(name: str) -> CannotProceed:
    return CannotProceed(
        f"--name: {name} is the name of an earlier execution; allowed: a name that none had in 90 days"
    )


def start(deployment: Deployment, kind: str, name: str, given: Mapping[str, Any]) -> Watched:
    """Starts an execution. Raises CannotProceed where the name is taken, or the input too large, and ResponseParserError where the answer
    cannot be read."""
    states: SFNClient = client("stepfunctions", None, BRISK)
    machine, text = deployment.machine(kind), json.dumps(given)
    try:
        answer = states.start_execution(stateMachineArn=machine, name=name, input=text)
        # Step Functions may not know it yet where it is asked.
        return Watched(
            kind=kind,
            name=name,
            arn=answer["executionArn"],
            status=Status(name=RUNNING, started_at=answer["startDate"].timestamp()),
            given=given,
            output={},
        )
    except ClientError as problem:
        if code_of(problem) == "ExecutionAlreadyExists":
            raise _name_taken(name) from None
        if code_of(problem) in {"InvalidName", "InvalidExecutionInput", "ValidationException"}:
            raise CannotProceed(
                f"request: Step Functions does not take it: {problem}; allowed: up to 262,144 bytes of JSON"
            ) from None
        raise
    except UNREADABLE as problem:
        raise ResponseParserError(f"StartExecution: {problem!r}") from None

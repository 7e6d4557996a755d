"""The command `run`: packs and uploads the code, asks for price and ladder, starts the job, and follows it."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws import executions
from aws.clients import BRISK, client
from contract import keys, names
from contract.aws_errors import code_of
from contract.campaigns import Started
from trainyard.deployment import Deployment
from trainyard.following import EVERY_S, follow_job
from trainyard.options import Command
from trainyard.packing import pack
from trainyard.printer import Printer
from trainyard.settings import read_object
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import Watched, find, read_execution

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client
    from types_boto3_stepfunctions.client import SFNClient

PLAN = "-plan"
"""Behind the job's name in that of its dry run: an execution's name is taken for 90 days."""
NAME_LONGEST = 80
PLAN_S = 240.0
"""Admit may take three minutes."""
LOOK_S = 1.0


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
    deployment = command.open_deployment()
    if code is not None:
        given["code"] = upload_code(deployment, code, name, printer)
    wanted = given.pop("dry_run", False) is True or dry_run
    planned = plan(deployment, given, name)
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
    job = start(deployment, "job", name, given)
    printer.document({"job": name, "started": job.arn, "links": job.links(deployment)})
    if not printer.as_json:
        printer.say(f"started: {name}, {job.links(deployment)['execution']}")
    if not follow:
        printer.say(f"to follow it: trainyard status {name} -f; to stop it: trainyard stop {name}")
        return CommandExit.DONE
    return follow_until_interrupted(deployment, job, printer, every_s=every_s)


def follow_until_interrupted(deployment: Deployment, job: Watched, printer: Printer, *, every_s: float) -> int:
    """Follows the job; Ctrl-C ends that, and not the job."""
    try:
        return follow_job(deployment, job, printer, every_s=every_s)
    except KeyboardInterrupt:
        say_left(job, printer)
        return CommandExit.LEFT


def say_left(execution: Watched, printer: Printer) -> None:
    """Says what goes on, how to follow it, and how to stop it."""
    name = execution.name
    command = "status" if execution.kind == "job" else f"{execution.kind} status"
    printer.say(f"{name} goes on; to follow it again: trainyard {command} {name} -f; to stop it: trainyard stop {name}")


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
    key = f"{keys.UPLOADS}{name}.tar.gz"
    with TemporaryDirectory() as work:
        packed = pack(folder, Path(work, "code.tar.gz"))
        printer.say(f"code: {packed.describe()}")
        upload(deployment, packed.path, key)
    return f"s3://{deployment.home_bucket}/{key}"


def upload(deployment: Deployment, path: Path, key: str) -> str:
    """Uploads a file to the home bucket, in parts where it is large; returns its address."""
    from boto3.exceptions import S3UploadFailedError

    s3: S3Client = client("s3", deployment.region)
    try:
        s3.upload_file(str(path), deployment.home_bucket, key)
    except S3UploadFailedError as problem:
        raise problem.__cause__ or problem.__context__ or problem from None
    return f"s3://{deployment.home_bucket}/{key}"


def plan(deployment: Deployment, given: Mapping[str, Any], name: str) -> Watched:
    """Has Admit check and price the request; returns the execution of the dry run once it has ended."""
    execution = start(deployment, "job", _name_plan(deployment, name), {**given, "dry_run": True})
    until = time.monotonic() + PLAN_S
    while True:
        now = find(deployment, execution.name, ("job",))
        if not now.status.runs:
            return now
        if time.monotonic() > until:
            raise CannotProceed(
                f"plan: the execution {execution.name} still runs after {PLAN_S:.0f} s; the console says why"
            )
        time.sleep(LOOK_S)


def _name_plan(deployment: Deployment, name: str) -> str:
    """A person may plan a job again before it is started: each dry run has a name of its own."""
    first = f"{name}{PLAN}"
    if read_execution(deployment, "job", first) is None:
        return first
    ending = f"{PLAN}{time.time_ns() // 1_000_000:x}"
    return f"{name[: NAME_LONGEST - len(ending)]}{ending}"


def show_plan(name: str, planned: Mapping[str, Any], printer: Printer, *, is_last: bool) -> None:
    """Prints the ladder and the price."""
    estimate = planned.get("estimate") or {}
    printer.document({"job": name, "plan": dict(planned)})
    if printer.as_json:
        return
    rungs = [str(rung).split(", ", 2) for rung in planned.get("ladder", ())]
    rows = [(number, *rung, *[""] * (3 - len(rung))) for number, rung in enumerate(rungs, 1)]
    printer.table(["", "place", "market", "price of a node"], rows, "places, in the order in which they are tried:")
    for what in ("network", "mounts", "left_out"):
        for line in planned.get(what) or ():
            printer.say(f"{what.replace('_', ' ')}: {line}")
    if planned.get("resumes"):
        printer.say(f"begins from: {planned['resumes']}")
    most = estimate.get("usd_at_most")
    printer.say(
        f"cost: {f'${most:,.2f} at most' if isinstance(most, int | float) else 'unknown'}. {estimate.get('words', '')}"
    )
    if is_last:
        printer.say("nothing was started (dry run)")


def start(deployment: Deployment, kind: str, name: str, given: Mapping[str, Any]) -> Watched:
    """Starts an execution. Raises CannotProceed where the name is taken, or the input too large."""
    states: SFNClient = client("stepfunctions", None, BRISK)
    try:
        states.start_execution(stateMachineArn=deployment.machine(kind), name=name, input=json.dumps(given))
    except ClientError as problem:
        if code_of(problem) == "ExecutionAlreadyExists":
            raise CannotProceed(
                f"--name: {name} is the name of an earlier execution; allowed: a name that none had in 90 days"
            ) from None
        if code_of(problem) in {"InvalidName", "InvalidExecutionInput", "ValidationException"}:
            raise CannotProceed(
                f"request: Step Functions does not take it: {problem}; allowed: up to 262,144 bytes of JSON"
            ) from None
        raise
    arn = executions.name_arn(deployment.machine(kind), name)
    found = read_execution(deployment, kind, name)
    if found is None:
        raise CannotProceed(f"{name}: Step Functions does not know the execution that it started, {arn}")
    return found

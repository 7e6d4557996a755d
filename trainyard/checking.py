"""The command `check`: reads a request, an input or a manifest offline, and prints what the deployed functions would say of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from contract import keys, names
from contract.campaigns import Started
from trainyard import interrupts
from trainyard.settings import read_object
from trainyard.stops import CannotProceed, CommandExit

if TYPE_CHECKING:
    from stacks.settings import Settings
    from trainyard.offline import Supposed
    from trainyard.options import Command  # rehearsals check without Typer

MANIFESTS = (".csv", ".jsonl", ".ndjson")
"""Endings of manifests; every other file is a request or an input."""
OF_GRIDS = frozenset({"defaults", "sweep", "allow_duplicates"})
"""Fields that no request of a job has."""
NEEDED_OF_IMAGES = frozenset({"repository", "tag"})
"""Fields that each input of an image build has."""
ANY_NAME = "check"
"""Stands for the name of the execution, which a person gives at the start."""


class Subject(str, Enum):
    """What a file is."""

    JOB = "job"
    GRID = "grid"
    SEARCH = "search"
    MANIFEST = "manifest"


@dataclass(frozen=True, slots=True)
class FileFindings:
    """What stands against a file, in the words of the functions, and what only AWS knows."""

    subject: Subject
    refusal: str
    """Whole, with its first line; empty where nothing was found."""
    unknown: list[str]
    warnings: list[str] = field(default_factory=list)
    """What a person may not mean, although nothing stands against it."""

    @property
    def problems(self) -> list[str]:
        """A line each."""
        return [line.removeprefix("- ") for line in self.refusal.splitlines()[1:]]


def check(command: Command, file: Path, *, code: Path | None, given: Path | None, name: str | None) -> int:
    """Returns the exit code: that of a command that cannot be carried out where something stands against the file."""
    printer = command.printer
    with interrupts.explain("interrupted"):
        found = examine(file, command.parse_settings(), code=code, given=given, name=name)
    printer.document(
        {
            "file": str(file),
            "is": found.subject.value,
            "ok": not found.refusal,
            "problems": found.problems,
            "warnings": found.warnings,
            "unknown": found.unknown,
        }
    )
    if found.refusal:
        printer.complain(
            found.refusal.replace("was refused", "would be refused", 1).replace("was started", "would be started", 1)
        )
    elif not printer.as_json:
        printer.say(f"{file}: nothing stands against this {found.subject.value}, as far as it can be seen without AWS.")
    if not printer.as_json:
        for line in found.warnings:
            printer.say(f"  warning: {line}")
        for line in found.unknown:
            printer.say(f"  not checked: {line}")
    return CommandExit.STOPPED if found.refusal else CommandExit.DONE


def examine(file: Path, settings: Settings, *, code: Path | None, given: Path | None, name: str | None) -> FileFindings:
    """Reads the file as what it is. Raises CannotProceed where it cannot be read."""
    if file.suffix.lower() in MANIFESTS:
        return _examine_manifest(file, settings, read_object(given) if given else {})
    if given is not None:
        raise CannotProceed(
            f"--input: {file} is no manifest; allowed: beside a manifest ({', '.join(MANIFESTS)}), or left out"
        )
    found = read_object(file)
    match Started.of_input(found):
        case Started.SEARCH:
            return examine_search(found, settings)
        case Started.JOB if not OF_GRIDS & found.keys():
            require_subject(file, found)
            return _examine_job_with_code(found, settings, code, name or ANY_NAME)
    return examine_grid(found, settings)


def require_subject(file: Path, found: Mapping[str, Any]) -> None:
    """Raises CannotProceed for the input of an image build, and for settings: neither has a field of a job's request."""
    from image_build.request import ImageRequest
    from job_requests.request import JobRequest
    from stacks.settings import Settings

    if found.keys() & JobRequest.model_fields.keys():
        return
    if NEEDED_OF_IMAGES & found.keys() and found.keys() <= ImageRequest.model_fields.keys() | {"copy"}:
        what = "the input of an image build"
    elif found.keys() & {*Settings.model_fields, "app"}:
        what = "settings of a deployment"
    else:
        return
    raise CannotProceed(
        f"{file}: is {what}, which `check` does not read; allowed: the request of a job, the input of a grid or of a search, or a "
        f"manifest ({', '.join(MANIFESTS)})"
    )


def _examine_job_with_code(given: Mapping[str, Any], settings: Settings, code: Path | None, name: str) -> FileFindings:
    if code is None:
        return examine_job(given, settings, name)
    from trainyard.packing import pack

    stem = name if names.JOB_PATTERN.fullmatch(name) else ANY_NAME  # Admit says what is wrong with a name
    with TemporaryDirectory() as folder:
        return examine_job(given, settings, name, pack(code, Path(folder, f"{stem}.tar.gz")).path)


def examine_job(
    given: Mapping[str, Any],
    settings: Settings,
    name: str = ANY_NAME,
    archive: Path | None = None,
    *,
    shown: str = "",
    account: str = "",
) -> FileFindings:
    """Judges the request of a job. `archive` takes the place of its code, and is called `shown` in a refusal (by the address of its upload
    where that is empty). `account` is the deployment's, empty for the one that the request names."""
    from job_requests.roles import list_wanted_files
    from trainyard.offline import PackedCode, judge_job, list_unknown, read_request
    from trainyard.supposed import find_account, hide_account

    account = account or find_account(json.dumps(given), settings.deployment, settings.home_region)
    known = _suppose(settings, account)
    if archive is not None:
        given = {**given, "code": f"s3://{known.env.bucket}/{keys.UPLOADS}{archive.name}"}
        files = list_wanted_files(read_request(given, known)[0])
        known = replace(known, code=PackedCode.look_inside(archive, files, shown))
    refusal = judge_job(given, name, known, now=time.time())
    return FileFindings(Subject.JOB, hide_account(refusal), list_unknown(given, known))


def _suppose(settings: Settings, account: str) -> Supposed:
    """Returns what is known of jobs in this account without AWS."""
    from trainyard.offline import Supposed
    from trainyard.supposed import describe_admission, list_file_systems

    env = describe_admission(settings, account)
    return Supposed(
        env=env,
        account=account,
        partition=env.instance_profile.split(":")[1],
        file_systems=list_file_systems(settings),
        rules=settings.rules,
    )


def examine_grid(given: Mapping[str, Any], settings: Settings) -> FileFindings:
    """Judges the input of a grid, without its lines."""
    from grid_plan.policy import list_misreadings
    from grid_plan.problems import Report
    from grid_plan.request import NO_CATALOGUE, SOURCES, read

    if not given.keys() & set(SOURCES):
        given = {**given, SOURCES[0]: "s3://any/any"}  # `grid run` puts the uploaded manifest there
    request, _, problems = read(given, settings.grid.limits)
    warnings = list(list_misreadings(request.defaults))
    has_query = "query" in given
    if has_query and not settings.catalogue:
        problems.append(NO_CATALOGUE)
    lines = "The rows of the query" if has_query else "The lines (check the manifest's own file)"
    unknown = [f"{lines}, and all that they name."]
    refusal = str(Report(general=problems).refusal()) if problems else ""
    return FileFindings(Subject.GRID, refusal, unknown, [f"defaults.{one}" for one in warnings])


def examine_search(given: Mapping[str, Any], settings: Settings, *, account: str = "") -> FileFindings:
    """Judges the input of a search, and the form of the lines that its template makes. `account` as for a job."""
    from refusals.wording import refusal
    from searches.request import list_problems, list_warnings, read
    from searches.template import list_form_problems
    from trainyard.offline import SupposedFacts
    from trainyard.supposed import describe_grids, find_account, hide_account

    account = account or find_account(json.dumps(given), settings.deployment, settings.home_region)
    env, known = describe_grids(settings, account), _suppose(settings, account)
    of_lines = list_form_problems(given, env, settings.rules, known.env, SupposedFacts(known))
    problems, warnings = [*list_problems(given), *of_lines], list_warnings(read(given)[0])
    unknown = ["Whether what the template names is there, and the searches that the input names."]
    refusal_text = hide_account(str(refusal(problems))) if problems else ""
    return FileFindings(Subject.SEARCH, refusal_text, unknown, warnings)


def _examine_manifest(file: Path, settings: Settings, given: dict[str, Any]) -> FileFindings:
    from aws.executions import name_arn
    from grid_plan.planning import MOST_WARNINGS, Planner
    from grid_plan.request import read
    from grid_plan.training_arguments import GridRun
    from trainyard.offline import SupposedFacts
    from trainyard.supposed import describe_grids, find_account, hide_account

    try:
        body = file.read_bytes()
    except OSError as problem:
        raise CannotProceed(f"{file}: {problem.strerror}") from None
    named = f"{json.dumps(given)}\n{body.decode(errors='replace')}"
    account = find_account(named, settings.deployment, settings.home_region)
    env, known = describe_grids(settings, account), _suppose(settings, account)
    manifest = {"manifest": f"s3://{env.bucket}/{keys.UPLOADS}{file.name}"}
    request, defaults, problems = read({**given, **manifest}, env.limits)
    run = GridRun(grid=ANY_NAME, execution=name_arn(env.machine, ANY_NAME), started_at="", owner="")
    with file.open("rb") as lines:
        planner = Planner(request, run, env, defaults, settings.rules, known.env)
        checked = planner.check_form(lines, SupposedFacts(known))
    report, warnings = checked.report, checked.warnings.shortened(MOST_WARNINGS)
    report.general[:0] = problems
    unknown = [
        "Whether the data, the images and the instance types of the lines are there, and the code, the secrets and the jobs."
    ]
    if not given:
        unknown.insert(0, "Fields that an input beside the manifest gives to its lines (--input FILE reads one).")
    refusal = hide_account(str(report.refusal())) if report else ""
    return FileFindings(Subject.MANIFEST, refusal, unknown, [hide_account(one) for one in warnings])

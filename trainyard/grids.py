"""The commands of grids and of searches: run, status, results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aws.grids import GridStore
from aws.s3 import Bucket
from contract import names
from contract.codec import Garbled
from contract.execution_facts import explain_end
from contract.search import NAME_WORDS, PATTERN, SearchPrefix
from pages.words import count
from trainyard import interrupts
from trainyard.deployment import Deployment
from trainyard.following import EVERY_S, choose_exit, read_followed, show_time
from trainyard.options import Command
from trainyard.patience import PatientReader, Timekeeper, keep_following
from trainyard.printer import Printer
from trainyard.results import Shown, read_plan, read_results, read_trials
from trainyard.settings import read_object, refuse_sql
from trainyard.starting import begin, choose_name, require_free, upload
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import Watched, find, read_last_state

NO_LINES = "The input names no manifest: give one as MANIFEST, or `manifest` or `query` in --input."


def run_grid(
    command: Command,
    manifest: Path | None,
    *,
    given: Path | None,
    name: str | None,
    follow: bool,
    every_s: float = EVERY_S,
) -> int:
    """Returns the exit code."""
    request = read_object(given) if given else {}
    origin = manifest or given
    if origin is None or (manifest is None and not {"manifest", "query"} & request.keys()):
        raise CannotProceed(f"MANIFEST: is missing. {NO_LINES}")
    if manifest is not None:
        refuse_sql(manifest)
    if manifest is not None and not manifest.is_file():
        raise CannotProceed(f"MANIFEST: {manifest}: there is no such file; allowed: CSV or JSON Lines")
    name = choose_name(name, origin.resolve().stem)
    if not names.GRID_PATTERN.fullmatch(name):
        raise CannotProceed(f"--name: {name} cannot be a name; allowed: {names.GRID_WORDS}")
    with interrupts.explain(f"interrupted; {name} was not started"):
        deployment = command.open_deployment()
        require_free(deployment, "grid", name)
        if manifest is not None:
            request = {**request, "manifest": upload(deployment, manifest, name, manifest.suffix or ".csv")}
            command.printer.say(f"manifest: {request['manifest']}")
    return begin(deployment, "grid", name, request, command.printer, _follower(deployment, command, follow, every_s))


def run_search(command: Command, file: Path, *, name: str | None, follow: bool, every_s: float = EVERY_S) -> int:
    """Returns the exit code."""
    given = read_object(file)
    name = choose_name(name, file.resolve().stem)
    if not PATTERN.fullmatch(name):
        raise CannotProceed(f"--name: {name} cannot be a name; allowed: {NAME_WORDS}")
    with interrupts.explain(f"interrupted; {name} was not started"):
        deployment = command.open_deployment()
    return begin(deployment, "search", name, given, command.printer, _follower(deployment, command, follow, every_s))


def _follower(
    deployment: Deployment, command: Command, follow: bool, every_s: float
) -> Callable[[Watched], int] | None:
    return (lambda started: follow_campaign(deployment, started, command.printer, every_s=every_s)) if follow else None


def grid_status(command: Command, name: str, *, kind: str, follow: bool, every_s: float = EVERY_S) -> int:
    """Returns the exit code."""
    deployment = command.open_deployment()
    found = find(deployment, name, (kind,))
    return show_status(deployment, found, command.printer, follow=follow, every_s=every_s)


def show_status(deployment: Deployment, found: Watched, printer: Printer, *, follow: bool, every_s: float) -> int:
    """Prints how a grid or a search stands; if wanted, whatever changes until it ends. Returns the exit code."""
    if follow:
        return keep_following(
            found.kind, found.name, printer, lambda: follow_campaign(deployment, found, printer, every_s=every_s)
        )
    _report(found, describe(deployment, found), printer, Timekeeper().now())
    if not found.status.runs:
        # Results of a grid have a command of their own.
        _show_end(found, read_trials(deployment, found.name) if found.kind == "search" else None, printer)
    return CommandExit.DONE


def follow_campaign(
    deployment: Deployment, found: Watched, printer: Printer, *, every_s: float, clock: Timekeeper | None = None
) -> int:
    """Prints how a grid or a search stands whenever that changes until it ends, and then what came of it. Returns the exit code. Raises as
    `follow_job`."""
    clock = clock or Timekeeper()
    patience, last = PatientReader(printer.say, clock), ""
    while True:
        now = read_followed(deployment, found, patience)
        line = patience.read(lambda now=now: describe(deployment, now))  # type: ignore[misc]
        if line != last:
            last = line
            _report(found, line, printer, clock.now())
        if not now.status.runs:
            return _show_end(now, patience.read(lambda: read_end(deployment, found)), printer)
        clock.sleep(every_s)


def read_end(deployment: Deployment, found: Watched) -> Shown | None:
    """Returns the table of a grid or a search that has ended; None where there is none."""
    return (read_results if found.kind == "grid" else read_trials)(deployment, found.name)


def _report(found: Watched, line: str, printer: Printer, at: float) -> None:
    printer.document({found.kind: found.name, "at": at, "event": line})
    if not printer.as_json:
        printer.say(f"{show_time(at)}  {line}")


def describe(deployment: Deployment, found: Watched) -> str:
    """Says in a line how far a grid or a search has come."""
    state = read_last_state(found.arn) if found.status.runs else ""
    standing = f"{found.status.name}{f', {state}' if state else ''}"
    if found.kind == "search":
        prefix = SearchPrefix(found.name)
        rounds = [key for key, _, _ in Bucket(deployment.home_bucket, deployment.region).listed(prefix.rounds)]
        return f"{standing}: {count(len(rounds), 'round')}"
    store = GridStore(deployment.home_bucket)
    try:
        grid = read_plan(store, found.name)
    except Garbled as problem:
        return f"{standing}: its plan was written by another version ({problem})"
    if grid is None:
        return standing
    ended = sum(store.recorded(grid))
    where = ", ".join(f"{number} in {region}" for region, number in sorted(grid.regions.items()))
    return f"{standing}: {ended} of {grid.lines} lines have ended ({where})"


def _show_end(found: Watched, table: Shown | None, printer: Printer) -> int:
    """Prints how a grid or a search ended, and its table. Returns the exit code."""
    if found.status.name != "SUCCEEDED":
        error, cause = explain_end(found.status.name, found.status.error, found.status.cause)
        printer.document({found.kind: found.name, "status": found.status.name, "error": error, "cause": cause})
        printer.complain(f"{error}: {cause}")
    if table is not None:
        table.show(printer)
    return choose_exit(found)


def grid_results(command: Command, name: str) -> int:
    """Returns the exit code."""
    deployment = command.open_deployment()
    results = read_results(deployment, name)
    if results is None:
        raise _word_missing(find(deployment, name, ("grid",)))
    results.show(command.printer)
    return CommandExit.DONE


def _word_missing(grid: Watched) -> CannotProceed:
    """Says why a grid has no results."""
    if grid.status.runs:
        why = "no line of it has ended yet"
    elif grid.status.name == "SUCCEEDED":
        why = "it succeeded, but its results are gone"
    else:
        error, cause = explain_end(grid.status.name, grid.status.error, grid.status.cause)
        why = f"it has no results, because it ended before any line of it did: {grid.status.name}: {error}: {cause}".rstrip(
            "."
        )
    return CannotProceed(f"{grid.name}: {why}; `trainyard grid status {grid.name}` says how it stands")

"""The commands of grids and of searches: run, status, results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws.grids import GridStore
from aws.s3 import Bucket
from contract import keys, names
from contract.execution_facts import explain_end
from contract.search import NAME_WORDS, PATTERN, SearchPrefix
from trainyard.deployment import Deployment
from trainyard.following import EVERY_S, FORGOTTEN, Timekeeper, choose_exit, show_time
from trainyard.options import Command
from trainyard.printer import Printer
from trainyard.results import show_results, show_trials
from trainyard.settings import read_object
from trainyard.starting import choose_name, say_left, start, upload
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import Watched, find, read_execution, read_last_state

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
    if manifest is not None and not manifest.is_file():
        raise CannotProceed(f"MANIFEST: {manifest}: there is no such file; allowed: CSV or JSON Lines")
    name = choose_name(name, origin.resolve().stem)
    if not names.GRID_PATTERN.fullmatch(name):
        raise CannotProceed(f"--name: {name} cannot be a name; allowed: {names.GRID_WORDS}")
    deployment = command.open_deployment()
    if manifest is not None:
        ending = manifest.suffix or ".csv"
        request = {**request, "manifest": upload(deployment, manifest, f"{keys.UPLOADS}{name}{ending}")}
        command.printer.say(f"manifest: {request['manifest']}")
    return begin(deployment, "grid", name, request, command.printer, follow=follow, every_s=every_s)


def run_search(command: Command, file: Path, *, name: str | None, follow: bool, every_s: float = EVERY_S) -> int:
    """Returns the exit code."""
    given = read_object(file)
    name = choose_name(name, file.resolve().stem)
    if not PATTERN.fullmatch(name):
        raise CannotProceed(f"--name: {name} cannot be a name; allowed: {NAME_WORDS}")
    deployment = command.open_deployment()
    return begin(deployment, "search", name, given, command.printer, follow=follow, every_s=every_s)


def begin(
    deployment: Deployment,
    kind: str,
    name: str,
    given: Mapping[str, Any],
    printer: Printer,
    *,
    follow: bool,
    every_s: float,
) -> int:
    """Starts a grid or a search and, if wanted, follows it. Returns the exit code."""
    started = start(deployment, kind, name, given)
    printer.document({kind: name, "started": started.arn, "links": started.links(deployment)})
    if not printer.as_json:
        printer.say(f"started: {name}, {started.links(deployment)['execution']}")
    if follow:
        return show_status(deployment, started, printer, follow=True, every_s=every_s)
    printer.say(f"to follow it: trainyard {kind} status {name} -f; to stop it: trainyard stop {name}")
    return CommandExit.DONE


def grid_status(command: Command, name: str, *, kind: str, follow: bool, every_s: float = EVERY_S) -> int:
    """Returns the exit code."""
    deployment = command.open_deployment()
    found = find(deployment, name, (kind,))
    return show_status(deployment, found, command.printer, follow=follow, every_s=every_s)


def show_status(deployment: Deployment, found: Watched, printer: Printer, *, follow: bool, every_s: float) -> int:
    """Prints how a grid or a search stands; if wanted, whatever changes until it ends. Returns the exit code."""
    clock, last = Timekeeper(), ""
    try:
        while True:
            line = describe(deployment, found)
            if line != last:
                last = line
                printer.document({found.kind: found.name, "at": clock.now(), "event": line})
                if not printer.as_json:
                    printer.say(f"{show_time(clock.now())}  {line}")
            if not found.status.runs:
                shows = follow or found.kind == "search"  # results of a grid have a command of their own
                code = _show_end(deployment, found, printer) if shows else CommandExit.DONE
                return code if follow else CommandExit.DONE
            if not follow:
                return CommandExit.DONE
            clock.sleep(every_s)
            now = read_execution(deployment, found.kind, found.name)
            if now is None:
                raise CannotProceed(f"{found.name}: {FORGOTTEN}")
            found = now
    except KeyboardInterrupt:
        say_left(found, printer)
        return CommandExit.LEFT


def describe(deployment: Deployment, found: Watched) -> str:
    """Says in a line how far a grid or a search has come."""
    state = read_last_state(found.arn) if found.status.runs else ""
    standing = f"{found.status.name}{f', {state}' if state else ''}"
    if found.kind == "search":
        prefix = SearchPrefix(found.name)
        rounds = [key for key, _, _ in Bucket(deployment.home_bucket, deployment.region).listed(prefix.rounds)]
        return f"{standing}: {len(rounds)} rounds"
    store = GridStore(deployment.home_bucket)
    grid = store.grid(found.name)
    if grid is None:
        return standing
    ended = sum(store.recorded(grid))
    where = ", ".join(f"{number} in {region}" for region, number in sorted(grid.regions.items()))
    return f"{standing}: {ended} of {grid.lines} lines have ended ({where})"


def _show_end(deployment: Deployment, found: Watched, printer: Printer) -> int:
    """Prints how a grid or a search ended, and its table. Returns the exit code."""
    if found.status.name != "SUCCEEDED":
        error, cause = explain_end(found.status.name, found.status.error, found.status.cause)
        printer.document({found.kind: found.name, "status": found.status.name, "error": error, "cause": cause})
        printer.complain(f"{error}: {cause}")
    if found.kind == "grid":
        show_results(deployment, found.name, printer)
    else:
        show_trials(deployment, found.name, printer)
    return choose_exit(found)


def grid_results(command: Command, name: str) -> int:
    """Returns the exit code."""
    deployment = command.open_deployment()
    if not show_results(deployment, name, command.printer):
        find(deployment, name, ("grid",))
        raise CannotProceed(f"{name}: no line of it has ended yet; `trainyard grid status {name}` says how it stands")
    return CommandExit.DONE

"""The command `report`: opens the page of a job, a grid or a search, or prints its report."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws.s3 import Bucket
from contract.keys import READ_AT
from trainyard.options import Command
from trainyard.patience import name_status
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import Watched, find

MOST_PAGE = 16 * 1024**2
"""Bytes of a page or a report, at most."""


def report(command: Command, name: str, *, kind: str | None, opens: bool) -> int:
    """Returns the exit code."""
    printer, deployment = command.printer, command.open_deployment()
    found = find(deployment, name, (kind,) if kind else ())
    home = Bucket(deployment.home_bucket, deployment.region)
    if printer.as_json:
        body = home.get(found.report, most=MOST_PAGE)
        if body is None:
            raise CannotProceed(f"{name}: there is no report yet ({_explain(found)})")
        printer.document(_read(body, found))
        return CommandExit.DONE
    page = home.get(found.page, most=MOST_PAGE)
    if page is None:
        raise CannotProceed(
            f"{name}: there is no page yet ({_explain(found)}); --json prints report.json, `trainyard status {name}` how it stands"
        )
    # A folder of its own: other users of the computer may neither read the page nor put another one in its place.
    path = Path(tempfile.mkdtemp(prefix="trainyard-"), f"{name}.html")
    path.write_bytes(page)
    printer.say(str(path))
    if is_older(found, home.read_marks(found.page) or {}):
        printer.say(
            f"the page is older than the end of the {found.kind} ({found.status.name}), and is written anew within ten minutes; meanwhile: "
            f"{name_status(found.kind, name)}"
        )
    if opens and not open_browser(path.as_uri()):
        printer.say("no browser was found: open the file yourself")
    return CommandExit.DONE


def is_older(found: Watched, marks: Mapping[str, str]) -> bool:
    """Whether the facts of a page, by its marks, were read before the execution ended; False where the page does not say when."""
    try:
        return found.status.ended_at is not None and float(marks[READ_AT]) < found.status.ended_at
    except (KeyError, ValueError):
        return False


def open_browser(address: str) -> bool:
    """Returns whether a browser was found."""
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False


def _read(body: bytes, found: Watched) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise CannotProceed(f"{found.name}: its report {found.report} is not JSON") from None


def _explain(found: Watched) -> str:
    if found.status.runs:
        return f"the {found.kind} runs"
    return f"the {found.kind} has ended: {found.status.name}; what it leaves is written within minutes, and nothing of one that was refused"

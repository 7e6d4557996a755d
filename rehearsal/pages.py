"""Leaves the page of a run beside everything else that a rehearsal leaves: what a person would open in the console."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from contract.keys import PAGE, WHOLE
from contract.links import ARTIFACTS_LINKED
from rehearsal.diagnosis import CONSOLE
from rehearsal.yard import StartedJob, Yard

EVERY_S = 0.3
LOOKS = 100
"""How often a page is looked at that is not final: its function may start anew, and a cleanup may still write the report."""
LOOKS_A_TICK = 10
"""After so many looks the page is asked for again."""
WRITER = "PageWriter"
ADDRESS = "(an address of the console)"
MAIN = '<main id="page">\n'
NOTICE = """<section class="unread" aria-label="Rehearsal">
<p>This is the page of a rehearsal: it ran on one computer, and no AWS account has it. Links to AWS's console are left out; logs, artifacts
and reports are files beside this page.</p>
</section>
"""
ARTIFACTS_BESIDE = "Its artifacts are in the folder artifacts beside this page."
_LINKS = re.compile(r'<h2>Links</h2>\n<ul class="links">\n.*?</ul>\n', re.DOTALL)
_LINE = re.compile(rf"^[^<>\n]*{CONSOLE.pattern}[^<>\n]*\n", re.MULTILINE)
"""A line of a text that is there for its address."""
_LINK = re.compile(r'<a href="https://[^"]*" rel="noopener noreferrer">(.*?)</a>')


def leave_page(
    job: StartedJob, key: str, out: Path, say: Callable[[str], object], *, pause: Callable[[float], object] = time.sleep
) -> Path | None:
    """Downloads the page of an execution into `out`, marked as a rehearsal's, and returns its file. The page is the final one, unless the
    execution runs or its report does not come: then it says so. Returns None, and says so, where there is no page."""
    client, home = job.yard.client("s3"), job.yard.places.home
    is_whole = _wait_until_whole(job, lambda: _is_whole(client, home, key), pause)
    if is_whole is None:
        say(f"no page was written: {key}")
        return None
    if not is_whole:
        say(f"the page is not final, as the execution runs or has no report yet: {key}")
    out.mkdir(parents=True, exist_ok=True)
    file = out / PAGE
    file.write_bytes(mark_page(client.get_object(Bucket=home, Key=key)["Body"].read()))
    return file


def mark_page(body: bytes) -> bytes:
    """Returns the page with the notice that it is a rehearsal's, and without links and addresses of AWS's console."""
    page = _LINK.sub(r"\1", _LINKS.sub("", body.decode()))
    page = CONSOLE.sub(ADDRESS, _LINE.sub("", page))
    page = page.replace(ARTIFACTS_LINKED, ARTIFACTS_BESIDE)
    before, main, after = page.partition(MAIN)
    return f"{before}{main}{NOTICE}{after}".encode()


def ask_for_pages(yard: Yard) -> None:
    """Calls the function that writes pages as its clock does, which would come five minutes later in an account."""
    functions = yard.client("lambda")
    listed = (
        one["FunctionName"]
        for page in functions.get_paginator("list_functions").paginate()
        for one in page["Functions"]
    )
    for writer in (name for name in listed if WRITER in name):
        with suppress(ClientError):  # throttled: it is called again
            functions.invoke(FunctionName=writer, Payload=b"{}")


def _wait_until_whole(
    job: StartedJob, is_whole: Callable[[], bool | None], pause: Callable[[float], object]
) -> bool | None:
    for look in range(LOOKS):
        if found := is_whole():
            return found
        if look % LOOKS_A_TICK == 0:
            if look and job.runs():
                break
            ask_for_pages(job.yard)
        pause(EVERY_S)
    return is_whole()


def _is_whole(client: Any, bucket: str, key: str) -> bool | None:
    """Returns whether the page has everything of the end; None where there is no page."""
    try:
        head = client.head_object(Bucket=bucket, Key=key)
    except ClientError:
        return None
    return bool(head["Metadata"].get(WHOLE) == "1")

"""Fetches the code of a request from git, once, and keeps it under the prefix of its job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import ClientError

from aws import secrets
from aws.facts import Object
from aws.s3 import HomeBucket
from contract import keys
from contract.aws_errors import code_of
from contract.jobs import Code
from job_requests.git import FETCH_S, FetchTrouble, GitCommit, NotFetched
from refusals.archive import Listing, listing

PROGRAM = "from admission.fetch_child import main; main()"
PASSED = ("PATH", "LANG", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy")
"""Variables that the child gets; no other, and so no credentials."""
NO_SECRET = frozenset(
    {"ResourceNotFoundException", "AccessDeniedException", "InvalidRequestException", "DecryptionFailure"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What is known of the commit."""

    code: Object | None = None
    archive: Listing | None = None
    problem: NotFetched | None = None


def fetch_commit(
    commit: GitCommit,
    job: str,
    home: HomeBucket,
    secret: str,
    folder: Path,
    kept: Collection[str],
    list_archive: Callable[[Object, Collection[str]], Listing | None],
) -> Fetched:
    """Returns the commit's archive under the job's prefix; where an earlier run of this step has not kept it, fetches it into
    `folder`. `kept`: files of which more than the name is needed."""
    key = keys.JobPrefix(job).code(commit.archive)
    if found := home.head(key):
        return Fetched(code=found, archive=list_archive(found, kept))
    try:
        token = secrets.value(secret) if secret else ""
    except ClientError as problem:
        if (code := code_of(problem)) not in NO_SECRET:
            raise
        return Fetched(problem=NotFetched(FetchTrouble.SECRET, code))
    if secret and not token:
        return Fetched(problem=NotFetched(FetchTrouble.SECRET, "it has no text"))
    archive = folder / commit.archive
    if trouble := run_child(commit, token, archive):
        return Fetched(problem=trouble)
    with archive.open("rb") as file:
        listed = listing(file, archive.name, _never, kept)
    return Fetched(code=Object(bucket=home.name, key=key, size=archive.stat().st_size, version=""), archive=listed)


def keep_archive(home: HomeBucket, code: Code | None, folder: Path) -> None:
    """Writes what was fetched, unless it is there. It is written before the job: from then on the host is not asked again."""
    if code and (archive := folder / code.key.rpartition("/")[2]).exists():
        home.ensure(code.key, archive.read_bytes(), "application/gzip")


def run_child(commit: GitCommit, token: str, archive: Path, *, limit_s: float = FETCH_S) -> NotFetched | None:
    """Fetches in a child process, which has the token from its input alone; returns why there is no archive."""
    variables = {name: os.environ[name] for name in PASSED if name in os.environ}
    order = {"url": commit.url, "commit": commit.commit, "token": token, "archive": str(archive)}
    try:
        done = subprocess.run(
            [sys.executable, "-S", "-P", "-c", PROGRAM],
            env={**variables, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            input=json.dumps(order).encode(),
            capture_output=True,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return NotFetched(FetchTrouble.LATE)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        # The kernel ended it at one of its limits, or memory was too short to say so.
        words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return NotFetched(FetchTrouble.LARGE, f"the fetch ended with {done.returncode}{f': {words}' if words else ''}")
    return NotFetched(FetchTrouble(said["trouble"]), said["said"]) if said else None


def _never() -> bool:
    return False

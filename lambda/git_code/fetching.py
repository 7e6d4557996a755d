"""Asks a git host, in a child process: for the files of a commit, or for the commit at the end of a branch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from botocore.exceptions import ClientError

from aws import secrets
from contract.aws_errors import code_of
from git_code.commit import COMMIT, FETCH_S, FetchTrouble, GitCommit, NotFetched

PROGRAM = "from git_code.fetch_child import main; main()"
PASSED = ("PATH", "LANG", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy")
"""Variables that the child gets; no other, and so no credentials."""
NO_SECRET = frozenset(
    {"ResourceNotFoundException", "AccessDeniedException", "InvalidRequestException", "DecryptionFailure"}
)


def fetch_archive(commit: GitCommit, secret: str, archive: Path) -> NotFetched | None:
    """Fetches the commit into `archive`; returns why there is none. `secret` names the secret with the host's token, empty for none."""
    token = read_token(secret)
    return token if isinstance(token, NotFetched) else run_child(commit, token, archive)


def find_head(url: str, branch: str, secret: str) -> str | NotFetched:
    """Returns the commit at the end of the branch, or why it is not known."""
    token = read_token(secret)
    if isinstance(token, NotFetched):
        return token
    said = _read(ask_child({"url": url, "branch": branch, "token": token}, FETCH_S))
    if isinstance(said, NotFetched):
        return said
    commit = said.get("commit", "")
    return commit if COMMIT.fullmatch(commit) else NotFetched(FetchTrouble.BROKEN, "it names no commit")


def read_token(secret: str) -> str | NotFetched:
    """Reads a host's token; empty for a host without a secret. Raises ClientError where Secrets Manager says nothing about it."""
    if not secret:
        return ""
    try:
        token = secrets.value(secret)
    except ClientError as problem:
        if (code := code_of(problem)) not in NO_SECRET:
            raise
        return NotFetched(FetchTrouble.SECRET, code)
    return token or NotFetched(FetchTrouble.SECRET, "it has no text")


def run_child(commit: GitCommit, token: str, archive: Path, *, limit_s: float = FETCH_S) -> NotFetched | None:
    """Fetches in a child process; returns why there is no archive."""
    order = {"url": commit.url, "commit": commit.commit, "token": token, "archive": str(archive)}
    said = _read(ask_child(order, limit_s))
    return said if isinstance(said, NotFetched) else None


def ask_child(order: Mapping[str, str], limit_s: float) -> NotFetched | dict[str, str]:
    """Runs the child and returns the document that it prints, or why it printed none. The child gets the token through its input alone."""
    variables = {name: os.environ[name] for name in PASSED if name in os.environ}
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
        return cast("dict[str, str]", json.loads(done.stdout))
    except ValueError:
        # The kernel ended it at one of its limits, or memory was too short to say so.
        words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return NotFetched(FetchTrouble.LARGE, f"the fetch ended with {done.returncode}{f': {words}' if words else ''}")


def _read(said: NotFetched | dict[str, str]) -> NotFetched | dict[str, str]:
    if isinstance(said, NotFetched) or "trouble" not in said:
        return said
    return NotFetched(FetchTrouble(said["trouble"]), said["said"])

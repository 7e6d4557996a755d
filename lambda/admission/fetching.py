"""Fetches the code of a request from git, once, and keeps it under the prefix of its job."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from aws.facts import Object
from aws.s3 import HomeBucket
from contract import keys
from contract.jobs import Code
from git_code.commit import GitCommit, NotFetched
from git_code.fetching import fetch_archive
from refusals.archive import Listing, listing


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
    archive = folder / commit.archive
    if trouble := fetch_archive(commit, secret, archive):
        return Fetched(problem=trouble)
    with archive.open("rb") as file:
        listed = listing(file, archive.name, _never, kept)
    return Fetched(code=Object(bucket=home.name, key=key, size=archive.stat().st_size, version=""), archive=listed)


def keep_archive(home: HomeBucket, code: Code | None, folder: Path) -> None:
    """Writes what was fetched, unless it is there. It is written before the job: from then on the host is not asked again."""
    if code and (archive := folder / code.key.rpartition("/")[2]).exists():
        home.ensure(code.key, archive.read_bytes(), "application/gzip")


def _never() -> bool:
    return False

"""S3 keys: decisions in the home bucket (JobPrefix), bytes in the bucket of the attempt's region (BytesPrefix)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

JOBS = "jobs/"
UPLOADS = "uploads/"
"""Prefix to which people upload code; Admit copies it from here, or from a data bucket of the settings."""
OWN_CONTEXTS = f"{UPLOADS}platform/"
"""Prefix to which a deploy uploads the build contexts of the platform's own images."""
AGENTS = "agents/"
"""Prefix of node agents, each under its digest; Admit writes them here, and nodes may read all of them."""
CONTROL = "control/"
"""Prefix of task tokens; nodes have no permission on it."""
URGENT_SUFFIX = ".urgent.json"

ANY_REPORT = f"{JOBS}*/attempts/*/nodes/*"
"""Patterns, for permissions and event rules, of the JobPrefix keys of any job, attempt and rank."""
ANY_URGENT = f"{ANY_REPORT}{URGENT_SUFFIX}"
ANY_ORDER = f"{JOBS}*/attempts/*/order.json"
ANY_INTENT = f"{JOBS}*/attempts/*/launch-*.json"
ANY_CLOSED = f"{JOBS}*/attempts/*/closed.json"
ANY_LIST = f"{JOBS}*/attempts/*/artifacts.json"
ANY_DESCRIPTION = f"{JOBS}*/job.json"
ANY_CODE = f"{JOBS}*/code/*"
ANY_RESULT = f"{JOBS}*/report.json"

ADMISSION = f"{CONTROL}admission.json"
"""Exists while admission is closed, by a destroy or a person: `{"closed": true, "reason": "..."}`."""
LAUNCHED_REGIONS = f"{CONTROL}regions/"
ANY_LAUNCHED_REGION = f"{LAUNCHED_REGIONS}*"
MARKS = f"{CONTROL}reaper/"
PASS = f"{CONTROL}attendant/pass.json"
"""Written by each pass of the attendant over all jobs, so that the next pass knows the time since the last one."""
ANY_MARKS = f"{MARKS}*"
ANY_OWN_CONTEXT = f"{OWN_CONTEXTS}*"
ANY_AGENT = f"{AGENTS}*"


def own_context(tag: str) -> str:
    """Key of the build context of the platform's own image with that tag."""
    return f"{OWN_CONTEXTS}{tag}.zip"


def agent(digest: str) -> str:
    """Key of the archive of the node agent with this SHA-256."""
    return f"{AGENTS}{digest}.zip"


def launched_region(region: str) -> str:
    """Key that exists once anything was launched in the region: from then on the reaper reads the region, whatever the settings say."""
    return f"{LAUNCHED_REGIONS}{region}"


def marks(region: str) -> str:
    """Key of what the reaper's last complete look at a region found suspicious."""
    return f"{MARKS}{region}.json"


class CommitKind(str, Enum):
    """The two folders of a job that are committed to S3."""

    CHECKPOINTS = "checkpoints"
    ARTIFACTS = "artifacts"


@dataclass(frozen=True, slots=True)
class JobPrefix:
    """Keys of a job's decisions, in the home bucket."""

    job: str

    @property
    def root(self) -> str:
        return f"{JOBS}{self.job}/"

    @property
    def description(self) -> str:
        return f"{self.root}job.json"

    @property
    def result(self) -> str:
        return f"{self.root}report.json"

    def code(self, archive: str) -> str:
        """`archive` is `code.tar`, `code.tar.gz` or `code.zip`."""
        return f"{self.root}code/{archive}"

    @property
    def attempts(self) -> str:
        return f"{self.root}attempts/"

    def attempt(self, attempt: int) -> str:
        return f"{self.attempts}{attempt}/"

    def attempt_of(self, key: str) -> int:
        """Returns the attempt of a key under `attempts`, 0 for any other key."""
        number = key.removeprefix(self.attempts).partition("/")[0]
        return int(number) if key.startswith(self.attempts) and number.isdecimal() else 0

    def intents(self, attempt: int) -> str:
        return f"{self.attempt(attempt)}launch-"

    def intent(self, attempt: int, walk: int) -> str:
        return f"{self.intents(attempt)}{walk}.json"

    def closed(self, attempt: int) -> str:
        """Key that exists once Terminate has begun to end the attempt: nothing is launched for it any more."""
        return f"{self.attempt(attempt)}closed.json"

    def reports(self, attempt: int) -> str:
        return f"{self.attempt(attempt)}nodes/"

    def report(self, attempt: int, rank: int) -> str:
        return f"{self.reports(attempt)}{rank:04d}.json"

    def urgent(self, attempt: int, rank: int) -> str:
        return f"{self.reports(attempt)}{rank:04d}{URGENT_SUFFIX}"

    def order(self, attempt: int) -> str:
        return f"{self.attempt(attempt)}order.json"

    def artifacts(self, attempt: int) -> str:
        """Key of the list that Sync writes after it has checked every object."""
        return f"{self.attempt(attempt)}artifacts.json"


@dataclass(frozen=True, slots=True)
class BytesPrefix:
    """Keys of a job's checkpoints and artifacts, in the bucket of the region where the attempt runs."""

    job: str

    @property
    def root(self) -> str:
        return f"{JOBS}{self.job}/"

    def commits(self, kind: CommitKind, attempt: int | None = None) -> str:
        whole = f"{self.root}commits/{kind.value}/"
        return whole if attempt is None else f"{whole}a{attempt:04d}/"

    def commit(self, kind: CommitKind, attempt: int, step: int, rank: int) -> str:
        return f"{self.commits(kind, attempt)}s{step:012d}/r{rank:04d}.json"

    def checkpoint(self, rank: int, sha256: str, path: str) -> str:
        """Key by content, so that a commit never changes under its readers; it ends with the file's own path."""
        return f"{self.checkpoints(rank)}{sha256[:16]}/{path}"

    def checkpoints(self, rank: int) -> str:
        """Prefix of every checkpoint file that a rank ever committed."""
        return f"{self.root}checkpoints/rank-{rank:04d}/"

    @property
    def artifacts(self) -> str:
        return f"{self.root}artifacts/"

    def artifact(self, rank: int, path: str) -> str:
        return f"{self.artifacts}rank-{rank:04d}/{path}"


TOKENS = f"{CONTROL}tokens/"


def tokens(job: str) -> str:
    return f"{TOKENS}{job}/"


BYTES_FOLDERS = (*(kind.value for kind in CommitKind), "commits")
"""Folders that nodes may write under their jobs, in buckets of bytes."""


_COMMIT = re.compile(r"/commits/[a-z]+/a(\d{4,})/s(\d{12,})/r(\d{4,})\.json$")


def commit_of(key: str) -> tuple[int, int, int] | None:
    """Returns attempt, step and rank of a key that BytesPrefix.commit made, None for any other key."""
    found = _COMMIT.search(key)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def token(job: str, attempt: int, digest: str) -> str:
    """Key of the task token of a waiting Train state; `digest` is the token's own, so that a dead token's record can be removed
    without touching the one that took its place."""
    return f"{tokens(job)}{attempt}-{digest[:16]}.json"


def job_of(key: str) -> str | None:
    """Returns the job of a key of JobPrefix, None for any other key."""
    parts = key.split("/")
    return parts[1] if len(parts) > 2 and parts[0] + "/" == JOBS and parts[1] else None

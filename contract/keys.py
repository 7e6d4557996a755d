"""S3 keys: what people and nodes read of a job in the home bucket (JobPrefix), bytes in the bucket of the attempt's region
(BytesPrefix). State is in the table: contract/items.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

JOBS = "jobs/"
UPLOADS = "uploads/"
"""Prefix to which people upload code; Admit copies it from here, or from a data bucket of the settings."""
OWN_IMAGES = "platform/"
"""Prefix of the platform's own images; no person and no job writes here."""
OWN_CONTEXTS = f"{OWN_IMAGES}contexts/"
"""Prefix to which a deploy uploads the build contexts of the platform's own images."""
OWN_RECORDS = f"{OWN_IMAGES}images/"
"""Prefix of what the builds of the platform's own images say of what they made; the role of these builds alone writes here."""
OWN_BASES = f"{OWN_IMAGES}bases/"
"""Prefix of the digests of base images; the first build that uses a base writes it, and no build writes it again."""
CONTEXTS = "contexts/"
"""Prefix of build contexts that the Build machine fetched from git; no person and no job writes here."""
AGENTS = "agents/"
"""Prefix of node agents, each under its digest; Admit writes them here, and nodes may read all of them."""
PAGE = "report.html"
"""Last part of the key of the page of a job, a grid or a search, beside its report.json."""
READ_AT, WHOLE = "read-at", "whole"
"""Metadata of a page: when its facts were read (UTC epoch seconds), and `1` once it has everything of an end."""

ANY_LIST = f"{JOBS}*/attempts/*/artifacts.json"
ANY_DESCRIPTION = f"{JOBS}*/job.json"
ANY_CODE = f"{JOBS}*/code/*"
ANY_RESULT = f"{JOBS}*/report.json"
ANY_PAGE = f"{JOBS}*/{PAGE}"
ANY_WAIT = f"{JOBS}*/waiting.json"
ANY_COMMIT = f"{JOBS}*/commits/*"
ANY_CLOSED = f"{JOBS}*/commits/checkpoints/*/closed.json"
ANY_OWN_CONTEXT = f"{OWN_CONTEXTS}*"
ANY_OWN_RECORD = f"{OWN_RECORDS}*"
ANY_OWN_BASE = f"{OWN_BASES}*"
ANY_AGENT = f"{AGENTS}*"
ANY_CONTEXT = f"{CONTEXTS}*"
"""Patterns, for permissions, of these keys of any job and attempt."""


def own_context(tag: str) -> str:
    """Key of the build context of the platform's own image with that tag."""
    return f"{OWN_CONTEXTS}{tag}.zip"


def fetched_context(url: str, commit: str) -> str:
    """Key of the build context that is this commit of the repository at `url`."""
    return f"{CONTEXTS}{sha256(url.encode()).hexdigest()[:16]}/{commit}.tar.gz"


def own_provenance(tag: str, digest: str) -> str:
    """Key of the provenance of the platform's own image with this tag and digest: it exists if a build of ours made the image."""
    return f"{OWN_RECORDS}{tag}/{digest.removeprefix('sha256:')}.provenance.json"


def own_parts(tag: str, digest: str) -> str:
    """Key of the list of parts (SBOM) of the same image."""
    return f"{OWN_RECORDS}{tag}/{digest.removeprefix('sha256:')}.sbom.json"


def own_base(address: str) -> str:
    """Key of the digest of the base image with this address."""
    return f"{OWN_BASES}{sha256(address.encode()).hexdigest()}.json"


def agent(digest: str) -> str:
    """Key of the archive of the node agent with this SHA-256."""
    return f"{AGENTS}{digest}.zip"


class CommitKind(str, Enum):
    """The two folders of a job that are committed to S3."""

    CHECKPOINTS = "checkpoints"
    ARTIFACTS = "artifacts"


@dataclass(frozen=True, slots=True)
class JobPrefix:
    """Keys of what people and nodes read of a job, in the home bucket."""

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

    @property
    def page(self) -> str:
        """Key of the page that shows a person the whole job."""
        return f"{self.root}{PAGE}"

    @property
    def wait(self) -> str:
        """Key of what people read of a job that waits for capacity: the rungs with their last answers, and the next try."""
        return f"{self.root}waiting.json"

    def code(self, archive: str) -> str:
        """`archive` is `code.tar`, `code.tar.gz` or `code.zip`, or `<commit>.tar.gz`."""
        return f"{self.root}code/{archive}"

    def artifacts(self, attempt: int) -> str:
        """Key of the list that Sync writes after it has checked every object."""
        return f"{self.root}attempts/{attempt}/artifacts.json"


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

    def of_set(self, attempt: int, number: int) -> str:
        """Prefix of a set: its plan, the part of each rank, and what closes it."""
        return f"{self.commits(CommitKind.CHECKPOINTS, attempt)}n{number:06d}/"

    def plan(self, attempt: int, number: int) -> str:
        return f"{self.of_set(attempt, number)}{PLAN}"

    def part(self, attempt: int, number: int, rank: int, ending: str = "json") -> str:
        """Key of what a rank has of the set. Its ending tells whether that is files (`json`)."""
        return f"{self.of_set(attempt, number)}r{rank:04d}.{ending}"

    def closed(self, attempt: int, number: int) -> str:
        """Key of the document that makes the parts of a set a checkpoint."""
        return f"{self.of_set(attempt, number)}{CLOSED}"

    def unusable(self, attempt: int, number: int) -> str:
        """Key of the document that says of a closed set that a rank cannot restore its part."""
        return f"{self.of_set(attempt, number)}{UNUSABLE}"

    def checkpoint(self, rank: int, name: str, path: str) -> str:
        """Key of a file that has an object of its own. `name` is one that no other content has, such as its SHA-256, so that a commit
        never changes under its readers; the key ends with the file's own path, or with its name alone where the path has more bytes than a
        key has room for, but for what a request to delete it could not say."""
        shown = path if len(path.encode()) <= KEY_BYTES else path.rpartition("/")[2]
        return f"{self.checkpoints(rank)}{name[:16]}/{_NO_XML.sub('_', shown)}"

    def pack(self, rank: int, digest: str) -> str:
        """Key of an object that holds many small files; `digest` is of what is in it."""
        return f"{self.checkpoints(rank)}{PACKS}{digest}"

    def checkpoints(self, rank: int) -> str:
        """Prefix of every checkpoint file that a rank ever committed."""
        return f"{self.root}checkpoints/rank-{rank:04d}/"

    def remote(self, attempt: int) -> str:
        """Prefix of the commands that rank 0's mpirun starts on other nodes, and of their ends. It lies beside the commits, where the nodes
        of the job alone may read and write."""
        return f"{self.root}commits/remote/a{attempt:04d}/"

    def remote_command(self, attempt: int, rank: int) -> str:
        """Key of the command for a rank: `{"command": ...}`."""
        return f"{self.remote(attempt)}r{rank:04d}.json"

    def remote_end(self, attempt: int, rank: int) -> str:
        """Key of the exit code of that command: `{"code": ...}`."""
        return f"{self.remote(attempt)}r{rank:04d}.end.json"

    @property
    def environments(self) -> str:
        """Prefix of what the job's requirements installed; it lies apart because it is forgotten after some days."""
        return f"{ENVIRONMENTS}{self.job}/"

    def environment(self, name: str) -> str:
        """Key of the document that lists an environment's files. `name` is of the requirements, the code and the machine."""
        return f"{self.environments}{name}/{ENVIRONMENT}"

    def environment_file(self, name: str, digest: str) -> str:
        """Key of an object with files of an environment."""
        return f"{self.environments}{name}/{digest}"

    @property
    def artifacts(self) -> str:
        return f"{self.root}artifacts/"

    def artifact(self, rank: int, path: str) -> str:
        return f"{self.artifacts}rank-{rank:04d}/{path}"


ENVIRONMENTS, ENVIRONMENT = "environments/", "files.json"
PACKS = "packs/"
PLAN, CLOSED, UNUSABLE = "plan.json", "closed.json", "unusable.json"
LAST_SET = 999_999
"""Number of the set of an attempt's end, which is newer than all others."""
BYTES_FOLDERS = (*(kind.value for kind in CommitKind), "commits")
"""Folders that nodes may write under their jobs, in buckets of bytes."""


KEY_BYTES = 800
"""Bytes of a path that a key has room for: S3 takes 1,024, of which the job's prefix needs some."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not have: S3 rejects a list of keys with one of them, and all that are in it stay."""

_PACK = re.compile(rf"{JOBS}[^/]+/checkpoints/rank-\d{{4,}}/{PACKS}[0-9a-f]+")
_COMMIT = re.compile(r"/commits/[a-z]+/a(\d{4,})/s(\d{12,})/r(\d{4,})\.json$")


_PART = re.compile(r"r(\d{4,})\.([a-z]+)")
_SET = re.compile(r"/commits/checkpoints/a(\d{4,})/n(\d{6,})/([a-z0-9]+\.[a-z]+)$")


@dataclass(frozen=True, slots=True)
class SetKey:
    """What the key of an object of a set says."""

    attempt: int
    number: int
    name: str

    @property
    def part(self) -> tuple[int, str] | None:
        """Rank and ending of a part; None for the plan and what closes the set."""
        found = _PART.fullmatch(self.name)
        return (int(found[1]), found[2]) if found else None


def set_of(key: str) -> SetKey | None:
    """What a key of a set says, None for any other key."""
    found = _SET.search(key)
    return SetKey(int(found[1]), int(found[2]), found[3]) if found else None


def is_pack(key: str) -> bool:
    """Whether BytesPrefix.pack made the key: its object holds files of several commits, and is larger than any one of them."""
    return _PACK.fullmatch(key) is not None


def commit_of(key: str) -> tuple[int, int, int] | None:
    """Returns attempt, step and rank of a key that BytesPrefix.commit made, None for any other key."""
    found = _COMMIT.search(key)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None

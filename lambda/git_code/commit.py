"""Code from git: which commits a request may name, and what a person reads where a host does not give one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from refusals.archive import MOST_LISTED
from refusals.wording import plain, what

MIB = 1024**2
MOST_PACK = 64 * MIB
"""The most bytes that a host may send."""
MOST_BYTES = 256 * MIB
"""The most bytes of all files of a commit. What is larger is data, and belongs in a data bucket."""
MOST_FILES = MOST_LISTED
"""The most files and folders of a commit: as many as a listing keeps, so that a commit is always looked at as a whole."""
FETCH_S = 60.0
"""How long a fetch may take, all of its tries together."""
MOST_URL = 300
HOST = r"[a-z0-9-]+(\.[a-z0-9-]+)+"
PLAIN_URL = rf"https://{HOST}(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+/?"
"""An address without a user, a port, a query and parts that begin with a dot or a hyphen."""
URL = re.compile(PLAIN_URL)
COMMIT = re.compile(r"[0-9a-f]{40}")
FIELDS = ("git", "ref")
GIT_MAY_BE = (
    '{"git": "https://github.com/owner/repository.git", "ref": the 40 characters that `git rev-parse HEAD` prints}'
)
REPOSITORY_MAY_BE = "https://HOST/OWNER/REPOSITORY.git, without a user, a port and a query"
REF_MAY_BE = "the 40 characters that `git rev-parse HEAD` prints"
SHOWN = 200
"""The most characters of a host's own words that a refusal repeats."""


@dataclass(frozen=True, slots=True)
class GitCommit:
    """One commit of one repository."""

    url: str
    commit: str

    @property
    def host(self) -> str:
        """The name of the host, which the settings have to list."""
        return self.url.removeprefix("https://").partition("/")[0]

    @property
    def archive(self) -> str:
        """The name of its archive under the job's prefix: the same commit is the same archive."""
        return f"{self.commit}.tar.gz"

    def __str__(self) -> str:
        return f"{self.url}@{self.commit[:12]}"


def read_git(value: Mapping[str, object]) -> GitCommit:
    """Reads the object that stands in the place of an archive's address. Raises ValueError that says what is wrong and what is allowed."""
    if strange := sorted(map(str, value.keys() - set(FIELDS))):
        raise ValueError(f"has the unknown field {plain(strange[0])}; allowed: {GIT_MAY_BE}")
    if missing := [one for one in FIELDS if one not in value]:
        raise ValueError(f"{missing[0]} is missing; allowed: {GIT_MAY_BE}")
    url, ref = value["git"], value["ref"]
    if not isinstance(url, str):
        raise ValueError(f"git: {what(url)} is not a string; allowed: {REPOSITORY_MAY_BE}")
    if not isinstance(ref, str):
        raise ValueError(f"ref: {what(ref)} is not a string; allowed: {REF_MAY_BE}")
    if len(url) > MOST_URL or not URL.fullmatch(url):
        raise ValueError(f"git: {plain(url)} is not the https address of a repository; allowed: {REPOSITORY_MAY_BE}")
    if not COMMIT.fullmatch(ref):
        raise ValueError(
            f"ref: {plain(ref)} is not the whole hash of a commit, and a branch, a tag or a short hash may mean another commit "
            f"tomorrow; allowed: {REF_MAY_BE}"
        )
    return GitCommit(url.rstrip("/"), ref)


class FetchTrouble(str, Enum):
    """Why a commit was not fetched."""

    DENIED = "denied"
    """The host has no such repository for whoever asks."""
    NO_COMMIT = "no-commit"
    NO_BRANCH = "no-branch"
    NO_TREE = "no-tree"
    """The hash is that of something else than a commit."""
    MOVED = "moved"
    """The host names another address."""
    AWAY = "away"
    """No connection, or an answer that says nothing of the repository."""
    LARGE = "large"
    LATE = "late"
    REFUSED = "refused"
    """A file of the commit that no node would unpack, or that is not its own content."""
    BROKEN = "broken"
    """What the host sends is not what git sends."""
    SECRET = "secret"
    """The token of the settings cannot be read."""


PASSING = frozenset({FetchTrouble.AWAY})
"""What says nothing of the repository: the host may give the commit later."""


@dataclass(frozen=True, slots=True)
class NotFetched:
    """A commit that was not fetched."""

    trouble: FetchTrouble
    said: str = ""
    """The host's own words, or the second half of a sentence about the repository."""


LIMITS = (
    f"up to {MOST_PACK // MIB} MiB as git sends it, {MOST_BYTES // MIB} MiB unpacked and {MOST_FILES:,} files and folders (large data "
    "belongs in a data bucket; larger code as an archive in S3)"
)


def list_host_problems(commit: GitCommit, hosts: Mapping[str, str], field: str = "code") -> list[str]:
    """Rejects a host that the settings do not list, and that is never asked. `field` is the request's field that names it."""
    if commit.host in hosts:
        return []
    listed = ", ".join(hosts) or "none"
    return [
        f"{field}: {plain(commit.host)} is not a host that code may be fetched from; allowed: {listed} (git_hosts in cdk.json)"
    ]


def list_fetch_problems(
    commit: GitCommit, found: NotFetched, hosts: Mapping[str, str], field: str = "code"
) -> list[str]:
    """Words why a commit was not fetched, with what to look at."""
    where, said = f"{field}: {plain(commit.url, MOST_URL)}", plain(found.said, SHOWN) if found.said else ""
    secret = hosts.get(commit.host, "")
    match found.trouble:
        case FetchTrouble.DENIED:
            how = f"with the token in the secret {secret}" if secret else "without a token"
            return [
                f"{where} does not exist, or may not be read ({commit.host} answers {said} to a request {how}); allowed: a repository that "
                "everybody may read, or a token that may read it in the secret that git_hosts in cdk.json names for the host"
            ]
        case FetchTrouble.NO_COMMIT:
            why = f" ({commit.host} says: {said})" if said else ""
            return [f"{where} has no commit {commit.commit}{why}; allowed: a commit that was pushed to the repository"]
        case FetchTrouble.NO_BRANCH:
            return [f"{where} has no branch {said}; allowed: a branch that `git ls-remote` lists"]
        case FetchTrouble.NO_TREE:
            return [
                f"{where}: {commit.commit} is a {said}; allowed: a commit, as `git rev-parse 'NAME^{{commit}}'` prints it"
            ]
        case FetchTrouble.MOVED:
            return [
                f"{where} redirects to another address ({said}), and no redirect is followed; allowed: the address itself"
            ]
        case FetchTrouble.AWAY:
            return [f"{where} cannot be reached ({said}); allowed: a host that answers, or an archive in S3"]
        case FetchTrouble.LARGE:
            return [f"{where} is too large{f' ({said})' if said else ''}; allowed: {LIMITS}"]
        case FetchTrouble.LATE:
            return [
                f"{where} was not fetched within {FETCH_S:.0f} s; allowed: a smaller repository, or an archive in S3"
            ]
        case FetchTrouble.REFUSED:
            return [
                f"{where} {said}; allowed: plain files and folders, and links that stay among them; no submodule, no file in git-LFS"
            ]
        case FetchTrouble.BROKEN:
            return [f"{where} cannot be read as a git repository ({said}); allowed: one that `git clone` reads"]
        case FetchTrouble.SECRET:
            return [
                f"{where}: the secret {secret} cannot be read ({said}); allowed: a secret of the home region, encrypted by AWS's own key, "
                "whose text is a token or USER:TOKEN (git_hosts in cdk.json)"
            ]

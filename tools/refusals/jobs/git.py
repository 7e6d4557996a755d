"""Refusals of code that is a commit of a git repository. The repositories are made by the test that runs the table."""

from __future__ import annotations

from typing import Any

from tools.refusals.jobs.table import COMMIT, Row

HOST, PRIVATE = "git.example.com", "private.example.com"
HEADS = {
    "good": "867115602e76ac869389f4dcd711184c48dfc1d5",
    "empty": "5bf196e12cd5ac8402e0ca0b47a6320f333e6b42",
    "out": "df6d79545066a62519c2e7f70a46ddbe9140e040",
    "up": "4a4fcedb5197f7314c40d247e7096f78dd888a6c",
    "hooks": "0f02830ed89c7300974189d0010a787b0ea29b13",
    "slash": "9fa02bb334e0e523702640dde69e4b9c7bf826ca",
    "device": "e407fe20c8a859e6981667470f0e8ed1441a164e",
    "lfs": "f909f73934fee264b5b7ffc418ed991c1f64af9f",
    "submodule": "531b49addb049fb8595191ff230b0eb6611a91e3",
    "deep": "c1ad9a2eaa67ac8d90db8fde403d4d54ff133050",
    "many": "edaaf63be01b516b664eeb49e986e36b19816792",
    "bushy": "21cd50ee40606c156717c51fa365f25bafb7ee32",
}
"""The newest commit of each repository."""
FOLDER = "e9735d34c8b5495f9248e51028c70eae99e31cc8"
"""The hash of the folder of the good commit."""
FILES = "plain files and folders, and links that stay among them; no submodule, no file in git-LFS"
REF = "the 40 characters that `git rev-parse HEAD` prints"
ADDRESS = "https://HOST/OWNER/REPOSITORY.git, without a user, a port and a query"
LARGE = (
    "up to 64 MiB as git sends it, 256 MiB unpacked and 20,000 files and folders (large data belongs in a data bucket; larger code as "
    "an archive in S3)"
)
READABLE = "a repository that everybody may read, or a token that may read it in the secret that git_hosts in cdk.json names for the host"


def url(name: str, host: str = HOST) -> str:
    return f"https://{host}/owner/{name}.git"


def _of(what: str, name: str, *says: str, ref: str = "", host: str = HOST) -> tuple[Any, ...]:
    return (what, {"git": url(name, host), "ref": ref or HEADS[name]}, *(f"{url(name, host)}{one}" for one in says))


def _refused(what: str, name: str, entry: str) -> tuple[Any, ...]:
    return _of(what, name, f" {entry}; allowed: {FILES}")


ROWS: tuple[Row | tuple[Any, ...], ...] = (
    ("a commit without its hash", {"git": url("good")}, f"ref is missing; allowed: {COMMIT}"),
    (
        "a commit and a folder",
        {"git": url("good"), "ref": HEADS["good"], "path": "src"},
        f"has the unknown field path; allowed: {COMMIT}",
    ),
    ("a commit at a number", {"git": 7, "ref": HEADS["good"]}, f"git: 7 is not a string; allowed: {ADDRESS}"),
    ("a number for a commit", {"git": url("good"), "ref": 7}, f"ref: 7 is not a string; allowed: {REF}"),
    (
        "a branch",
        {"git": url("good"), "ref": "main"},
        "ref: main is not the whole hash of a commit, and a branch, a tag or a short hash may mean another commit tomorrow; "
        f"allowed: {REF}",
    ),
    (
        "a repository by SSH",
        {"git": "git@github.com:owner/repository.git", "ref": HEADS["good"]},
        f"git: git@github.com:owner/repository.git is not the https address of a repository; allowed: {ADDRESS}",
    ),
    (
        "a repository with a password in its address",
        {"git": f"https://me:secret@{HOST}/owner/good.git", "ref": HEADS["good"]},
        f"git: https://me:secret@{HOST}/owner/good.git is not the https address of a repository; allowed: {ADDRESS}",
    ),
    (
        "a repository at another port",
        {"git": f"https://{HOST}:8443/owner/good.git", "ref": HEADS["good"]},
        f"git: https://{HOST}:8443/owner/good.git is not the https address of a repository; allowed: {ADDRESS}",
    ),
    (
        "a repository of a host that the settings do not list",
        {"git": "https://internal.example.com/owner/good.git", "ref": HEADS["good"]},
        f"internal.example.com is not a host that code may be fetched from; allowed: {HOST}, {PRIVATE} (git_hosts in cdk.json)",
    ),
    _of(
        "a repository that does not exist, or is private",
        "none",
        f" does not exist, or may not be read ({HOST} answers 404 to a request without a token); allowed: {READABLE}",
        ref=HEADS["good"],
    ),
    _of(
        "a private repository whose host's secret does not exist",
        "good",
        ": the secret git-token cannot be read (ResourceNotFoundException); allowed: a secret of the home region, encrypted by AWS's own "
        "key, whose text is a token or USER:TOKEN (git_hosts in cdk.json)",
        host=PRIVATE,
    ),
    _of(
        "a commit that was not pushed",
        "good",
        f" has no commit {'1' * 40}; allowed: a commit that was pushed to the repository",
        ref="1" * 40,
    ),
    _of(
        "the hash of a folder",
        "good",
        f": {FOLDER} is a tree; allowed: a commit, as `git rev-parse 'NAME^{{commit}}'` prints it",
        ref=FOLDER,
    ),
    _refused("a submodule", "submodule", "has the submodule 'third', whose files are in another repository"),
    _refused("a file in git-LFS", "lfs", "has 'weights.bin' in git-LFS: the repository has only a pointer to it"),
    _refused("a name that leads up", "up", "has the entry '..', a name that git does not allow"),
    _refused("a repository inside the commit", "hooks", "has the entry '.GIT', a name that git does not allow"),
    _refused("a path in the place of a name", "slash", "has the entry 'a/b', a name that git does not allow"),
    _refused("a device", "device", "has the entry 'disk', which is neither a file nor a folder nor a link"),
    _of(
        "a link out of the commit",
        "out",
        f"@{HEADS['out'][:12]} has the entry 'data', a link to '../../etc/passwd', out of its folder; allowed: plain relative names, "
        "and links that stay in the archive",
    ),
    _of(
        "a commit without files",
        "empty",
        f"@{HEADS['empty'][:12]} is an empty archive; allowed: an archive of what the command runs",
    ),
    _of("a hundred thousand files", "many", f" is too large (more than 20,000 files and folders); allowed: {LARGE}"),
    _of("a billion files of one", "bushy", f" is too large (more than 20,000 files and folders); allowed: {LARGE}"),
    _of(
        "folders in folders",
        "deep",
        f" has the entry '{'d/' * 50}'..., whose name has 201 bytes in 101 parts: at most 1,024 bytes and 100 parts; allowed: {FILES}",
    ),
    Row(
        "a commit without the file that the command runs",
        {"code": {"git": url("good"), "ref": HEADS["good"]}, "command": ["python", "model.py"]},
        f"command: runs model.py, which is not in {url('good')}@{HEADS['good'][:12]} (did you mean src/model.py?); allowed: a file of the "
        "archive, by its path from the archive's root",
    ),
)

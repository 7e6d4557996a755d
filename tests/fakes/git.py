"""Repositories of which the table of refusals speaks, on hosts of this computer: good ones, and each kind of hostile one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from git_code import fetch_child, fetching
from localaws.git_host import GitHosts, blob, commit, git, tree

HOST, PRIVATE = "git.example.com", "private.example.com"
"""The second one shows its repositories to whoever has the token."""
TOKEN = "a-token"
ASK_CHILD = fetching.ask_child
"""Asks in a process of its own, as functions do."""
PLAIN = "100644"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 5000000\n"


def good(at: Path) -> str:
    """A trainer, and everything else that git keeps: a program, a link, a folder, an odd name."""
    script = blob(at, b"print('trained')\n")
    inner = tree(at, (PLAIN, b"model.py", blob(at, b"")))
    return tree(
        at,
        ("120000", b"latest.py", blob(at, b"train.py")),
        ("100755", b"run.sh", blob(at, b"#!/bin/sh\nexec python train.py\n")),
        ("40000", b"src", inner),
        (PLAIN, b"train.py", script),
        (PLAIN, "überfluß \u202e.txt".encode(), blob(at, b"odd")),
    )


def one(name: bytes, mode: str = PLAIN, content: bytes = b"x") -> Callable[[Path], str]:
    """A repository of one entry."""
    return lambda at: tree(at, (mode, name, blob(at, content)))


def _submodule(at: Path) -> str:
    return tree(at, ("160000", b"third", "1" * 40))


def _deep(at: Path) -> str:
    made = tree(at, (PLAIN, b"f", blob(at, b"x")))
    for _ in range(150):
        made = tree(at, ("40000", b"d", made))
    return made


def _many(at: Path) -> str:
    content = blob(at, b"x")
    return tree(at, *((PLAIN, f"{number:06d}".encode(), content) for number in range(100_000)))


def _bushy(at: Path) -> str:
    """Ten folders in each of ten folders, and so on: a billion files of one file."""
    made = tree(at, (PLAIN, b"f", blob(at, b"x")))
    for _ in range(9):
        made = tree(at, *(("40000", b"%d" % number, made) for number in range(10)))
    return made


REPOSITORIES: dict[str, Callable[[Path], str]] = {
    "good": good,
    "empty": lambda at: tree(at),
    "out": one(b"data", "120000", b"../../etc/passwd"),
    "up": one(b".."),
    "hooks": one(b".GIT"),
    "slash": one(b"a/b"),
    "device": one(b"disk", "60000"),
    "lfs": one(b"weights.bin", content=LFS),
    "submodule": _submodule,
    "deep": _deep,
    "many": _many,
    "bushy": _bushy,
}
"""Name of a repository to what makes its files."""


@contextmanager
def hosts(folder: Path) -> Iterator[GitHosts]:
    """Both hosts, with these repositories at the first and the good one at the second."""
    with GitHosts(folder, [HOST, PRIVATE]) as made:
        for name, files in REPOSITORIES.items():
            at = made.repository(f"{HOST}/owner/{name}.git")
            commit(at, files(at))
        at = made.repository(f"{PRIVATE}/owner/good.git")
        commit(at, good(at))
        made.tokens[f"{PRIVATE}/owner/good.git"] = f"x-access-token:{TOKEN}"
        yield made


def head(made: GitHosts, name: str = "good", host: str = HOST) -> str:
    """The newest commit of a repository."""
    return git(made.folder / host / "owner" / f"{name}.git", "rev-parse", "refs/heads/main")


def ask_here(order: Mapping[str, str], _limit_s: float) -> dict[str, str]:
    """Stands in for `ask_child`, without its limits: the same answer, without the time that a process takes to start."""
    return fetch_child.answer(order)

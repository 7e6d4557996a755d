"""Compares commits with what S3 holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind, commit_of, is_pack, set_of
from contract.roles import Role, name_rank
from contract.text import one_line

SHOWN = 20
"""The most files that an error names."""
SHOWN_NAME = 300
"""Characters of a name, which code of the job chose."""


def missing(commits: Sequence[Commit], sizes: Mapping[str, int], roles: Sequence[Role] = ()) -> list[str]:
    """Returns one line for each file that a commit names and S3 lacks, or does not have whole. `sizes`: bytes of each object by its key;
    `roles`: those of the job."""
    return [
        f"{name_rank(roles, commit.rank)}: {one_line(file.path, SHOWN_NAME)} {problem} ({one_line(file.key, SHOWN_NAME)})"
        for commit in commits
        for file in commit.files
        if (problem := _fault(file, sizes.get(file.key)))
    ]


def _fault(file: CommittedFile, size: int | None) -> str:
    """What is wrong with the object of a file, which has `size` bytes; empty where the file is whole. A pack holds other files behind
    this one."""
    end = file.offset + file.size
    if size is None:
        return "is not there"
    if is_pack(file.key):
        return f"ends at byte {end} of a pack that has {size}" if size < end else ""
    return f"has {size} bytes, and its commit says {end}" if size != end else ""


def misplaced(key: str, job: str, kind: CommitKind) -> str:
    """Says what is wrong with the key of a commit that a node reported; empty for a commit of its own job, of that kind."""
    prefix, allowed = BytesPrefix(job), set[str]()
    if place := commit_of(key):
        allowed.add(prefix.commit(kind, *place))
    if kind is CommitKind.CHECKPOINTS and (of_set := set_of(key)) and of_set.part:
        allowed.add(prefix.part(of_set.attempt, of_set.number, of_set.part[0]))
    if key in allowed:
        return ""
    return f"its last commit of {kind.value} would be {one_line(key, SHOWN_NAME)}; allowed: a commit under {prefix.commits(kind)}"


def join_lines(lines: Sequence[str]) -> str:
    rest = f"\n- and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "\n".join(f"- {line}" for line in lines[:SHOWN]) + rest

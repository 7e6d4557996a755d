"""Compares commits with what S3 holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contract.commits import Commit
from contract.keys import BytesPrefix, CommitKind, commit_of, set_of

SHOWN = 20
"""The most files that an error names."""


def missing(commits: Sequence[Commit], sizes: Mapping[str, int]) -> list[str]:
    """One line for each file that a commit names and S3 lacks, or has in another size."""
    lines = []
    for commit in commits:
        for file in commit.files:
            size = sizes.get(file.key)
            if size is None:
                lines.append(f"rank {commit.rank}: {file.path} is not there ({file.key})")
            elif size != file.size:
                lines.append(
                    f"rank {commit.rank}: {file.path} has {size} bytes, committed were {file.size} ({file.key})"
                )
    return lines


def misplaced(key: str, job: str, kind: CommitKind) -> str:
    """Says what is wrong with the key of a commit that a node reported; empty for a commit of its own job, of that kind."""
    prefix, allowed = BytesPrefix(job), set[str]()
    if place := commit_of(key):
        allowed.add(prefix.commit(kind, *place))
    if kind is CommitKind.CHECKPOINTS and (of_set := set_of(key)) and of_set.part:
        allowed.add(prefix.part(of_set.attempt, of_set.number, of_set.part[0]))
    if key in allowed:
        return ""
    return f"its last commit of {kind.value} would be {key[:300]}; allowed: a commit under {prefix.commits(kind)}"


def told(lines: Sequence[str]) -> str:
    rest = f"\n- and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "\n".join(f"- {line}" for line in lines[:SHOWN]) + rest

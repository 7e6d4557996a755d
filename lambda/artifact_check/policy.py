"""Compares commits with what S3 holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contract.commits import Commit

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


def told(lines: Sequence[str]) -> str:
    rest = f"\n- and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return "\n".join(f"- {line}" for line in lines[:SHOWN]) + rest

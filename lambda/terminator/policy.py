"""Decides whether Terminate writes the job's report, or keeps the one that is there because it knows more."""

from __future__ import annotations


def overtaken(written: object, attempts: int, *, meanwhile: bool) -> bool:
    """Whether the report in the bucket knows more than this Terminate, which may be slow or run twice.

    It does if it tells of a later attempt, or if somebody wrote it about this attempt while this Terminate ran.
    """
    if not isinstance(written, dict) or not isinstance(known := written.get("attempts"), int):
        return False
    return known > attempts or (meanwhile and known == attempts)

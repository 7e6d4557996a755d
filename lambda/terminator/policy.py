"""Decides whether Terminate writes the job's report, or another's report knows more."""

from __future__ import annotations


def overtaken(written: object, attempts: int, *, meanwhile: bool) -> bool:
    """Whether the report that is there knows more than a Terminate of that attempt, which may be slow, or come twice.

    It tells of a later attempt, or was written of the same one while this Terminate went on: by another, or after the execution's end.
    """
    if not isinstance(written, dict) or not isinstance(known := written.get("attempts"), int):
        return False
    return known > attempts or (meanwhile and known == attempts)

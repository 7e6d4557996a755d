"""Decides what becomes of the home bucket's copy of the node agent, which every attempt of a job runs."""

from __future__ import annotations

from enum import Enum

from contract import agents


class CopyAction(Enum):
    """What the home bucket's copy of the node agent needs before a job may name it."""

    NOTHING = "nothing"
    RENEW = "renew"
    COPY = "copy"


def choose_copy_action(age_s: float | None) -> CopyAction:
    """Decides by the copy's age on S3's clock; None means that there is no copy."""
    if age_s is None:
        return CopyAction.COPY
    return CopyAction.RENEW if age_s > agents.FRESH_DAYS * 86400 else CopyAction.NOTHING

"""Decides what the status of a build of one of the platform's own images means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws.facts import GONE, Status
from contract import names
from contract.errors import BuildFailed, StillBuilding

AGAIN = (
    'Deploy again once the reason is gone; until then no grid can start. docs/images.md, "The platform\'s own images".'
)
SUCCEEDED = "SUCCEEDED"


def execution(tag: str, request: str) -> str:
    """Returns the name of the Build machine's execution for a CloudFormation request: a repeated request gives the same build."""
    return f"{tag}-{request.replace('-', '')}"


def order(tag: str, context: str) -> Mapping[str, Any]:
    """Returns the Build machine's input; an image that every region has is not built again."""
    return {"context": context, "repository": names.PLATFORM, "tag": tag, "if_absent": True}


def missing(status: Status) -> bool:
    """Whether the build does not exist yet."""
    return status.name == GONE


def judge(tag: str, status: Status, *, now: float, since: float, patience_s: float) -> None:
    """Returns normally once every region has the image.

    Raises StillBuilding while waiting may help, and BuildFailed when it cannot: the build failed, or the patience is over.
    """
    if status.name == SUCCEEDED:
        return
    if status.name not in Status.RUNS and not missing(status):
        raise BuildFailed(f"The image {tag} was not built ({status.name}, {status.error}): {status.cause}\n{AGAIN}")
    if now >= since + patience_s:
        raise BuildFailed(
            f"The image {tag} is still being built after {(now - since) / 60:.0f} minutes; a new account runs one build at a "
            f"time, or none until AWS raises its quota. {AGAIN}"
        )
    raise StillBuilding(f"the image {tag} is being built")

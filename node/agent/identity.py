"""Who this node is: read from its own metadata, patiently, because tags and metadata may be late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from agent.metadata import Metadata
from contract import tags

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0


class Unknown(RuntimeError):
    """The node never learned who it is; there is nobody to report to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The facts that the launch gave this machine."""

    deployment: str
    job: str
    attempt: int
    rank: int
    instance: str
    region: str


def identify(
    metadata: Metadata, *, patience_s: float, now: Callable[[], float], sleep: Callable[[float], None]
) -> Identity:
    """Waits for every fact. Raises Unknown, naming the missing one, after `patience_s` seconds."""
    until = now() + patience_s

    def wait_for(what: str, look: Callable[[], str | None]) -> str:
        pause = FIRST_PAUSE_S
        while True:
            try:
                if (found := look()) is not None:
                    return found
                trouble = "it is not there"
            except OSError as problem:
                trouble = str(problem)
            if now() >= until:
                raise Unknown(f"metadata did not give {what} within {patience_s:.0f} s: {trouble}")
            sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def tag(key: str) -> str:
        return wait_for(f"tag {key}", lambda: metadata.tag(key))

    return Identity(
        deployment=tag(tags.DEPLOYMENT),
        job=tag(tags.JOB),
        attempt=int(tag(tags.ATTEMPT)),
        rank=int(wait_for("the launch index", lambda: metadata.get("ami-launch-index"))),
        instance=wait_for("the instance id", lambda: metadata.get("instance-id")),
        region=wait_for("the region", lambda: metadata.get("placement/region")),
    )

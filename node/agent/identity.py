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


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a node waits for what metadata may give late."""

    most_s: float
    now: Callable[[], float]
    sleep: Callable[[float], None]

    def wait_for(self, what: str, look: Callable[[], T | None], *, until: float | None = None) -> T:
        """What `look` gives. Raises Unknown, naming it, after `most_s` seconds, or at `until`."""
        until = self.now() + self.most_s if until is None else until
        pause = FIRST_PAUSE_S
        while True:
            try:
                if (found := look()) is not None:
                    return found
                trouble = "it is not there"
            except OSError as problem:
                trouble = str(problem)
            if self.now() >= until:
                raise Unknown(f"metadata did not give {what} within {self.most_s:.0f} s: {trouble}")
            self.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)


def identify(metadata: Metadata, patience: Patience) -> Identity:
    """Waits for every fact, for all of them together no longer than `patience` has. Raises Unknown, naming the missing one."""
    until = patience.now() + patience.most_s

    def value(what: str, look: Callable[[], str | None]) -> str:
        return patience.wait_for(what, look, until=until)

    def tag(key: str) -> str:
        return value(f"tag {key}", lambda: metadata.tag(key))

    return Identity(
        deployment=tag(tags.DEPLOYMENT),
        job=tag(tags.JOB),
        attempt=int(tag(tags.ATTEMPT)),
        rank=int(value("the launch index", lambda: metadata.get("ami-launch-index"))),
        instance=value("the instance id", lambda: metadata.get("instance-id")),
        region=value("the region", lambda: metadata.get("placement/region")),
    )

"""Reads the node's identity from its metadata, and waits for it, because tags and metadata may be late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from agent.metadata import Metadata
from contract import tags

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0


class Unknown(RuntimeError):
    """The node could not learn its identity, so it cannot report anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """The deployment, job, attempt and rank that the launch gave this machine, and where it runs."""

    deployment: str
    job: str
    attempt: int
    rank: int
    instance: str
    region: str
    deadline: int
    """When the job has to be over, UTC epoch seconds."""
    addresses: tuple[str, ...] = ()
    """Private addresses of the attempt's nodes by rank, which come with its credentials; empty where its launch told none."""
    place: str = ""
    """Its role and its place there, as in `ps 0`; empty before it knows its job, and in a job without roles."""

    @property
    def name(self) -> str:
        """What people read of it: `rank 3`, and in a job with roles `rank 3 (ps 0)`."""
        return f"rank {self.rank} ({self.place})" if self.place else f"rank {self.rank}"


class Patience:
    """A limit of `most_s` seconds from now for everything together that the node waits for."""

    def __init__(self, *, most_s: float, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._most_s, self._now, self._sleep = most_s, now, sleep
        self._until = now() + most_s

    def wait_for(self, what: str, read: Callable[[], T | None]) -> T:
        """Repeats `read` until it returns a value. Raises Unknown, which names `what`, when the time is over."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                if (found := read()) is not None:
                    return found
                trouble = "it is not there"
            except OSError as problem:
                trouble = str(problem)
            if self._now() >= self._until:
                raise Unknown(f"{what} did not come within {self._most_s:.0f} s: {trouble}")
            self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)


def identify(metadata: Metadata, patience: Patience) -> NodeIdentity:
    """Waits for every fact. Raises Unknown, which names the one that is missing or cannot be read."""

    def tag(key: str) -> str:
        return patience.wait_for(f"tag {key}", lambda: metadata.tag(key))

    def value(what: str, path: str) -> str:
        return patience.wait_for(what, lambda: metadata.get(path))

    def number(what: str, text: str) -> int:
        if not text.isdecimal():
            raise Unknown(f"{what} is {text!r}; allowed: a whole number from 0 on")
        return int(text)

    def first_rank() -> int:
        """Returns that of the node's launch. A launch sets all of its tags at once, so that one which is not there now never will be."""
        what = f"tag {tags.FIRST_RANK}"
        return number(what, patience.wait_for(what, lambda: metadata.tag(tags.FIRST_RANK) or "0"))

    return NodeIdentity(
        deployment=tag(tags.DEPLOYMENT),
        job=tag(tags.JOB),
        attempt=number(f"tag {tags.ATTEMPT}", tag(tags.ATTEMPT)),
        rank=first_rank() + number("the launch index", value("the launch index", "ami-launch-index")),
        instance=value("the instance id", "instance-id"),
        region=value("the region", "placement/region"),
        deadline=number(f"tag {tags.DEADLINE}", tag(tags.DEADLINE)),
    )

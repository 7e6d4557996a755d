"""`attempts/<n>/launch-<k>.json`: the requests that a walk over the ladder will send, written before the first call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from contract.codec import UNWRITTEN
from contract.jobs import Rung


class LaunchOutcome(str, Enum):
    """What EC2's answer means for the ladder."""

    LAUNCHED = "launched"
    NO_CAPACITY = "no-capacity"
    QUOTA = "quota"
    UNKNOWN = "unknown"
    """Whether it launched is unknown: the same bytes have to be sent again before the next rung."""
    RENEW = "renew"
    """The token belongs to instances that have ended: ask the same rung with the next generation."""
    CLOSED = "closed"
    """The account cannot use this region: drop its rungs."""
    MISTAKE = "mistake"
    """EC2 refuses the request: repeating it cannot help. It ends the walk only where the answer leaves open what runs (`ENDS_WALK`)."""

    @classmethod
    def of_later_version(cls) -> LaunchOutcome:
        """The same bytes are sent again before anything else is, and find what there is."""
        return cls.UNKNOWN


FINAL = frozenset(
    {
        LaunchOutcome.LAUNCHED,
        LaunchOutcome.NO_CAPACITY,
        LaunchOutcome.QUOTA,
        LaunchOutcome.CLOSED,
        LaunchOutcome.MISTAKE,
    }
)
"""Answers after which a rung is not asked again in the same walk."""
LAST = frozenset({LaunchOutcome.LAUNCHED, LaunchOutcome.MISTAKE})
"""Answers after which no rung is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAnswer:
    """The newest answer to a rung."""

    outcome: LaunchOutcome
    at: float
    code: str = ""
    message: str = ""
    instances: tuple[str, ...] = ()
    """Instance ids in the order of launch index, which is the order of ranks."""
    master_address: str = ""
    addresses: tuple[str, ...] = ()
    """Private addresses in the same order; empty in an intent of a version that kept rank 0's alone."""
    doubted: bool = False
    """Whether it stayed unknown if it launched: the walk went on when the launch patience was over."""
    refused: bool = False
    """Whether EC2 refused the request, which mostly is about the type or its image: the walk goes on with other types."""
    shape: int = field(default=0, metadata=UNWRITTEN)
    """Which of the rung's shapes it is about, in their order; of those before it, `instances` run."""

    @property
    def is_half(self) -> bool:
        """Whether some shapes of the rung were launched, and the others will not be: the attempt is over, and what runs ends with it."""
        return bool(self.instances) and self.outcome in FINAL - {LaunchOutcome.LAUNCHED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rung with the request that belongs to it."""

    rung: Rung
    request: dict[str, Any]
    """The arguments of RunInstances without UserData and ClientToken; empty until the walk comes into the region. On a rung with shapes,
    those of the first one."""
    generation: int = 0
    """Increased when the token's instances were terminated."""
    walk: int = 0
    """Number of the walk that the token stands for; 0 in an intent that was written before tokens had one."""
    answer: LaunchAnswer | None = None
    shared_with: tuple[str, ...] = ()
    """Other jobs that have the request's security group, because every group of the region was in use."""
    further: tuple[dict[str, Any], ...] = field(default=(), metadata=UNWRITTEN)
    """The requests of the other shapes, in their order."""

    @property
    def requests(self) -> tuple[dict[str, Any], ...]:
        """What is sent for the rung, one after the other."""
        return self.request, *self.further

    @property
    def is_final(self) -> bool:
        """Whether the walk does not ask the rung again."""
        return self.answer is not None and self.answer.outcome in FINAL

    @property
    def is_in_doubt(self) -> bool:
        """Whether the rung may have launched without an answer that says so. A request that was written down may have been sent."""
        return bool(self.request) and (self.answer is None or self.answer.doubted or not self.is_final)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One walk over the ladder. A repeat reads it and sends the same bytes, as a ClientToken requires."""

    job: str
    attempt: int
    walk: int
    started_at: float
    patience_until: float
    user_data: str
    """Plain text; boto3 encodes it."""
    held_by: str
    """The invocation that walks; another one waits until `held_until` (its function's time-out), then takes over."""
    held_until: float
    steps: tuple[Step, ...]
    waiting: bool = False
    """A walk of a job that waits for capacity. The next one takes its place in the table: two weeks have a thousand of them."""
    waited_s: float = 0.0
    """How long the job had waited for capacity when this walk began, in this attempt and those before it. The deadline of what it
    launches is so much later, and a part of its requests."""

    spent_usd: float = 0.0
    """What the attempts before this one have cost at most, of a job with a cap. The deadline of what the walk launches depends on it."""
    doubted_usd: float = 0.0
    """What an hour of the nodes costs at most that this attempt may have launched without ever learning it."""

    @property
    def launched(self) -> Step | None:
        """The step whose instances exist, or existed."""
        return next(
            (step for step in self.steps if step.answer and step.answer.outcome is LaunchOutcome.LAUNCHED), None
        )

    @property
    def half(self) -> Step | None:
        """The step that launched some of its shapes and not all."""
        return next((step for step in self.steps if step.answer and step.answer.is_half), None)

    @property
    def next_place(self) -> int | None:
        """The rung to ask now; None when one launched, whole or half, one was a mistake, or every rung has its final answer."""
        if any(step.answer and (step.answer.outcome in LAST or step.answer.is_half) for step in self.steps):
            return None
        return next((place for place, step in enumerate(self.steps) if not step.is_final), None)


def ran_in(walks: Iterable[Intent]) -> set[str]:
    """Regions in which walks launched."""
    return {walk.launched.rung.region for walk in walks if walk.launched}


def of_every_attempt(walks: Iterable[Intent], last: int) -> bool:
    """Whether each attempt up to `last` has a walk among these. A table that was restored to an earlier point may lack some; then nothing
    follows from a region that the others do not name."""
    return {walk.attempt for walk in walks} >= set(range(1, last + 1))

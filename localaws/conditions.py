"""The conditions of a rehearsal: delays, losses and throttles of a real account, and the faults that were asked for."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Marks = Mapping[str, str]
"""Marks by which faults choose their targets: an instance's tags with its `rank`, a training's tags, a container's environment."""


EXECUTION = "execution"
"""Key of the mark of a state machine's execution: its name."""
LEAST_GRACE_S = 5.0
"""The least time that a process has from SIGTERM to SIGKILL, in seconds of this computer."""


class Fault(Protocol):
    """Something that must go wrong. Whoever asks for it defines the meaning of its keys and its targets."""

    @property
    def name(self) -> str: ...

    @property
    def given(self) -> Mapping[str, str]:
        """The keys that were given, with their values."""

    @property
    def since(self) -> float | None:
        """When it began, on the monotonic clock; None where it began with the others."""

    @property
    def handlers(self) -> str:
        """Prefix of the handlers whose functions are dead while the fault lasts; empty for none."""

    def text(self, key: str) -> str: ...

    def seconds(self, key: str) -> float:
        """Returns the key's value in real-world seconds."""

    def number(self, key: str) -> int: ...

    def meets(self, marks: Marks) -> bool:
        """Whether the fault applies to something with these marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Durations are real-world seconds; `scaled` converts them to the rehearsal's. Values are drawn uniformly from ranges."""

    speed: float = 1.0
    seed: int = 0
    boot_s: tuple[float, float] = (30.0, 90.0)
    """From RunInstances to the first line of user data. EC2 launch to SSH takes 26 s on average in one study; deep-learning
    images are larger and GPU types slower."""
    invisible_s: tuple[float, float] = (0.2, 1.5)
    """How long DescribeInstances does not return a new instance."""
    refusals_kept: bool = True
    """Whether EC2 gives a client token that met no capacity the same answer again, whatever there is by then."""
    state_lag_s: tuple[float, float] = (0.0, 1.0)
    """Age of the states that DescribeInstances shows: EC2's API is eventually consistent. The seconds are a guess."""
    iam_delay_s: tuple[float, float] = (0.0, 4.0)
    """From RunInstances until IAM sees a new instance's tags: the first reads of a tag can be stale. The seconds are a guess."""
    event_delay_s: tuple[float, float] = (1.0, 60.0)
    """S3 events usually take seconds, sometimes a minute or more."""
    events_lost: float = 0.1
    """Share of events that never arrive. Those of S3 arrive late instead: EventBridge's reference calls their delivery durable, which is
    at least once. Schedules are not events."""
    events_doubled: float = 0.05
    """Share of events that arrive twice (delivery is at least once)."""
    clock_delay_s: tuple[float, float] = (0.0, 20.0)
    tags_delay_s: tuple[float, float] = (1.0, 10.0)
    """From CreateTags to the tag in instance metadata."""
    spot_notice_s: float = 120.0
    """From the notice in instance metadata to the end (EC2 user guide, "Spot Instance interruption notices")."""
    shutdown_s: tuple[float, float] = (20.0, 60.0)
    """From shutting-down to terminated."""
    console_delay_s: tuple[float, float] = (5.0, 60.0)
    """From a boot or an end until EC2 has kept the console's output ("shortly after", says EC2's guide; the seconds are a guess)."""
    list_delay_s: tuple[float, float] = (0.0, 5.0)
    """Age of the state that ListExecutions shows."""
    training_start_s: tuple[float, float] = (180.0, 240.0)
    """From CreateTrainingJob to the first byte of data: instances and image. One log shows 236 s, 171 s of them for the image."""
    task_start_s: tuple[float, float] = (30.0, 60.0)
    """From the head of the queue to the first line of a Batch job's container on Fargate."""
    throttled: float = 0.03
    """Share of control-plane calls that get the service's throttling error."""
    processor_shares: bool = True
    """Whether functions get the processor share that Lambda gives them with their memory. Time-outs hold against it at any speed; the
    share is multiplied by the speed, because one of their seconds is that many seconds of the rehearsal."""
    metadata_lost: float = 0.02
    """Share of requests to a node's metadata service that get no answer. A guess: EC2 throttles them, and publishes no figure."""
    page_size: int = 2
    """Most entries in a page of ListObjectsV2, whatever was asked for. For DescribeInstances it is five, the smallest MaxResults."""
    table_lag_s: float = 1.0
    """Greatest age of what a read of DynamoDB shows that is not strongly consistent: "usually one second or less", says its guide."""
    table_short_pages: float = 0.2
    """Share of queries whose page ends early. DynamoDB promises no more than that LastEvaluatedKey tells whether there may be more."""
    table_unprocessed: float = 0.1
    """Share of a BatchGetItem's keys that come back in UnprocessedKeys, as under a partition's throttling. The share is a guess."""
    table_conflicts: float = 0.01
    """Share of writes by functions and nodes that meet a transaction on their item. The share is a guess."""
    stream_delay_s: tuple[float, float] = (0.2, 2.0)
    """From a write to the invocation by the table's stream. Lambda polls a shard four times a second; the rest is a guess."""
    stream_doubled: float = 0.05
    """Share of a stream's records that a function receives twice (Lambda invokes at least once)."""
    expiry_delay_s: tuple[float, float] = (60.0, 48 * 3600.0)
    """From an item's expiry to its deletion: "within a few days", says DynamoDB's guide, and formerly "within 48 hours"."""
    faults: tuple[Fault, ...] = ()
    faults_since: float = field(default_factory=time.monotonic, compare=False)
    """When the faults began, on the monotonic clock."""

    def scaled(self, span: tuple[float, float], chance: random.Random) -> float:
        """Draws a value from `span`, in seconds of the rehearsal."""
        return chance.uniform(*span) / self.speed

    def grace(self, seconds: float) -> float:
        """Returns the time from SIGTERM to SIGKILL of what has `seconds` on AWS, in seconds of the rehearsal. Processes end in real ones,
        so it is never less than LEAST_GRACE_S."""
        return max(seconds / self.speed, LEAST_GRACE_S)

    def fault(self, name: str, marks: Marks) -> Fault | None:
        """Returns the first fault of that name that applies to these marks, None where there is none."""
        return next((one for one in self.faults if one.name == name and one.meets(marks)), None)

    def now_under(self, name: str) -> Fault | None:
        """Returns a fault with a beginning (`after`) and an end (`seconds`) while it lasts."""
        return next(iter(self.all_under(name)), None)

    def all_under(self, name: str) -> list[Fault]:
        """Returns every such fault that lasts now."""
        return [one for one in self.faults if one.name == name and self._lasts(one)]

    def dead(self, handler: str) -> Fault | None:
        """Returns the fault that makes the function with this handler dead, while it lasts."""
        killing = (one for one in self.faults if one.handlers and handler.startswith(one.handlers))
        return next(filter(self._lasts, killing), None)

    def _lasts(self, fault: Fault) -> bool:
        since = self.faults_since if fault.since is None else fault.since
        age = (time.monotonic() - since) * self.speed
        return 0 <= age - fault.seconds("after") < fault.seconds("seconds")

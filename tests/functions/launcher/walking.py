"""A launcher that walks on a store, an EC2 and a clock of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from botocore.exceptions import ClientError, ReadTimeoutError

from aws.ec2 import Ec2
from aws.empty_places import EmptyPlaces
from aws.errors import Raced
from aws.facts import Instance
from aws.state import Held, State
from aws.table import Item
from contract import tags
from contract.empty_places import EmptyPlace
from contract.groups import Taken
from contract.health import UnhealthyNode
from contract.intents import Intent
from contract.items import ItemKey
from contract.jobs import Job
from launcher.arguments import LaunchMarks
from launcher.walk import Walker
from tests.builders import NOW


class Store:
    """Intents with the versions of conditional writes."""

    def __init__(self) -> None:
        self.held: dict[int, Held] = {}
        self.version = 0
        self.is_closed = False
        self.noted: list[str] = []
        self.taken: tuple[Taken, ...] = ()
        self.bad: list[UnhealthyNode] = []

    def unhealthy(self, _job: str) -> list[UnhealthyNode]:
        return self.bad

    def taken_groups(self, _region: str) -> tuple[tuple[Taken, ...], Item | None]:
        return self.taken, None

    def take_groups(self, _region: str, taken: tuple[Taken, ...], _before: Item | None) -> None:
        self.taken = taken

    def note_region(self, region: str) -> None:
        self.noted.append(region)

    def closed(self, _job: str, _attempt: int) -> bool:
        return self.is_closed

    def intents(self, _job: str, _attempt: int) -> list[Held]:
        return [self.held[walk] for walk in sorted(self.held)]

    def create_intent(self, _job: Job, intent: Intent) -> Held:
        if intent.walk in self.held:
            raise Raced(str(intent.walk))
        return self._put(intent)

    def replace_intent(self, _job: Job, intent: Intent, held: Held) -> Held:
        if self.held[intent.walk].item != held.item:
            raise Raced(str(intent.walk))
        return self._put(intent)

    def _put(self, intent: Intent) -> Held:
        self.version += 1
        item = Item(key=ItemKey("launch", str(intent.walk)), document=b"", version=self.version, at=NOW)
        self.held[intent.walk] = Held(intent=intent, item=item)
        return self.held[intent.walk]


@dataclass
class FakeEc2:
    """Answers from a list; honours tokens as EC2 does; a lost answer has its effect."""

    answers: list[str] = field(default_factory=list)
    launches: dict[str, list[Instance]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    tagged: dict[str, str] = field(default_factory=dict)
    left: list[Instance] = field(default_factory=list)
    tag_answers: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    without_names: str = ""
    """The error with which EC2 answers whoever names nodes."""

    def of_job(self, _deployment: str, _job: str) -> list[Instance]:
        return self.left

    def run(self, request: Mapping[str, Any], *, user_data: str, token: str) -> list[Instance]:  # noqa: ARG002
        self.calls.append((request["Placement"]["AvailabilityZone"], token))
        answer = self.answers.pop(0) if self.answers else "ok"
        if answer in {"ok", "lost"}:
            made = self.launches.setdefault(token, [self._instance(rank) for rank in range(request["MinCount"])])
            if answer == "lost":
                raise ReadTimeoutError(endpoint_url="ec2")
            return made
        code, _, status = answer.partition(" ")
        said: Any = {"Error": {"Code": code, "Message": "said EC2"}}
        raise ClientError(said | {"ResponseMetadata": {"HTTPStatusCode": int(status or 400)}}, "RunInstances")

    def _instance(self, rank: int) -> Instance:
        id_ = f"i-{len(self.launches)}{rank}"
        return Instance(
            id=id_, region="eu-central-1", state="pending", rank=rank, address=f"10.0.0.{rank}", launched_at=NOW
        )

    def every(self, _deployment: str) -> list[Instance]:
        return []

    def tag(self, instances: list[str], key: str, value: str) -> None:
        if key == tags.NAME:
            if self.without_names:
                raise ClientError({"Error": {"Code": self.without_names, "Message": "said EC2"}}, "CreateTags")
            self.names |= dict.fromkeys(instances, value)
            return
        if self.tag_answers:
            raise ClientError({"Error": {"Code": self.tag_answers.pop(0), "Message": "said EC2"}}, "CreateTags")
        self.tagged |= dict.fromkeys(instances, value)


@dataclass
class Clock:
    time: float = NOW

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class Unheard:
    """No other job is there."""

    def all(self) -> list[EmptyPlace]:
        return []

    def note(self, place: EmptyPlace) -> None:
        """Nobody hears of it."""


def walker(store: Store, ec2: FakeEc2, clock: Clock, *, holder: str = "one", left: float = 300.0) -> Walker:
    end = clock.time + left
    return Walker(
        state=cast(State, store),
        empty_places=cast(EmptyPlaces, Unheard()),
        ec2=lambda _region: cast(Ec2, ec2),
        holder=holder,
        marks=LaunchMarks(profile="arn:p"),
        user_data="#!/bin/bash\n",
        left=lambda: end - clock.time,
        now=lambda: clock.time,
        sleep=clock.sleep,
    )

"""An account with campaigns: uploads, the messages that tell of them, and the starter's function behind their queue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.endpoint
import pytest

import starter.handler
from aws.state import State
from contract.campaign_environments import StarterEnvironment
from contract.campaigns import Campaign, Started, Starts, Watch, name_start
from contract.codec import encode
from tests.builders import TOPIC
from tests.fakes.aws import Aws
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.faults import Mishap
from tests.fakes.functions import invoked, quiet
from tests.fakes.queue import LETTERS, URL
from tests.fakes.s3 import Bucket, Version
from tests.fakes.state import TABLE
from tests.fakes.wire import HOME

NOW = 1_800_000_000.0
BUCKET, DATA = "yard-home", "drives"
KEY = "uploads/drive-eu/monday/_READY"
MACHINES = {Started.GRID: GRID_MACHINE, Started.SEARCH: SEARCH_MACHINE, Started.JOB: MACHINE}
ENVIRONMENT = StarterEnvironment(
    deployment="yard",
    table=TABLE,
    bucket=BUCKET,
    machines={what.value: machine for what, machine in MACHINES.items()},
    messages=URL,
    letters=LETTERS,
    topic=TOPIC,
    again_s=600.0,
)
TIMEOUT_S, VISIBILITY_S, RECEIVES = 120.0, 720.0, 144
A_DAY_S = 86_400.0
GRID = {"manifest": "{data}/manifest.jsonl"}
REASON = "a destroy began"


def campaign(bucket: str = "", prefix: str = "uploads/drive-eu/", suffix: str = "_READY", **given: Any) -> Campaign:
    """One that starts a grid, if no input is given."""
    return Campaign(bucket=bucket, prefix=prefix, suffix=suffix, given=given or GRID)


DRIVE = {"drive-eu": campaign()}
DIGITS = {"digits": Watch(git="https://git.example.com/owner/good.git", branch="main", build={"repository": "images"})}


@dataclass
class Campaigns:
    """What starts by itself in the account."""

    aws: Aws
    settings: Path
    """The file that the function's archive has."""
    mishaps: list[Sequence[Mishap]] = field(default_factory=list)
    """What befalls the next invocations."""
    begun: list[str] = field(default_factory=list)
    """The executions that began, as they did."""

    def __post_init__(self) -> None:
        self.aws.states.executions.began = lambda one: self.begun.append(one.name)
        self.aws.queue.feed(lambda event: self.invoke(event))

    def invoke(self, event: dict[str, Any]) -> Any:
        """What the function answers; None where it was killed or raised."""
        mishaps = self.mishaps.pop(0) if self.mishaps else ()
        return invoked(self.aws, starter.handler.handler, event, "starter", TIMEOUT_S, mishaps).value

    def deploy(self, campaigns: dict[str, Campaign] = DRIVE, watches: dict[str, Watch] = DIGITS) -> None:
        """The settings, as the archive has them from now on."""
        self.settings.write_bytes(encode(Starts(campaigns=campaigns, watches=watches)))

    def write(self, key: str = KEY, bucket: str = BUCKET, body: bytes = b"") -> Version:
        """An object is uploaded, and nothing hears of it."""
        return self.aws.s3.write(bucket, key, body)

    def remove(self, key: str = KEY, bucket: str = BUCKET) -> None:
        gone = self.aws.s3.write(bucket, key, b"", deleted=True)
        assert gone.deleted

    def tell(self, key: str = KEY, bucket: str = BUCKET, version: str = "") -> None:
        """The event of an upload reaches the queue; whichever version it names."""
        self.aws.queue.put(self.event(key, bucket, version))

    def event(self, key: str = KEY, bucket: str = BUCKET, version: str = "") -> str:
        """As the rule sends it."""
        detail = {"version": "0", "bucket": {"name": bucket}, "object": {"key": key, "size": 0, "version-id": version}}
        return json.dumps(self.aws.events.event("aws.s3", "Object Created", detail))

    def upload(self, key: str = KEY, bucket: str = BUCKET, body: bytes = b"") -> str:
        """An object is uploaded, and the queue hears of it. Returns its version."""
        version = self.write(key, bucket, body).id
        self.tell(key, bucket, version)
        return version

    def run(self, seconds: float = 60.0) -> None:
        self.aws.clock.run(seconds)

    def close(self) -> None:
        State(TABLE).close_admission(REASON)

    def open(self) -> None:
        State(TABLE).open_admission(REASON)

    def find(self, name: str, machine: str = GRID_MACHINE) -> Execution:
        return self.aws.states.executions.known[f"{machine.replace(':stateMachine:', ':execution:')}:{name}"]

    def end(self, name: str, status: str, error: str = "", cause: str = "", machine: str = GRID_MACHINE) -> None:
        self.aws.states.executions.end(self.find(name, machine), status, error or None, cause or None)

    @property
    def mails(self) -> list[str]:
        """What people were told, oldest first."""
        return [text for _, text in self.aws.topics.messages]

    @property
    def letters(self) -> list[Any]:
        """What was given up: by the function, and by the queue itself."""
        sent = [one.body for one in self.aws.letters.messages.values()]
        return [json.loads(one) for one in sent + [one.body for one in self.aws.queue.dead]]

    def inputs(self) -> dict[str, Any]:
        """The input of every execution that began, by its name."""
        return {one.name: json.loads(one.input) for one in self.aws.states.executions.known.values()}


def start_of(version: str, key: str = KEY, bucket: str = BUCKET, name: str = "drive-eu") -> str:
    """The name of the execution that a version of an object starts."""
    return name_start(name, bucket, key, version)


@contextmanager
def started(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[Campaigns]:
    """A new account, which every client of the function talks to meanwhile."""
    aws = Aws(now=NOW)
    aws.s3.buckets |= {BUCKET: Bucket(HOME), DATA: Bucket("us-east-1")}
    aws.table.open(TABLE)
    aws.queue.visibility_s, aws.queue.receives = VISIBILITY_S, RECEIVES
    for name, value in ENVIRONMENT.write().items():
        patch.setenv(name, value)
    patch.setattr(starter.handler, "STARTS", folder / "starts.json")
    patch.setattr(botocore.endpoint, "time", aws.clock)
    with aws.connected(), quiet("starter", "cleanup"):
        made = Campaigns(aws, folder / "starts.json")
        made.deploy()
        yield made

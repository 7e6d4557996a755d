"""A small account behind real boto3 clients, as the Build machine's function meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from contract.environments import ImageBuildEnvironment
from image_build.handler import handler
from localaws.model import Refused
from tests.archives import tarred
from tests.fakes.clock import Clock
from tests.fakes.codebuild import FakeCodeBuild
from tests.fakes.ecr import FakeEcr
from tests.fakes.logs import Logs
from tests.fakes.s3 import S3, Bucket, Version
from tests.fakes.wire import Call, changing, connected
from tools.refusals.images import ACCOUNT, BASE, DEEP_LEARNING, DIGEST, PARTNER, REGIONS

HOME = REGIONS[0]
REPOSITORY = "yard/images"
ENVIRONMENT = ImageBuildEnvironment(
    deployment="yard",
    bucket="yard-home",
    account=ACCOUNT,
    suffix="amazonaws.com",
    home_region=HOME,
    regions=REGIONS,
    repositories=("images", "grid"),
    data_buckets=("datasets", "partner", "retired"),
    base_account=DEEP_LEARNING,
    copy_accounts=(PARTNER,),
)


GOOD = tarred(("./Dockerfile", "FROM scratch\n"), ("./train.py", "print(1)\n"))


@dataclass
class Account:
    """What there is, and what was asked."""

    clock: Clock = field(default_factory=lambda: Clock(1_800_000_000.0))
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.s3 = S3(self.clock, lambda *_: None)
        self.s3.buckets["yard-home"] = Bucket(HOME)
        self.s3.buckets["datasets"] = Bucket("us-east-1")
        self.s3.buckets["partner"] = Bucket("us-east-1", forbidden=("",))
        self.ecr = {
            region: FakeEcr(ACCOUNT, {(ACCOUNT, REPOSITORY): {}, (ACCOUNT, "yard/grid"): {}}) for region in REGIONS
        }
        name, _, tag = BASE.partition(":")
        self.ecr[HOME].repositories[DEEP_LEARNING, name] = {tag: DIGEST}
        self.codebuild, self.logs = FakeCodeBuild(self.clock, ACCOUNT), Logs(self.clock)
        self.put("uploads/good.tar.gz", GOOD)

    def put(self, key: str, body: bytes, *, size: int | None = None) -> None:
        """An object of the home bucket; `size` pretends another."""
        number = sum(map(len, self.s3.buckets["yard-home"].objects.values()))
        version = Version(f"v-{number}", body, int(self.clock.now), size=size)
        self.s3.buckets["yard-home"].objects.setdefault(key, []).append(version)

    def stand(self, tag: str, digests: Mapping[str, str], repository: str = REPOSITORY) -> None:
        """Region to the digest under a tag."""
        for region, digest in digests.items():
            self.ecr[region].repositories[ACCOUNT, repository][tag] = digest

    def answer(self, call: Call) -> dict[str, Any]:
        self.calls.append(call)
        match call.service:
            case "s3":
                return self.s3.answer(call)
            case "ecr":
                return (
                    self.ecr[call.region].answer(call.operation, call.params)
                    if call.region in self.ecr
                    else self._elsewhere()
                )
            case "codebuild":
                return self.codebuild.answer(call.operation, call.params)
            case "logs":
                return self.logs.answer(call)
        raise AssertionError(f"The account has no {call.service}")

    @staticmethod
    def _elsewhere() -> dict[str, Any]:
        raise Refused("RepositoryNotFoundException", "The repository does not exist")

    @property
    def changes(self) -> list[str]:
        return changing(self.calls)

    def asked(self, service: str) -> list[Call]:
        return [call for call in self.calls if call.service == service]


@contextmanager
def account(patch: pytest.MonkeyPatch, environment: ImageBuildEnvironment = ENVIRONMENT) -> Iterator[Account]:
    """A new account, which every client of the functions talks to meanwhile."""
    for name, value in environment.write().items():
        patch.setenv(name, value)
    made = Account()
    with connected(made.answer, made.clock.time):
        yield made


def check(request: object) -> dict[str, Any]:
    """As the machine calls it, the request having been JSON."""
    return handler({"action": "check", "request": json.loads(json.dumps(request))}, None)


def collect(plan: Mapping[str, Any], build: str | None = "yard-build:1", problem: Any = None) -> dict[str, Any]:
    return handler({"action": "collect", "plan": plan, "build": build, "problem": problem}, None)

"""A small account behind real boto3 clients, as the Build machine's function meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from contract.image_environments import ImageBuildEnvironment
from image_build.handler import handler
from tests.archives import tarred
from tests.fakes.aws import Aws
from tests.fakes.ecr import FakeEcr
from tests.fakes.git import HOST
from tests.fakes.s3 import Bucket, Version
from tests.fakes.wire import Call
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
    git_hosts={HOST: ""},
)


GOOD = tarred(("./Dockerfile", "FROM scratch\n"), ("./train.py", "print(1)\n"))


class Account(Aws):
    """What there is, and what was asked."""

    def __init__(self) -> None:
        super().__init__(now=1_800_000_000.0)
        self.s3.buckets["yard-home"] = Bucket(HOME)
        self.s3.buckets["datasets"] = Bucket("us-east-1")
        self.s3.buckets["partner"] = Bucket("us-east-1", forbidden=("",))
        self.ecr = {
            region: FakeEcr(ACCOUNT, {(ACCOUNT, REPOSITORY): {}, (ACCOUNT, "yard/grid"): {}}) for region in REGIONS
        }
        name, _, tag = BASE.partition(":")
        self.ecr[HOME].repositories[DEEP_LEARNING, name] = {tag: DIGEST}
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

    def calls_of(self, service: str) -> list[Call]:
        return [call for call in self.calls if call.service == service]


@contextmanager
def account(patch: pytest.MonkeyPatch, environment: ImageBuildEnvironment = ENVIRONMENT) -> Iterator[Account]:
    """A new account, which every client of the functions talks to meanwhile."""
    for name, value in environment.write().items():
        patch.setenv(name, value)
    made = Account()
    with made.connected():
        yield made


def check(request: object) -> dict[str, Any]:
    """As the machine calls it, the request having been JSON."""
    return handler({"action": "check", "request": json.loads(json.dumps(request))}, None)


def collect(plan: Mapping[str, Any], build: str | None = "yard-build:1", problem: Any = None) -> dict[str, Any]:
    return handler({"action": "collect", "plan": plan, "build": build, "problem": problem}, None)

"""A small account of four regions behind real boto3 clients, as Plan meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import Any

import pytest

from contract import keys, names
from contract.codec import decode
from contract.environments import GridDefaults, GridEnvironment
from contract.grid import Grid, GridPrefix, Line
from planner.handler import handler
from tests.builders import LIMITS as JOB_LIMITS
from tests.fakes.aws import Aws
from tests.fakes.ecr import FakeEcr
from tests.fakes.s3 import Bucket
from tests.fakes.state import TABLE
from tests.fakes.telling import Prices
from tests.fakes.wire import Call
from tests.functions.grid_plan.clusters import job_settings, open_clusters
from tools.refusals.grids.yard import (
    ACCOUNT,
    BUCKET,
    CHILD,
    CONTAINERS,
    DATA,
    DATA_BUCKETS,
    DEFAULTS,
    HOME,
    LIMITS,
    MANIFEST,
    REGIONS,
    bytes_bucket,
    execution,
)

INPUT: dict[str, Any] = {"manifest": MANIFEST, "defaults": DEFAULTS}
DIGEST = "sha256:" + "a" * 64
PRICES = {"ml.g5.xlarge": 1.4, "ml.g5.12xlarge": 7.1, "ml.m5.large": 0.1}
FACTORS = {"eu-central-1": 1.25, "us-east-1": 1.0, "us-west-2": 1.0, "ap-south-1": 1.5}
"""What a region costs beside us-east-1."""
NOTHING_CHOSEN = GridDefaults(image="", instance_type="")
ENVIRONMENT = GridEnvironment(
    deployment="yard",
    bucket=BUCKET,
    table=TABLE,
    account=ACCOUNT,
    suffix="amazonaws.com",
    home_region=HOME,
    regions=REGIONS,
    repositories=("images", "grid"),
    base_accounts={"": CONTAINERS, "ap-south-1": ""},
    data_buckets=DATA_BUCKETS,
    training_role=f"arn:aws:iam::{ACCOUNT}:role/{names.training_role('yard', HOME)}",
    machine=f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{names.grid_machine('yard')}",
    queue=names.grid_queue("yard"),
    child_image=CHILD,
    limits=LIMITS,
    job_limits=replace(JOB_LIMITS, instance_types=("g*", "p*", "trn1.*")),
    train_machine=f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{names.machine('yard')}",
    defaults=NOTHING_CHOSEN,
)


class Account(Aws):
    """What there is, and what was asked. Plan asks side by side, the fake answers one by one."""

    def __init__(self) -> None:
        super().__init__(now=1_800_000_000.0)
        self.keep_calls, self._lock = True, RLock()
        self.prices = Prices(trainings=dict(PRICES), factors=FACTORS)
        self.s3.buckets[BUCKET] = Bucket(HOME)
        self.table.open(TABLE)
        for region in REGIONS:
            self.s3.buckets[bytes_bucket(region)] = Bucket(region)
        for name, region in DATA.items():
            self.s3.buckets[name] = Bucket(region)
            self.s3.write(name, "train/part-0", b"0123456789")
        self.s3.write(BUCKET, GridPrefix("old").report, b"{}")
        self.s3.buckets["partner"] = Bucket("us-east-1", forbidden=("",))
        ours = {(ACCOUNT, names.repository("yard", name)): {"v1": DIGEST} for name in ENVIRONMENT.repositories}
        self.ecr = {region: FakeEcr(ACCOUNT, {key: dict(tags) for key, tags in ours.items()}) for region in REGIONS}
        self.ecr[HOME].repositories[ACCOUNT, names.repository("yard", names.PLATFORM)] = {CHILD: DIGEST}
        self.ecr[HOME].repositories[CONTAINERS, "pytorch-training"] = {"2.8": DIGEST}
        open_clusters(self, DIGEST)

    def upload(self, manifest: bytes | str) -> None:
        """The manifest that MANIFEST names."""
        body = manifest.encode() if isinstance(manifest, str) else manifest
        self.s3.write(BUCKET, f"{keys.UPLOADS}manifest", body)

    def pretend(self, bucket: str, key: str, size: int) -> None:
        """An object that says to be so large."""
        self.s3.write(bucket, key, b"x", size=size)

    def answer(self, call: Call) -> dict[str, Any]:
        with self._lock:
            if not self.keep_calls:
                self.calls.clear()
            return super().answer(call)

    def calls_of(self, operation: str) -> list[Call]:
        return [call for call in self.calls if call.operation == operation]

    def grid(self, name: str = "sweep-7") -> Grid:
        body = self.s3.read(BUCKET, GridPrefix(name).description)
        assert body is not None
        return decode(Grid, body)

    def lines(self, name: str = "sweep-7") -> list[Line]:
        """Every line of the plan, as a child reads it."""
        prefix, found = GridPrefix(name), list[Line]()
        for index in range(self.grid(name).lines):
            if index % 100 == 0:
                body = self.s3.read(BUCKET, prefix.lines(index))
                assert body is not None
                found += [decode(Line, text) for text in body.decode().split("\n") if text]
        return found


@contextmanager
def account(patch: pytest.MonkeyPatch, defaults: GridDefaults = NOTHING_CHOSEN, **limits: Any) -> Iterator[Account]:
    """A new account, which every client of the function talks to meanwhile."""
    environment = replace(ENVIRONMENT, limits=replace(LIMITS, **limits), defaults=defaults)
    with installed(patch, environment) as made:
        yield made


@contextmanager
def judging(patch: pytest.MonkeyPatch, **more: Any) -> Iterator[Account]:
    """The same, of a function that has the settings of jobs, as a deploy gives them: it judges jobs as Admit would."""
    with job_settings() as jobs, installed(patch, replace(ENVIRONMENT, jobs=jobs, **more)) as made:
        yield made


@contextmanager
def installed(patch: pytest.MonkeyPatch, environment: GridEnvironment) -> Iterator[Account]:
    """The same, of a function with this environment."""
    for name, value in environment.write().items():
        patch.setenv(name, value)
    made = Account()
    with made.connected():
        yield made


def plan(request: object, run: Mapping[str, str] | None = None) -> dict[str, Any]:
    """As the machine calls it, the request having been JSON."""
    event = {"request": json.loads(json.dumps(request)), "execution": dict(run or execution())}
    return handler(event, None)


def planned(there: Account, manifest: str | bytes, **given: Any) -> list[Line]:
    """The lines of the plan of the manifest; `given` are fields that are put into the input."""
    there.upload(manifest)
    plan(INPUT | given)
    return there.lines()


def line(**given: Any) -> str:
    """One line of JSON with the smallest manifest's region and data."""
    return json.dumps({"region": "eu-central-1", "data": "s3://data-eu/train/"} | given, ensure_ascii=False) + "\n"

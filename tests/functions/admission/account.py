"""A deployment on the fake, with all that the table of refusals speaks of, as Admit's function meets it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from admission.handler import handler
from contract import keys, names, tags
from contract.codec import decode, encode
from contract.commits import CheckpointSet
from contract.environments import AdmissionEnvironment
from contract.errors import InvalidRequest
from contract.jobs import Job
from contract.mounts import FileSystems
from contract.request_rules import RULES_FILE, RequestRules
from localaws.services.ec2_capacity import CapacityReservation
from localaws.services.ecr_model import digest_of
from tests.archives import packed, said_to_unpack_to, tarred, zipped
from tests.builders import ADMISSION, FILE_SYSTEMS, IMAGE, JOB, NOW, PLACE
from tests.fakes.aws import Aws
from tests.fakes.ecr import FakeEcr
from tests.fakes.functions import Functions
from tests.fakes.s3 import Bucket
from tests.fakes.yard import ABROAD, admits, deployed, home
from tests.functions.admission import uploads
from tools.refusals.jobs import reservation, resume
from tools.refusals.jobs.preset import RULES
from tools.refusals.jobs.table import SECRET

ADMITTING = replace(
    ADMISSION,
    data_buckets=("datasets", "partner", "retired"),
    machine_images={"digits": "/aws/service/x", "graviton": "/aws/service/g", "gone": "/aws/service/gone"},
    limits=replace(ADMISSION.limits, instance_types=("g*", "t4g.*", "p3.*", "trn1.2xlarge")),
)
GRAVITON = "ami-0123456789abcdef1"
ARN = "arn:aws:states:eu-central-1:123456789012:execution:yard-train:"
TAKEN = "taken"
"""The name of a job of another execution."""
FORGOTTEN = "job-of-spring"
"""The name of a job of an execution of the same name, which Step Functions has forgotten."""
GOOD = packed("./train.py", "./run.sh")
UPLOADED = {
    "a.tar.gz": GOOD,
    "empty.zip": b"",
    "nothing.tar.gz": tarred(),
    "broken.tar.gz": b"no archive",
    "folder.tar.gz": packed("digits/train.py", "digits/data.csv"),
    "weighty.zip": said_to_unpack_to(2 * 1024**3, "train.py"),
    "main.tar.gz": packed("main.py", "train/model.py"),
    **uploads.WRONG,
}
MANY = tuple(f"a-long-path-of-a-secret/{number:02d}" for number in range(20))
SECRETS = ("token", "team+a=b@c.d_e/token", "dying", *MANY)


PLACE_ACCOUNT, CONTAINERS, PARTNER = "123456789012", "763104351884", "777788889999"
CONTAINER = ("pytorch-training", "2.8.0-gpu-py312-cu129-ubuntu22.04-ec2")
"""Name and tag of one of AWS's containers."""
GIB = 1024**3


class Account(Aws):
    """Of the data buckets, `partner` lets nobody look, and `retired` is gone."""

    def __init__(self) -> None:
        super().__init__(now=NOW)
        places = (PLACE, ABROAD)
        admits(deployed(fake=self, places=places), places)
        offered = encode(FileSystems(file_systems=FILE_SYSTEMS)).decode()
        self.directory.parameters[PLACE.region, names.file_systems_parameter(JOB.deployment, PLACE.region)] = offered
        for place in places:
            values = {(place.region, "/aws/service/x"): IMAGE.id, (place.region, "/aws/service/a"): "ami-gone"}
            self.directory.parameters |= values
            self.directory.parameters[place.region, "/aws/service/g"] = GRAVITON
        home(self).catalogue.images[GRAVITON] = (IMAGE.root_device, IMAGE.snapshot_gb)
        home(self).catalogue.architectures[GRAVITON] = "arm64"
        nowhere = {("g4ad.xlarge", zone.name) for zone in PLACE.zones}
        home(self).catalogue.not_offered = {("g5.xlarge", "eu-central-1b"), *nowhere}
        self.directory.secrets = {(PLACE.region, SECRET + name): SECRET + name for name in SECRETS}
        self.directory.dying = {f"{SECRET}dying"}
        self.s3.buckets |= {"datasets": Bucket(PLACE.region), "partner": Bucket(PLACE.region, forbidden=("",))}
        self.s3.write("datasets", "imagenet/0.tar", GOOD)
        self.put(keys.agent(ADMISSION.agent), b"agent")
        for key, body in UPLOADED.items():
            self.upload(key, body)
        self.upload("large.zip", GOOD, size=6 * 1024**3)
        self.upload("frozen.zip", zipped("train.py"), storage_class="GLACIER")
        self.prices.hourly = {"g5.xlarge": 1.25, "g4dn.xlarge": 0.5}
        self._push()
        self._reserve()
        past = {TAKEN: replace(JOB, id=TAKEN, execution=f"{ARN}another")}
        past[FORGOTTEN] = replace(JOB, id=FORGOTTEN, execution=f"{ARN}{FORGOTTEN}", admitted_at=1_788_249_600.0)
        for name, job in past.items():
            self.put(keys.JobPrefix(name).description, encode(job))
        self._train()

    def _push(self) -> None:
        """Images at home and, of the first, abroad."""
        ours, name = PLACE_ACCOUNT, names.repository(ADMISSION.deployment, "images")
        for place in (PLACE, ABROAD):
            self.ecr[place.region] = FakeEcr(ours, {(CONTAINERS, CONTAINER[0]): {}, (PARTNER, "models"): {}})
            self.ecr[place.region].push(ours, name, "v1", entry_point=["python", "/app/train.py"], size=2 * GIB)
            self.ecr[place.region].push(CONTAINERS, *CONTAINER, command=["/bin/bash"])
        here = self.ecr[PLACE.region]
        here.push(ours, name, "libraries")
        here.push(ours, name, "shell", command=["python", "/app/train.py"])
        here.push(ours, name, "graviton", architecture="arm64", command=["python"])
        here.push(ours, name, "large", entry_point=["python"], size=20 * GIB)
        arm = here.push(ours, name, "arm", architecture="arm64", command=["python"])
        here.push_index(ours, name, "arms", ("linux", "arm64", arm))
        here.push_index(ours, name, "windows", ("windows", "amd64", here.push(ours, name, "pane", system="windows")))
        bare = json.dumps({"schemaVersion": 2})
        here.manifests[digest_of(bare.encode())] = bare
        here.repositories[ours, name]["bare"] = digest_of(bare.encode())
        here.closed = frozenset({PARTNER})

    def _train(self) -> None:
        """Jobs from which others may want to begin; all but one have ended, and Step Functions has forgotten them."""
        away = {
            name: replace(PLACE, region=ABROAD.region, bucket=f"yard-{name}") for name in (resume.AWAY, resume.CLOSED)
        }
        self.s3.buckets[f"yard-{resume.CLOSED}"] = Bucket(ABROAD.region, forbidden=("",))
        for name in (resume.TRAINED, resume.RUNNING, resume.UNSAVED, resume.AWAY, resume.CLOSED):
            place = away.get(name, PLACE)
            job = replace(JOB, id=name, execution=f"{ARN}{name}", places={place.region: place})
            self.put(keys.JobPrefix(name).description, encode(job))
        self.states.executions.begin(resume.RUNNING, ARN.replace(":execution:", ":stateMachine:").removesuffix(":"))
        for name in (resume.TRAINED, resume.RUNNING):
            self.close(name, attempt=1, number=4, step=900)
            self.close(name, attempt=2, number=3, step=1200)

    def close(self, name: str, *, attempt: int, number: int, step: int, bucket: str = PLACE.bucket) -> None:
        """The job closes a set."""
        closed = CheckpointSet(job=name, attempt=attempt, number=number, step=step, closed_at=0.0, parts=())
        self.s3.write(bucket, keys.BytesPrefix(name).closed(attempt, number), encode(closed))

    def _reserve(self) -> None:
        """What people reserved: each differs from the first in one thing."""
        ours: dict[str, Any] = {
            "instance_type": "g5.xlarge",
            "zone": "eu-central-1a",
            "total": 4,
            "begins_at": NOW - 3600,
        }
        ours["tags"] = {tags.DEPLOYMENT: ADMISSION.deployment}
        for identity, different in RESERVED.items():
            home(self).reservations[identity] = CapacityReservation(**(ours | different), id=identity)
        self.directory.groups[f"{reservation.GROUP}h100s"] = (*RESERVED, "i-0123456789abcdef0")

    def put(self, key: str, body: bytes, **facts: Any) -> None:
        """Into the home bucket."""
        self.s3.write(JOB.home_bucket, key, body, **facts)

    def upload(self, key: str, body: bytes, **facts: Any) -> str:
        """Puts an archive into the folder of uploads; returns its address."""
        self.put(f"{keys.UPLOADS}{key}", body, **facts)
        return f"s3://{JOB.home_bucket}/{keys.UPLOADS}{key}"

    def job(self, name: str) -> Job | None:
        """What was written as the job's job.json."""
        body = self.s3.read(JOB.home_bucket, keys.JobPrefix(name).description)
        return None if body is None else decode(Job, body)

    def find_params(self, name: str) -> list[dict[str, Any]]:
        """The parameters of all calls of this name."""
        return [call.params for call in self.calls if call.name == name]

    def regions(self, service: str) -> set[str]:
        """In which a service was called."""
        return {call.region for call in self.calls if call.service == service}


HOUR = 3600.0
RESERVED: dict[str, dict[str, Any]] = {
    reservation.OURS: {},
    reservation.BLOCK: {"kind": "capacity-block", "ends_at": NOW + 12.5 * HOUR},
    reservation.LATER: {"kind": "capacity-block", "begins_at": NOW + 10 * HOUR, "ends_at": NOW + 58 * HOUR},
    reservation.UNTAGGED: {"tags": {}},
    reservation.FOREIGN: {"owner": "999999999999"},
    reservation.CANCELLED: {"cancelled": True},
    reservation.WINDOWS: {"platform": "Windows"},
    reservation.DEDICATED: {"tenancy": "dedicated"},
    reservation.OTHER_TYPE: {"instance_type": "g4dn.xlarge"},
    reservation.OTHER_ZONE: {"zone": "eu-central-1z"},
    reservation.INTERRUPTIBLE: {"interruptible": True},
}
"""Reservations at home, by id."""


@contextmanager
def account(env: AdmissionEnvironment = ADMITTING, rules: RequestRules = RULES) -> Iterator[Account]:
    """A new account, which every client of the functions talks to meanwhile. The rules stand in the file that a deploy packs."""
    there = Account()
    functions = Functions(there)
    with TemporaryDirectory() as folder:
        file = Path(folder, RULES_FILE)
        file.write_bytes(encode(rules))
        functions.admission = replace(env, rules=str(file))
        with functions.installed():
            yield there


def start(request: object, name: str = "job-1") -> dict[str, Any]:
    """Admit's function as the machine calls it, the request having been JSON."""
    execution = {"arn": f"{ARN}{name}", "name": name, "started_at": "2027-01-15T08:00:00.000Z"}
    return handler(json.loads(json.dumps({"request": request, "execution": execution})), None)


def refused(request: object) -> str:
    """What a person reads whose request is refused."""
    with pytest.raises(InvalidRequest) as problem:
        start(request)
    return str(problem.value)


def registry(account: str, region: str = PLACE.region) -> str:
    """The private ECR registry of an account."""
    return f"{account}.dkr.ecr.{region}.amazonaws.com"

"""A small account behind real boto3 clients, as Admit's function meets it: it answers, and remembers every call."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from admission.handler import handler
from aws import clients
from contract import keys, names
from contract.codec import decode, encode
from contract.jobs import Job
from tests.archives import tarred
from tests.builders import ADMISSION, IMAGE, JOB, NOW, PLACE
from tests.fakes.yard import ABROAD

ADMITTING = replace(
    ADMISSION,
    data_buckets=("datasets", "partner", "retired"),
    images={"x86_64": "/aws/service/x", "arm64": "/aws/service/a"},
    limits=replace(ADMISSION.limits, instance_types=("g*", "t4g.*", "p3.*")),
)
ARN = "arn:aws:states:eu-central-1:123456789012:execution:yard-train:"
TAKEN = "taken"
"""The name of a job of another execution."""
FORGOTTEN = "job-of-spring"
"""The name of a job of an execution of the same name, which Step Functions has forgotten."""
ZONES = {
    "g5.xlarge": ["eu-central-1a", "eu-central-1c", ABROAD.zones[0].name],
    "g4ad.xlarge": ["eu-central-1f"],
    "p3.2xlarge": ["eu-central-1a"],
    "t4g.large": ["eu-central-1b"],
}
CHANGES = ("Put", "Copy", "Delete", "Run", "Create", "Terminate", "Send", "Tag", "Update", "Start", "Stop")
"""How the names of calls begin that change something."""


class Refused(Exception):
    """The service answers with this error code."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.status = status


def packed(*names: str) -> bytes:
    """A .tar.gz of files of these names."""
    return tarred(*((name, f"# {name}") for name in names))


def zipped(*names: str) -> bytes:
    """A .zip of them."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as whole:
        for name in names:
            whole.writestr(name, f"# {name}")
    return body.getvalue()


GOOD = packed("./train.py", "./run.sh")
"""What lies behind every address where nothing else is said to lie."""


ZIPPED = zipped("train.py")
ODD_CODE = {
    "uploads/nothing.tar.gz": tarred(),
    "uploads/broken.tar.gz": b"no archive",
    "uploads/folder.tar.gz": packed("digits/train.py", "digits/data.csv"),
    "uploads/main.tar.gz": packed("main.py", "train/model.py"),
}
"""Archives of which a job cannot run."""


def an_object(size: int = len(GOOD), **more: Any) -> dict[str, Any]:
    return {"ContentLength": size, "VersionId": "v1", "ETag": '"e1"', **more}


@dataclass
class Account:
    """What there is, and what was asked and changed."""

    objects: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=lambda: {
            ("yard-home", "uploads/a.tar.gz"): an_object(),
            ("yard-home", keys.agent(ADMISSION.agent)): an_object(),
            ("yard-home", "uploads/empty.zip"): an_object(0),
            ("yard-home", "uploads/large.zip"): an_object(6 * 1024**3),
            ("yard-home", "uploads/frozen.zip"): an_object(len(ZIPPED), StorageClass="GLACIER"),
            **{("yard-home", key): an_object(len(body)) for key, body in ODD_CODE.items()},
            ("datasets", "imagenet/0.tar"): an_object(),
        }
    )
    contents: dict[str, bytes] = field(default_factory=lambda: {"uploads/frozen.zip": ZIPPED, **ODD_CODE})
    """Key to bytes, of objects that are not GOOD."""
    bodies: dict[str, bytes] = field(
        default_factory=lambda: {
            keys.JobPrefix(TAKEN).description: encode(replace(JOB, id=TAKEN, execution=f"{ARN}another")),
            keys.JobPrefix(FORGOTTEN).description: encode(
                replace(JOB, id=FORGOTTEN, execution=f"{ARN}{FORGOTTEN}", admitted_at=1_788_249_600.0)
            ),
        }
    )
    """Documents of the home bucket."""
    ages: dict[str, float] = field(default_factory=dict)
    """Key to the days since it was written; the others were written now."""
    copied: list[tuple[Any, str, str]] = field(default_factory=list)
    """Source, key, and what becomes of the metadata."""
    calls: list[str] = field(default_factory=list)
    regions: dict[str, set[str]] = field(default_factory=dict)
    """Service to the regions in which it was called."""
    volume_key: str = "alias/aws/ebs"
    """Of volumes by default, in every region; empty: an organization's policy lets nobody ask."""
    places: bool = True
    """The Region stack is there."""

    @property
    def changes(self) -> list[str]:
        return [call for call in self.calls if call.split(":")[1].startswith(CHANGES)]

    def answer(self, *, model: Any, context: Mapping[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        """Stands in for the network: botocore takes what a `before-call` handler returns as the service's answer."""
        self.calls.append(f"{model.service_model.service_name}:{model.name}")
        self.regions.setdefault(model.service_model.service_name, set()).add(context["client_region"])
        try:
            answer = getattr(self, f"_{model.name}")(context["asked"])
        except Refused as problem:
            error = {"Error": {"Code": str(problem), "Message": "refused"}, "ResponseMetadata": {}}
            return SimpleNamespace(status_code=problem.status), error
        return SimpleNamespace(status_code=200), answer

    def upload(self, key: str, body: bytes) -> str:
        """Puts an archive into the folder of uploads; returns its address."""
        self.objects["yard-home", f"uploads/{key}"] = an_object(len(body))
        self.contents[f"uploads/{key}"] = body
        return f"s3://yard-home/uploads/{key}"

    def _HeadObject(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._open(asked["Bucket"])
        if (asked["Bucket"], asked["Key"]) not in self.objects:
            raise Refused("404", 404)
        return self.objects[asked["Bucket"], asked["Key"]]

    def _GetObject(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if ("Range" in asked) and (asked["Bucket"], asked["Key"]) in self.objects:
            start = int(asked["Range"].removeprefix("bytes=").removesuffix("-"))
            return {"Body": io.BytesIO(self.contents.get(asked["Key"], GOOD)[start:])}
        if asked["Key"] not in self.bodies:
            raise Refused("NoSuchKey", 404)
        body = self.bodies[asked["Key"]]
        return {"Body": SimpleNamespace(read=lambda: body), "ETag": '"1"'}

    def _ListObjectsV2(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self._open(asked["Bucket"], list_code="AccessDenied")
        found = [key for bucket, key in self.objects if bucket == asked["Bucket"] and key.startswith(asked["Prefix"])]
        now = datetime.fromtimestamp(NOW, UTC)
        return {
            "KeyCount": len(found[:1]),
            "Contents": [
                {"Key": key, "Size": 1, "LastModified": now - timedelta(days=self.ages.get(key, 0.0))} for key in found
            ],
            "ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(now, usegmt=True)}},
        }

    def _open(self, bucket: str, list_code: str = "403") -> None:
        if bucket == "partner":
            raise Refused(list_code, 403)
        if bucket == "retired":
            raise Refused("NoSuchBucket" if list_code != "403" else "404", 404)

    def _PutObject(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        body = asked["Body"]  # bytes, or a file that botocore made of them
        self.bodies[asked["Key"]] = body if isinstance(body, bytes) else body.read()
        return {"ETag": '"1"'}

    def _CopyObject(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        self.copied.append((asked["CopySource"], asked["Key"], asked.get("MetadataDirective", "COPY")))
        self.objects[asked["Bucket"], asked["Key"]] = an_object()
        return {}

    def _GetEbsDefaultKmsKeyId(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802, ARG002
        if not self.volume_key:
            raise Refused("UnauthorizedOperation", 403)
        return {"KmsKeyId": self.volume_key}

    def _GetParameter(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        values = {"/aws/service/x": IMAGE.id, "/aws/service/a": "ami-gone"}
        if self.places:
            values |= {names.region_parameter("yard", one.region): encode(one).decode() for one in (PLACE, ABROAD)}
        if asked["Name"] not in values:
            raise Refused("ParameterNotFound")
        return {"Parameter": {"Value": values[asked["Name"]]}}

    def _DescribeInstanceTypes(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        wanted = asked["Filters"][0]["Values"]
        return {
            "InstanceTypes": [
                {
                    "InstanceType": name,
                    "ProcessorInfo": {"SupportedArchitectures": ["arm64" if name.startswith("t4g") else "x86_64"]},
                    "PlacementGroupInfo": {"SupportedStrategies": ["cluster"]},
                }
                for name in ZONES
                if name in wanted
            ]
        }

    def _DescribeInstanceTypeOfferings(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        wanted = asked["Filters"][0]["Values"]
        offered = [(name, zone) for name in ZONES if name in wanted for zone in ZONES[name]]
        return {"InstanceTypeOfferings": [{"InstanceType": name, "Location": zone} for name, zone in offered]}

    def _DescribeImages(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if asked["ImageIds"] != [IMAGE.id]:
            raise Refused("InvalidAMIID.NotFound")
        root = {"DeviceName": IMAGE.root_device, "Ebs": {"VolumeSize": IMAGE.snapshot_gb}}
        return {"Images": [{"RootDeviceName": IMAGE.root_device, "BlockDeviceMappings": [root]}]}

    def _DescribeSecret(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        if asked["SecretId"].endswith("/dying"):
            return {"DeletedDate": 1}
        if not asked["SecretId"].endswith("/token"):
            raise Refused("ResourceNotFoundException")
        return {"Name": "token"}

    def job(self, name: str) -> Job | None:
        """What was written as the job's job.json."""
        body = self.bodies.get(keys.JobPrefix(name).description)
        return None if body is None else decode(Job, body)


_now: list[Account] = []
"""The account that the clients talk to at this moment."""


@cache
def _session() -> boto3.Session:
    session = boto3.Session(region_name=ADMITTING.home_region)

    def remember(*, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"] = dict(params)

    def answer(**call: Any) -> Any:
        return _now[-1].answer(**call)

    session.events.register("before-parameter-build", remember)
    session.events.register("before-call", answer)
    return session


@cache
def _client(service: str, region: str | None) -> Any:
    """Made once for all tests: a client takes longer than everything it is asked here."""
    return _session().client(service, region_name=region)  # type: ignore[call-overload]


@contextmanager
def account(patch: pytest.MonkeyPatch) -> Iterator[Account]:
    """A new account, which every client of the functions talks to meanwhile."""
    for name, value in ADMITTING.write().items():
        patch.setenv(name, value)
    patch.setattr(boto3, "client", lambda service, region_name, config: _client(service, region_name))  # noqa: ARG005
    clients.client.cache_clear()
    _now.append(Account())
    try:
        yield _now[-1]
    finally:
        _now.pop()
        clients.client.cache_clear()


def start(request: object, name: str = "job-1") -> dict[str, Any]:
    """Admit's function as the machine calls it, the request having been JSON."""
    execution = {"arn": f"{ARN}{name}", "name": name, "started_at": "2027-01-15T08:00:00.000Z"}
    return handler(json.loads(json.dumps({"request": request, "execution": execution})), None)

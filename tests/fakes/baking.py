"""An account in which images are baked: EC2 that makes images of stopped machines, a machine that installs, and a stranger's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from contract import names, tags
from localaws.model import Refused
from localaws.services.ec2_instance import Machine
from localaws.services.ec2_launch import tags_for
from stacks.settings import Settings
from tests.builders import NOW, PLACE
from tests.fakes import wire
from tests.fakes.aws import Aws
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2_catalogue import Kind
from tests.fakes.wire import Call
from tests.fakes.yard import admits, deployed, home
from tools.bake_image.__main__ import bake
from tools.bake_image.plan import DIGEST_TAG, BakeOptions
from tools.bake_image.recipe import MARK

BASE = "ami-0123456789abcdef0"
DEPLOYMENT = "yard"
KINDS = (Kind("m6i.xlarge"), Kind("m6g.xlarge", architectures=("arm64",)))
ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})
INSTALLS_S = 200.0

Install = Callable[["BakingEc2", Machine], None]


def succeed(ec2: BakingEc2, machine: Machine) -> None:
    """What user_data.sh does where everything goes well."""
    ec2.says(machine, "installs with /opt/pytorch/bin/python")
    ec2.says(machine, f"baked {machine.tags[DIGEST_TAG]}")
    ec2.power_off(machine)


class BakingEc2(FakeEc2):
    """The public fields are knobs."""

    install: Install = staticmethod(succeed)
    egress: tuple[str, ...] = ("-1",)
    """Protocols that the default group lets out."""
    snapshot_state = "available"
    snapshot_s = 300.0

    def __init__(self, before: FakeEc2, aws: Aws) -> None:
        super().__init__(before.region, before.clock, before.catalogue, aws.events.publish, before._number)
        self.bases: dict[str, dict[str, Any]] = {}
        self.images: dict[str, dict[str, Any]] = {}

    def says(self, machine: Machine, words: str) -> None:
        machine.console += f"[   12.3] cloud-init[901]: {MARK} {words}\n"
        machine.kept = machine.console

    def begin(self, machine: Machine) -> None:
        super().begin(machine)
        self.at(machine.running_at + INSTALLS_S, lambda: self._installed(machine))

    def _installed(self, machine: Machine) -> None:
        if machine.runs(self.now):
            self.install(self, machine)

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        match operation:
            case "DescribeImages":
                return {"Images": self._described(params)}
            case "CreateImage":
                return self._create(params)
            case "DescribeSubnets":
                return {"Subnets": [self._subnet(one) for one in params["SubnetIds"]]}
            case "DescribeSecurityGroups":
                return {"SecurityGroups": self._groups(params)}
        return super().answer(operation, params)

    def _described(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        if wanted := params.get("ImageIds"):
            if wanted[0] not in self.bases:
                raise Refused("InvalidAMIID.NotFound", f"The image id '[{wanted[0]}]' does not exist")
            return [self.bases[wanted[0]]]
        (one,) = params["Filters"]
        key = {"name": "Name", "image-id": "ImageId"}[one["Name"]]
        return [self._shown(image) for image in self.images.values() if image[key] in one["Values"]]

    def _shown(self, image: dict[str, Any]) -> dict[str, Any]:
        done = self.now >= image["begun"] + self.snapshot_s
        reason = (
            {"StateReason": {"Code": "x", "Message": "the snapshot failed"}} if self.snapshot_state == "failed" else {}
        )
        kept = {name: value for name, value in image.items() if name not in {"begun", "Machine"}}
        return {**kept, "State": self.snapshot_state if done else "pending", **(reason if done else {})}

    def _create(self, params: Mapping[str, Any]) -> dict[str, Any]:
        machine = self.known(params["InstanceId"])
        if machine.state(self.now) != "stopped":
            raise Refused("IncorrectState", "The instance is not stopped")
        if any(image["Name"] == params["Name"] for image in self.images.values()):
            raise Refused("InvalidAMIName.Duplicate", "AMI name is already in use")
        identity = self.name("ami")
        marks = [{"Key": key, "Value": value} for key, value in tags_for(params, "image").items()]
        self.images[identity] = {
            "ImageId": identity,
            "Name": params["Name"],
            "Tags": marks,
            "begun": self.now,
            "Machine": machine.id,
        }
        return {"ImageId": identity}

    def _subnet(self, identity: str) -> dict[str, Any]:
        if identity not in self.catalogue.subnets:
            raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{identity}' does not exist")
        return {"SubnetId": identity, "VpcId": "vpc-1"}

    def _groups(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        filters = {one["Name"]: one["Values"][0] for one in params["Filters"]}
        if filters["vpc-id"] != "vpc-1" or filters.get("group-id", "sg-default") != "sg-default":
            return []
        rules = [{"IpProtocol": one, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]} for one in self.egress]
        return [{"GroupId": "sg-default", "IpPermissionsEgress": rules}]


class Bakery:
    """A deployment, and everything that a person says and sees. `machines` are those that are not the stranger's."""

    def __init__(self, file: Path, **settings: Any) -> None:
        self.settings = Settings.parse({"deployment": DEPLOYMENT, "images": {"x86_64": BASE}, **settings})
        self.aws = admits(deployed())
        described = self.aws.directory.parameters[PLACE.region, names.region_parameter(DEPLOYMENT, PLACE.region)]
        assert described
        self.ec2 = BakingEc2(home(self.aws), self.aws)
        self.aws.ec2[PLACE.region] = self.ec2
        self.ec2.catalogue.kinds |= {kind.name: kind for kind in KINDS}
        self.ec2.catalogue.images[BASE] = ("/dev/xvda", 75)
        self.ec2.catalogue.security_groups.add("sg-default")
        self.ec2.bases[BASE] = {
            "ImageId": BASE,
            "Architecture": "x86_64",
            "State": "available",
            "RootDeviceName": "/dev/xvda",
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 75}}],
        }
        self.stranger = self.ec2.put({tags.NAME: "somebody's"}, launched_at=NOW - 1000)
        self.file, self.said = file, list[str]()
        self.before: Callable[[Call], None] = lambda _: None
        """Called before the effect of each call, with the call; may raise."""
        self.after: Callable[[Call], None] = lambda _: None

    @property
    def machines(self) -> list[Machine]:
        return [one for one in self.ec2.machines.values() if one is not self.stranger]

    @property
    def machine(self) -> Machine:
        (only,) = self.machines
        return only

    @property
    def left(self) -> list[str]:
        """Machines of ours that have not begun to end."""
        return [one.id for one in self.machines if one.state(self.ec2.now) not in {"shutting-down", "terminated"}]

    def called(self, operation: str) -> list[dict[str, Any]]:
        return [call.params for call in self.aws.calls if call.operation == operation]

    def bake(self, *, limit_min: int = 60, sleep: Callable[[float], None] | None = None, **asked: Any) -> int:
        """Runs it as the command line does."""
        options: dict[str, Any] = {"family": "x86_64", "region": PLACE.region, **asked}
        with self.connected():
            ec2 = boto3.client("ec2", region_name=PLACE.region, config=ONCE)
            ssm = boto3.client("ssm", region_name=PLACE.region, config=ONCE)
            return bake(
                BakeOptions(**options),
                self.settings,
                self.file,
                limit_min,
                ec2,
                ssm,
                _Time(self.aws, sleep),
                self.said.append,
            )

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Puts the account behind every client of boto3."""

        def answer(call: Call) -> dict[str, Any]:
            self.before(call)
            result = self.aws.answer(call)
            self.after(call)
            return result

        with wire.connected(answer, self.aws.clock.time):
            yield


class _Time:
    def __init__(self, aws: Aws, sleep: Callable[[float], None] | None) -> None:
        self._clock, self._before = aws.clock, sleep

    def time(self) -> float:
        return self._clock.time()

    def sleep(self, seconds: float, /) -> None:
        if self._before:
            self._before(seconds)
        self._clock.sleep(seconds)

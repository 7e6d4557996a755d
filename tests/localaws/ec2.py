"""A local AWS with EC2 alone, a network to launch into, and a launch to vary."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws import server
from localaws.conditions import Conditions
from localaws.server import LocalAws
from localaws.services import ec2
from rehearsal.faults import Fault, to_faults
from rehearsal.node_faults import NodeFaults
from tests.localaws.app import impatient

PARAMETER = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
QUICK = Conditions(
    speed=30.0,
    boot_s=(3.0, 9.0),
    shutdown_s=(6.0, 12.0),
    tags_delay_s=(15.0, 15.0),
    console_delay_s=(60.0, 90.0),
    iam_delay_s=(0.0, 0.0),
    state_lag_s=(0.0, 0.0),
    throttled=0.0,
    events_lost=0.0,
)

FORKS = r"""#!/bin/bash
(trap '' TERM; setsid bash -c 'trap "" TERM; cd "$TRAINYARD_ROOT"; echo $$ > new; mv new grandchild; while :; do sleep 1; done' &)
exit 0
"""


@contextmanager
def local_aws(work: Path, faults: Mapping[str, Mapping[str, str]] | tuple[Fault, ...] = ()) -> Iterator[Yard]:
    """`work` gets the nodes' folders. Everything is over on leaving."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "GAPS", ())
        aws = LocalAws(
            replace(QUICK, faults=to_faults(faults)), gaps=("ec2", "ssm", "dynamodb"), work=work, mischief=NodeFaults()
        )
        aws.start()
        try:
            yield Yard(aws)
        finally:
            ec2.machines().stop()
            aws.stop()


class Yard:
    """What the tests touch of the account."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.events: list[tuple[str, str]] = []
        aws.on_emit(self._happened)
        self.ec2 = impatient(aws, server.DEPLOYER, "ec2")
        subnets = self.ec2.describe_subnets()["Subnets"]
        self.subnet = next(one for one in subnets if one["AvailabilityZone"] == "us-east-1a")
        self.group = self.ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=self.subnet["VpcId"])[
            "GroupId"
        ]
        self.image = aws.client("ssm").get_parameter(Name=PARAMETER)["Parameter"]["Value"]
        self.template = self.ec2.create_launch_template(
            LaunchTemplateName="nodes",
            LaunchTemplateData={
                "MetadataOptions": {"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
                "InstanceInitiatedShutdownBehavior": "terminate",
                "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3"}}],
            },
        )["LaunchTemplate"]["LaunchTemplateId"]
        self.profile = self._profile()

    def _happened(self, _source: str, _kind: str, detail: Mapping[str, Any], _arns: object, _region: str) -> None:
        self.events.append((detail["instance-id"], detail["state"]))

    def states_of(self, instance: str) -> list[str]:
        """The states that events told of, in their order."""
        return [state for one, state in self.events if one == instance]

    def _profile(self) -> str:
        iam = self.aws.client("iam")
        iam.create_role(RoleName="node", AssumeRolePolicyDocument="{}")
        arn: str = iam.create_instance_profile(InstanceProfileName="node")["InstanceProfile"]["Arn"]
        iam.add_role_to_instance_profile(InstanceProfileName="node", RoleName="node")
        return arn

    def request(self, nodes: int = 2, **changes: Any) -> dict[str, Any]:
        """RunInstances as the launcher sends it; None takes an argument away."""
        whole = {
            "MinCount": nodes,
            "MaxCount": nodes,
            "InstanceType": "g5.xlarge",
            "ImageId": self.image,
            "LaunchTemplate": {"LaunchTemplateId": self.template, "Version": "1"},
            "IamInstanceProfile": {"Arn": self.profile},
            "NetworkInterfaces": [
                {
                    "DeviceIndex": 0,
                    "SubnetId": self.subnet["SubnetId"],
                    "Groups": [self.group],
                    "DeleteOnTermination": True,
                }
            ],
            "BlockDeviceMappings": [
                {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "DeleteOnTermination": True}}
            ],
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": [{"Key": "trainyard:job", "Value": "digits"}]}
                for kind in ("instance", "volume", "network-interface")
            ],
            "UserData": "#!/bin/bash\n",
        } | changes
        return {name: value for name, value in whole.items() if value is not None}

    def run(self, nodes: int = 2, **changes: Any) -> list[str]:
        """Ids of new instances, in the order of rank."""
        launched = self.ec2.run_instances(**self.request(nodes, **changes))["Instances"]
        return [one["InstanceId"] for one in sorted(launched, key=lambda one: one["AmiLaunchIndex"])]

    def states(self, instances: list[str]) -> set[str]:
        return {self.instance(one).state(time.time()) for one in instances}

    def instance(self, instance: str) -> Any:
        found = ec2.machines().get(instance)
        assert found is not None
        return found

    def console(self, instance: str) -> str:
        node = ec2.nodes().get(instance)
        return node.console.read_text() if node and node.console.exists() else ""


def refusal(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return str(refused.value.response["Error"]["Code"])

"""Clients of EC2 that read no more of an answer than the reaper wants to know.

Of an instance's hundred members it wants eight. botocore makes objects of all of them: 100,000 instances take it more than twice
as long, and a page of them four times the memory. So its model of EC2 is cut to these calls and members when it is loaded.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.loaders import Loader

from aws.clients import BRISK
from aws.models import reached

OPERATIONS = (
    "DescribeInstances",
    "DescribeVolumes",
    "DescribeSpotInstanceRequests",
    "DescribeNetworkInterfaces",
    "TerminateInstances",
    "DeleteVolume",
    "CancelSpotInstanceRequests",
    "DeleteNetworkInterface",
)
READ = {
    "Reservation": ("Instances",),
    "Instance": ("InstanceId", "State", "LaunchTime", "InstanceType", "IamInstanceProfile", "Tags"),
    "Volume": ("VolumeId", "State", "CreateTime", "Tags"),
    "SpotInstanceRequest": ("SpotInstanceRequestId", "InstanceId", "State", "CreateTime", "Tags"),
    "NetworkInterface": ("NetworkInterfaceId", "Status", "TagSet"),
}
"""Members that are read, by shape. Other shapes are read whole."""


class NarrowLoader(Loader):
    """botocore's own, but for EC2's model."""

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:
        model = super().load_service_model(service_name, type_name, api_version)
        if (service_name, type_name) == ("ec2", "service-2"):
            cut(model)
        return model


def cut(model: dict[str, Any]) -> None:
    """Leaves OPERATIONS in the model, and the shapes that they reach. In place: the loader keeps what it has loaded."""
    shapes = model["shapes"]
    for name, members in READ.items():
        shapes[name]["members"] = {member: shapes[name]["members"][member] for member in members}
    model["operations"] = {name: model["operations"][name] for name in OPERATIONS}
    model["shapes"] = reached(shapes, model["operations"])


@cache
def _session() -> boto3.session.Session:
    core = botocore.session.get_session()
    core.register_component("data_loader", NarrowLoader())
    # botocore's own guesses the format of a time, which takes as long as a quarter of all the rest.
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=datetime.fromisoformat)
    return boto3.session.Session(botocore_session=core)


@cache
def ec2(region: str) -> Any:
    """For the calls of OPERATIONS only."""
    return _session().client("ec2", region_name=region, config=BRISK)

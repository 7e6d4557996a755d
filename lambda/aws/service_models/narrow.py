"""Clients that know no more of a service than the reaper asks it for, and of EC2's answers read no more than it wants to know.

Of an instance's hundred members it wants eight. botocore makes objects of all of them: 100,000 instances take it more than twice
as long, and a page of them four times the memory; the whole models of EC2 and SageMaker take tens of MB. So its models are cut to
these calls and members when they are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from functools import cache
from typing import Any

import boto3
import botocore.session
from botocore.loaders import Loader

from aws.clients import BRISK
from aws.service_models.shapes import reached

CALLS = {
    "ec2": (
        "DescribeInstances",
        "DescribeVolumes",
        "DescribeSpotInstanceRequests",
        "DescribeNetworkInterfaces",
        "TerminateInstances",
        "DeleteVolume",
        "CancelSpotInstanceRequests",
        "DeleteNetworkInterface",
    ),
    "sagemaker": ("ListTrainingJobs", "DescribeTrainingJob", "ListTags", "StopTrainingJob"),
    "batch": ("ListJobs", "DescribeJobs", "TerminateJob"),
}
READ = {
    "Reservation": ("Instances",),
    "Instance": ("InstanceId", "State", "LaunchTime", "InstanceType", "IamInstanceProfile", "Tags"),
    "Volume": ("VolumeId", "State", "CreateTime", "Tags"),
    "SpotInstanceRequest": ("SpotInstanceRequestId", "InstanceId", "State", "CreateTime", "Tags"),
    "NetworkInterface": ("NetworkInterfaceId", "Status", "TagSet"),
}
"""Members that are read of EC2's answers, by shape. Other shapes are read whole."""


class NarrowLoader(Loader):
    """botocore's own, but for the models of CALLS."""

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:
        model = super().load_service_model(service_name, type_name, api_version)
        if service_name in CALLS and type_name == "service-2":
            cut(model, CALLS[service_name], READ if service_name == "ec2" else {})
        return model


def cut(model: dict[str, Any], calls: Iterable[str], read: Mapping[str, Iterable[str]]) -> None:
    """Leaves these calls in the model, and the shapes that they reach. In place: the loader keeps what it has loaded."""
    shapes = model["shapes"]
    for name, members in read.items():
        shapes[name]["members"] = {member: shapes[name]["members"][member] for member in members}
    model["operations"] = {name: model["operations"][name] for name in calls}
    model["shapes"] = reached(shapes, model["operations"])


@cache
def _session() -> boto3.session.Session:
    core = botocore.session.get_session()
    core.register_component("data_loader", NarrowLoader())
    # botocore's own guesses the format of a time, which takes as long as a quarter of all the rest.
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
    return boto3.session.Session(botocore_session=core)


def _moment(written: str | float) -> datetime:
    """EC2 writes it out, SageMaker counts seconds."""
    return (
        datetime.fromisoformat(written) if isinstance(written, str) else datetime.fromtimestamp(written, timezone.utc)
    )


@cache
def client(service: str, region: str) -> Any:
    """For the CALLS of the service only."""
    return _session().client(service, region_name=region, config=BRISK)  # type: ignore[call-overload]

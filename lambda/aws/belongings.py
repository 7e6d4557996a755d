"""The EC2 calls of the reaper: lists a deployment's resources in a region page by page, and ends each sort of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from aws import ec2
from aws.facts import Belonging, Moment, Sort
from aws.service_models import narrow
from contract import tags
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client

PAGE = 1000
"""The most that describe calls give at once; volumes come by 500 however many are asked for."""
FILTER_VALUES = 200
"""The most values that a filter takes."""
SKEW_S = 300.0
"""Seconds by which a function's own clock may be wrong."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of a describe call, with EC2's own time of it."""

    things: tuple[Belonging, ...]
    moment: Moment


def filters(**values: Sequence[str]) -> list[dict[str, Any]]:
    """Filters of describe calls from names with underscores: `instance_id=[...]`."""
    return [{"Name": name.replace("_", "-"), "Values": list(some)} for name, some in values.items()]


def tagged(deployment: str) -> list[dict[str, Any]]:
    """The filter for what carries the deployment's tag."""
    return [{"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]}]


def profiled(profile: str) -> list[dict[str, Any]]:
    """The filter for instances under the instance profile, whatever their tags."""
    return [{"Name": "iam-instance-profile.arn", "Values": [profile]}]


class Belongings:
    """One region. Describe calls stream; they raise ClientError or BotoCoreError, part way too.

    `client` is one of EC2 that the caller has already, in place of the one that reads a pass of 100,000 instances quickly.
    """

    def __init__(self, region: str, client: EC2Client | None = None) -> None:
        self.region = region
        self._client: EC2Client = client or narrow.client("ec2", region)

    def instances(self, wanted: list[dict[str, Any]]) -> Iterator[Page]:
        for raw in self._raw("describe_instances", wanted):
            every = (one for reservation in raw.get("Reservations", []) for one in reservation.get("Instances", []))
            yield Page(tuple(map(self._instance, every)), moment(raw))

    def volumes(self, wanted: list[dict[str, Any]]) -> Iterator[Page]:
        """Those that hang on no instance."""
        for raw in self._raw("describe_volumes", wanted + filters(status=["available"])):
            every = (self._thing(Sort.VOLUME, one, "VolumeId", "State", "CreateTime") for one in raw["Volumes"])
            yield Page(tuple(every), moment(raw))

    def spot_requests(self, wanted: list[dict[str, Any]]) -> Iterator[Page]:
        """Open ones. An active one has an instance, whose end closes it: all of ours are one-time requests."""
        for raw in self._raw("describe_spot_instance_requests", wanted + filters(state=["open"])):
            every = (
                self._thing(Sort.SPOT_REQUEST, one, "SpotInstanceRequestId", "State", "CreateTime")
                for one in raw["SpotInstanceRequests"]
                if not one.get("InstanceId")
            )
            yield Page(tuple(every), moment(raw))

    def interfaces(self, wanted: list[dict[str, Any]]) -> Iterator[Page]:
        """Those that hang on no instance."""
        for raw in self._raw("describe_network_interfaces", wanted + filters(status=["available"])):
            every = (
                self._thing(Sort.INTERFACE, one, "NetworkInterfaceId", "Status", "") for one in raw["NetworkInterfaces"]
            )
            yield Page(tuple(every), moment(raw))

    def terminate(self, ids: Sequence[str]) -> dict[str, str]:
        """Terminates them. Returns the reason for each that EC2 refused, as the other calls that end things do."""
        try:
            return ec2.terminate(self._client, ids)
        except BotoCoreError as problem:
            return dict.fromkeys(ids, str(problem))

    def delete_volumes(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda id_: self._client.delete_volume(VolumeId=id_))

    def cancel_spot_requests(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda id_: self._client.cancel_spot_instance_requests(SpotInstanceRequestIds=[id_]))

    def delete_interfaces(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda id_: self._client.delete_network_interface(NetworkInterfaceId=id_))

    def _raw(self, operation: Any, wanted: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
        pages: Any = self._client.get_paginator(operation)
        yield from pages.paginate(Filters=wanted, PaginationConfig={"PageSize": PAGE})

    def _instance(self, raw: Mapping[str, Any]) -> Belonging:
        marks = {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}
        return Belonging(
            id=raw["InstanceId"],
            sort=Sort.INSTANCE,
            region=self.region,
            state=raw.get("State", {}).get("Name", ""),
            born_at=_epoch(raw.get("LaunchTime")),
            profile=raw.get("IamInstanceProfile", {}).get("Arn", ""),
            instance_type=raw.get("InstanceType", ""),
            **_tags(marks),
        )

    def _thing(self, sort: Sort, raw: Mapping[str, Any], id_: str, state: str, born: str) -> Belonging:
        marks = {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", raw.get("TagSet", []))}
        return Belonging(
            id=raw[id_],
            sort=sort,
            region=self.region,
            state=raw.get(state, ""),
            born_at=_epoch(raw.get(born)),
            **_tags(marks),
        )


def _tags(marks: Mapping[str, str]) -> dict[str, Any]:
    """The tags by exact key: a key in other case, or with one more space, is another tag."""
    return {
        "deployment": marks.get(tags.DEPLOYMENT),
        "protected": tags.PROTECTED in marks,
        "execution": marks.get(tags.EXECUTION, ""),
        "deadline": marks.get(tags.DEADLINE, ""),
        "job": marks.get(tags.JOB, ""),
        "owner": marks.get(tags.OWNER, ""),
    }


def _epoch(value: datetime | None) -> float | None:
    return value.timestamp() if value else None


def moment(answer: Mapping[str, Any]) -> Moment:
    """AWS's time of the answer; without one, the function's clock and the error that it may have."""
    said = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
    try:
        exact = parsedate_to_datetime(said).timestamp()
    except ValueError:
        now = time.time()
        return Moment(earliest=now - SKEW_S, latest=now + SKEW_S)
    return Moment(earliest=exact, latest=exact)


def end_each(ids: Sequence[str], end: Callable[[str], object]) -> dict[str, str]:
    """Ends one after the other. Returns the reason for each that AWS refused; one that does not exist any more counts as ended."""
    refused: dict[str, str] = {}
    for id_ in ids:
        try:
            end(id_)
        except (ClientError, BotoCoreError) as problem:
            if not (isinstance(problem, ClientError) and code_of(problem).endswith("NotFound")):
                refused[id_] = str(problem)
    return refused

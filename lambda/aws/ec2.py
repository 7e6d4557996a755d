"""Every EC2 call of the functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import IN_PASSING, ONE_ATTEMPT, PATIENT, client
from aws.facts import Instance, InstanceType
from aws.state_reasons import word_reason
from aws.types import instance_type
from contract import tags
from contract.aws_errors import code_of
from contract.jobs import Ami

if TYPE_CHECKING:
    from types_boto3_ec2.client import EC2Client
    from types_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

PAGE = 1000
"""The most that DescribeInstances gives at once, and that TerminateInstances takes."""
PRICE_PAGES = 5
"""Of prices at most: ten types have some dozens, and a page has up to 1,000."""
BUSY = frozenset({"RequestLimitExceeded", "Throttling", "Unavailable", "ServiceUnavailable"})
"""EC2's errors that are about no resource of the request."""

WITHOUT_LATEST = frozenset({"UnsupportedOperation", "IncorrectInstanceState", "InvalidParameterCombination"})
"""The newest lines cannot be had of this instance, or not now."""
SPOT_ENDED = "Server.SpotInstance"
"""How EC2's codes begin that say it ended an instance for its spot capacity: ...Termination, ...Shutdown."""


class Ec2:
    """EC2 in one region."""

    def __init__(self, region: str, config: Config = PATIENT) -> None:
        self.region = region
        self._client: EC2Client = client("ec2", region, config)
        self._once: EC2Client = client("ec2", region, ONE_ATTEMPT)

    def run(self, arguments: Mapping[str, Any], *, user_data: str, token: str) -> list[Instance]:
        """RunInstances, one attempt, instances in the order of rank. Raises ClientError or a botocore connection error."""
        answer = self._once.run_instances(**arguments, UserData=user_data, ClientToken=token)
        return sorted((self._instance(one) for one in answer["Instances"]), key=lambda one: one.rank)

    def tag(self, instances: Sequence[str], key: str, value: str) -> None:
        self._client.create_tags(Resources=list(instances), Tags=[{"Key": key, "Value": value}])

    def of_job(self, deployment: str, job: str) -> list[Instance]:
        """Every instance of the job that EC2 still knows, of all attempts and in all states."""
        return list(
            self._described(
                Filters=[
                    {"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]},
                    {"Name": f"tag:{tags.JOB}", "Values": [job]},
                ],
                PaginationConfig={"PageSize": PAGE},
            )
        )

    def every(self, deployment: str) -> list[Instance]:
        """Every instance of the deployment that EC2 still knows, of all jobs and in all states."""
        wanted = [{"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]}]
        return list(self._described(Filters=wanted, PaginationConfig={"PageSize": PAGE}))

    def by_id(self, instances: Sequence[str]) -> list[Instance]:
        """Those of the given instances that EC2 knows; a filter, because one unknown id fails a call by InstanceIds."""
        found: list[Instance] = []
        for start in range(0, len(instances), 200):  # a filter takes 200 values
            values = list(instances[start : start + 200])
            found += self._described(
                Filters=[{"Name": "instance-id", "Values": values}], PaginationConfig={"PageSize": PAGE}
            )
        return found

    def of_deployment(self, instances: Sequence[str], deployment: str) -> list[Instance]:
        """Those of at most 200 instances that are the deployment's; events name instances of the whole account."""
        return list(
            self._described(
                Filters=[
                    {"Name": "instance-id", "Values": list(instances)},
                    {"Name": f"tag:{tags.DEPLOYMENT}", "Values": [deployment]},
                ],
                PaginationConfig={"PageSize": PAGE},
            )
        )

    def console(self, instance: str) -> str:
        """What the instance wrote to its console, as far as EC2 has it; empty where it has nothing yet.

        Types on Nitro give the newest lines; of the others, and maybe of instances that ended, EC2 has what it kept itself, at
        the boot and at the end.
        """
        ec2: EC2Client = client("ec2", self.region, IN_PASSING)
        try:
            if newest := ec2.get_console_output(InstanceId=instance, Latest=True).get("Output", ""):
                return newest
        except ClientError as problem:
            if code_of(problem) not in WITHOUT_LATEST:
                raise
        return ec2.get_console_output(InstanceId=instance).get("Output", "")

    def terminate(self, instances: Sequence[str]) -> dict[str, str]:
        """Terminates them. Returns the reason for each instance that EC2 refused."""
        return terminate(self._client, instances)

    def types(self, names: Iterable[str]) -> dict[str, InstanceType]:
        """Those of the named types that this region has."""
        pages = self._client.get_paginator("describe_instance_types").paginate(
            Filters=[{"Name": "instance-type", "Values": list(names)}]
        )
        return {one["InstanceType"]: instance_type(one) for page in pages for one in page["InstanceTypes"]}

    def accelerated(self) -> list[InstanceType]:
        """Every type of this region that has accelerators. EC2 has no filter for them, so this reads about ten pages."""
        pages = self._client.get_paginator("describe_instance_types").paginate()
        every = (instance_type(one) for page in pages for one in page["InstanceTypes"])
        return [kind for kind in every if kind.accelerators]

    def zones_offering(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Type to the zones of this region that offer it."""
        pages = self._client.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": list(names)}]
        )
        zones: dict[str, set[str]] = {}
        for one in (entry for page in pages for entry in page["InstanceTypeOfferings"]):
            zones.setdefault(one["InstanceType"], set()).add(one["Location"])
        return zones

    def spot_prices(self, names: Iterable[str]) -> dict[tuple[str, str], float] | None:
        """The newest price of each type and zone, USD an hour of one instance. None where EC2 denies it, or does not answer soon: prices
        order the places, and decide about none."""
        ec2: EC2Client = client("ec2", self.region, IN_PASSING)
        now = datetime.now(UTC)
        try:
            pages = ec2.get_paginator("describe_spot_price_history").paginate(
                InstanceTypes=list(names), ProductDescriptions=["Linux/UNIX"], StartTime=now, EndTime=now
            )
            told = [one for page in islice(pages, PRICE_PAGES) for one in page["SpotPriceHistory"]]
            told.sort(key=lambda one: one["Timestamp"])
            usd = {(one["InstanceType"], one["AvailabilityZone"]): float(one["SpotPrice"]) for one in told}
            return {place: price for place, price in usd.items() if 0 < price < math.inf}
        except (ClientError, BotoCoreError, LookupError, ValueError):
            return None

    def zones(self) -> list[str]:
        """Names of the region's availability zones that the account may use now: no local zone and no Wavelength zone."""
        wanted = {
            "zone-type": ["availability-zone"],
            "state": ["available"],
            "opt-in-status": ["opt-in-not-required", "opted-in"],
        }
        filters: list[FilterTypeDef] = [{"Name": name, "Values": values} for name, values in wanted.items()]
        return [
            one["ZoneName"] for one in self._client.describe_availability_zones(Filters=filters)["AvailabilityZones"]
        ]

    def default_volume_key(self) -> str:
        """Under which the account encrypts volumes here unless a launch says otherwise; empty where we may not ask."""
        try:
            return self._client.get_ebs_default_kms_key_id()["KmsKeyId"]
        except ClientError as problem:
            if code_of(problem) == "UnauthorizedOperation":  # a policy of the account's organization
                return ""
            raise

    def image(self, image: str) -> Ami | None:
        """The image with its root device, None where the region or account does not have it."""
        try:
            found = self._client.describe_images(ImageIds=[image])["Images"]
        except ClientError as problem:
            if code_of(problem).startswith("InvalidAMIID"):
                return None
            raise
        if not found:
            return None
        root = found[0]["RootDeviceName"]
        sizes = {
            m.get("DeviceName", ""): m["Ebs"].get("VolumeSize", 0)
            for m in found[0]["BlockDeviceMappings"]
            if "Ebs" in m
        }
        return Ami(
            id=image,
            root_device=root,
            snapshot_gb=sizes.pop(root, 0),
            owner=found[0].get("ImageOwnerAlias") or found[0].get("OwnerId", ""),
            further_devices=tuple(sizes),
            architecture=found[0].get("Architecture", ""),
        )

    def _described(self, **arguments: Any) -> Iterator[Instance]:
        for page in self._client.get_paginator("describe_instances").paginate(**arguments):
            for reservation in page["Reservations"]:
                yield from map(self._instance, reservation["Instances"])

    def _instance(self, raw: InstanceTypeDef) -> Instance:
        marks = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])}
        attempt, first = marks.get(tags.ATTEMPT, ""), marks.get(tags.FIRST_RANK, "")
        return Instance(
            id=raw["InstanceId"],
            region=self.region,
            state=raw["State"]["Name"],
            rank=raw.get("AmiLaunchIndex", 0) + (int(first) if first.isdecimal() else 0),
            address=raw.get("PrivateIpAddress", ""),
            launched_at=raw["LaunchTime"].timestamp(),
            instance_type=raw.get("InstanceType", ""),
            zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
            job=marks.get(tags.JOB, ""),
            attempt=int(attempt) if attempt.isdecimal() else 0,
            why=word_reason(raw.get("StateReason", {})),
            taken_back=raw.get("StateReason", {}).get("Code", "").startswith(SPOT_ENDED),
            protected=tags.PROTECTED in marks,
            placement_group=raw.get("Placement", {}).get("GroupName", ""),
            security_groups=tuple(one["GroupId"] for one in raw.get("SecurityGroups", [])),
            profile=raw.get("IamInstanceProfile", {}).get("Arn", ""),
        )


def terminate(ec2: EC2Client, instances: Sequence[str]) -> dict[str, str]:
    """Terminates them. Returns the reason for each instance that EC2 refused.

    One bad id fails the whole call, so a refused call is repeated with each half. A throttled call is not: halves would only add
    more calls.
    """
    refused: dict[str, str] = {}
    for start in range(0, len(instances), PAGE):
        refused |= _terminate(ec2, list(instances[start : start + PAGE]))
    return refused


def _terminate(ec2: EC2Client, instances: list[str]) -> dict[str, str]:
    try:
        ec2.terminate_instances(InstanceIds=instances)
    except ClientError as problem:
        if len(instances) == 1 or code_of(problem) in BUSY:
            return dict.fromkeys(instances, str(problem))
        middle = len(instances) // 2
        return _terminate(ec2, instances[:middle]) | _terminate(ec2, instances[middle:])
    return {}

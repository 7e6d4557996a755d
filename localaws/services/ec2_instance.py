"""One instance of EC2, and how it looks in an answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localaws.model import ACCOUNT, moment
from localaws.services.ec2_request import is_spot, target

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
NEVER = float("inf")


@dataclass(eq=False)
class Machine:
    """An instance. Its state is a function of time, so that a read may show the state of a moment ago."""

    id: str
    region: str
    zone: str
    request: dict[str, Any]
    """RunInstances as EC2 understood it, including the template."""
    index: int
    """ami-launch-index: 0..N-1, unique within one launch."""
    address: str
    launched_at: float
    visible_at: float
    running_at: float
    reservation: str
    tags: dict[str, str] = field(default_factory=dict)
    known_to_iam_at: float = 0.0
    """Until then, rights that depend on its tags are refused."""
    parts: tuple[str, ...] = ()
    """Ids of the volumes and interfaces launched with it."""
    protected: bool = False
    stuck: bool = False
    """Accepts a termination, and runs on."""
    stopping_at: float = NEVER
    stopped_at: float = NEVER
    ending_at: float = NEVER
    terminated_at: float = NEVER
    console: str = ""
    """Its console output so far."""
    kept: str = ""
    """The console output that EC2 kept: some time after a boot, and some time after an end."""
    why: tuple[str, str] = ("", "")
    """Code and message of the last change of state."""
    in_metadata: dict[str, float] = field(default_factory=dict)
    """When instance metadata shows a tag, by its key."""
    spot_action: dict[str, str] | None = None
    """The body of spot/instance-action."""
    rebalance: dict[str, str] | None = None
    """The body of events/recommendations/rebalance."""
    booted_at: float | None = None
    """When the first line of user data ran."""
    lost: bool = False
    """It ended without a shutdown by its operating system."""

    @property
    def arn(self) -> str:
        return f"arn:aws:ec2:{self.region}:{ACCOUNT}:instance/{self.id}"

    @property
    def marks(self) -> dict[str, str]:
        """Its tags and its rank, by which faults choose instances."""
        return self.tags | {"rank": str(self.index)}

    @property
    def is_spot(self) -> bool:
        return is_spot(self.request)

    @property
    def profile(self) -> str:
        """ARN of its instance profile, empty for none."""
        return str((self.request.get("IamInstanceProfile") or {}).get("Arn", ""))

    @property
    def user_data(self) -> bytes:
        return base64.b64decode(self.request.get("UserData") or "")

    @property
    def options(self) -> Mapping[str, str]:
        """Its MetadataOptions."""
        return self.request.get("MetadataOptions") or {}

    @property
    def group(self) -> str:
        """Name of its placement group, empty for none."""
        return str((self.request.get("Placement") or {}).get("GroupName", ""))

    @property
    def hostname(self) -> str:
        domain = "ec2.internal" if self.region == "us-east-1" else f"{self.region}.compute.internal"
        return f"ip-{self.address.replace('.', '-')}.{domain}"

    @property
    def mac(self) -> str:
        """MAC address, locally administered, derived from its address."""
        return "0a:00:" + ":".join(f"{int(part):02x}" for part in self.address.split("."))

    def tags_in_metadata(self, now: float) -> dict[str, str]:
        """Returns the tags that instance metadata shows by now; tags reach it late."""
        return {key: value for key, value in sorted(self.tags.items()) if self.in_metadata.get(key, NEVER) <= now}

    def state(self, now: float) -> str:
        if now >= self.terminated_at:
            return "terminated"
        if now >= self.ending_at:
            return "shutting-down"
        if now >= self.stopped_at:
            return "stopped"
        if now >= self.stopping_at:
            return "stopping"
        return "running" if now >= self.running_at else "pending"

    def runs(self, now: float) -> bool:
        """Whether it still runs, and costs."""
        return self.state(now) in {"pending", "running"}

    def shown(self, now: float) -> dict[str, Any]:
        """Returns one entry of DescribeInstances. A terminated instance has lost its network: no address, no subnet."""
        state = self.state(now)
        entry: dict[str, Any] = {
            "InstanceId": self.id,
            "ImageId": self.request["ImageId"],
            "InstanceType": self.request["InstanceType"],
            "State": {"Code": CODES[state], "Name": state},
            "AmiLaunchIndex": self.index,
            "LaunchTime": moment(self.launched_at),
            "Placement": {"AvailabilityZone": self.zone, "GroupName": self.group},
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
            "ClientToken": self.request.get("ClientToken", ""),
        }
        if self.is_spot:
            request = next((one for one in self.parts if one.startswith("sir-")), "")
            entry |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": request}
        if reserved := target(self.request):
            market = (self.request.get("InstanceMarketOptions") or {}).get("MarketType")
            entry |= {"CapacityReservationId": reserved} | ({"InstanceLifecycle": market} if market else {})
        if self.profile:
            entry["IamInstanceProfile"] = {"Arn": self.profile, "Id": "AIPA0123456789ABCDEF0"}
        if self.options:
            entry["MetadataOptions"] = self.options
        if state != "terminated":
            first = self.request["NetworkInterfaces"][0]
            groups = [{"GroupId": one} for one in first.get("Groups") or []]
            entry |= {"PrivateIpAddress": self.address, "SubnetId": first["SubnetId"], "SecurityGroups": groups}
        if self.why[0] and state not in {"pending", "running"}:
            at = moment(self.ending_at if self.ending_at != NEVER else self.stopping_at)
            entry["StateReason"] = {"Code": self.why[0], "Message": self.why[1]}
            entry["StateTransitionReason"] = f"{self.why[1]} ({at:%Y-%m-%d %H:%M:%S} GMT)"
        return entry

"""One instance of the fake EC2, and how it looks in an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
FORGOTTEN_AFTER_S = 3600.0
"""A terminated instance stays in DescribeInstances for about an hour."""
NEVER = float("inf")


@dataclass
class Machine:
    """An instance; its state is a function of time, so that nobody has to move it along."""

    id: str
    zone: str
    request: dict[str, Any]
    """RunInstances as EC2 understood it, template included."""
    index: int
    """ami-launch-index: 0..N-1, unique within one launch."""
    address: str
    launched_at: float
    visible_at: float
    running_at: float
    reservation: str
    tags: dict[str, str] = field(default_factory=dict)
    protected: bool = False
    stuck: bool = False
    """Accepts to terminate, and runs on."""
    stopped_at: float = NEVER
    ending_at: float = NEVER
    terminated_at: float = NEVER
    console: str = ""
    """What it wrote there until now."""
    kept: str = ""
    """What EC2 kept of that: some time after a boot, and some time after an end."""
    why: tuple[str, str] = ("", "")
    """Code and message of the last change of state."""

    def state(self, now: float) -> str:
        if now >= self.terminated_at:
            return "terminated"
        if now >= self.ending_at:
            return "shutting-down"
        if now >= self.stopped_at:
            return "stopped"
        return "running" if now >= self.running_at else "pending"

    def runs(self, now: float) -> bool:
        """Whether it still works, and costs."""
        return self.state(now) in {"pending", "running"}

    def seen(self, now: float) -> bool:
        """Whether describe calls know it: a new instance can be invisible for about a second, an old one is forgotten."""
        return self.visible_at <= now < self.terminated_at + FORGOTTEN_AFTER_S

    def end(self, now: float, shutting_s: float, code: str, message: str) -> bool:
        """Begins to end; False when it had begun before. Large instances take minutes from shutting-down to terminated."""
        if self.ending_at <= now:
            return False
        self.ending_at, self.terminated_at, self.why = now, now + shutting_s, (code, message)
        return True

    def shown(self, now: float) -> dict[str, Any]:
        """One entry of DescribeInstances. A terminated instance has lost its network: no address, no subnet."""
        state = self.state(now)
        placement = self.request.get("Placement", {})
        entry: dict[str, Any] = {
            "InstanceId": self.id,
            "ImageId": self.request["ImageId"],
            "InstanceType": self.request["InstanceType"],
            "State": {"Code": CODES[state], "Name": state},
            "AmiLaunchIndex": self.index,
            "LaunchTime": datetime.fromtimestamp(self.launched_at, timezone.utc),
            "Placement": {"AvailabilityZone": self.zone, "GroupName": placement.get("GroupName", "")},
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
            "ClientToken": self.request.get("ClientToken", ""),
            "IamInstanceProfile": self.request.get("IamInstanceProfile")
            and {"Arn": self.request["IamInstanceProfile"]["Arn"], "Id": "AIPAFAKE"},
        }
        if state != "terminated":
            interface = self.request["NetworkInterfaces"][0]
            entry |= {"PrivateIpAddress": self.address, "SubnetId": interface["SubnetId"]}
        if self.why[0] and state not in {"pending", "running"}:
            entry["StateReason"] = {"Code": self.why[0], "Message": self.why[1]}
        return entry

"""Capacity that a person has reserved in EC2, and how EC2 refuses a launch that finds none."""

from __future__ import annotations

from dataclasses import dataclass, field

from localaws.model import ACCOUNT, Refused

BLOCK = "capacity-block"
MARKETS = frozenset({BLOCK, "interruptible-capacity-reservation"})
"""Market types of a launch that name a reservation."""


@dataclass(eq=False, kw_only=True)
class CapacityReservation:
    """One reservation. Its state is a function of time; the public fields are knobs."""

    id: str
    instance_type: str
    zone: str
    total: int
    begins_at: float
    ends_at: float | None = None
    """UTC epoch seconds; None for one without an end."""
    kind: str = "default"
    """`default` or `capacity-block`."""
    interruptible: bool = False
    owner: str = ACCOUNT
    platform: str = "Linux/UNIX"
    tenancy: str = "default"
    cancelled: bool = False
    tags: dict[str, str] = field(default_factory=dict)

    def state(self, now: float) -> str:
        if self.cancelled:
            return "cancelled"
        if now < self.begins_at:
            return "scheduled"
        return "expired" if self.ends_at is not None and now >= self.ends_at else "active"

    @property
    def market(self) -> str:
        """The market type that a launch has to name; empty for none."""
        return BLOCK if self.kind == BLOCK else "interruptible-capacity-reservation" if self.interruptible else ""


def full(identity: str) -> Refused:
    return Refused(
        "ReservationCapacityExceeded",
        f"The requested reservation does not have sufficient compatible and available capacity for this request. ({identity})",
    )


def not_launched(how: str, kind: str, zone: str, *, spot: bool) -> Refused:
    """Returns the refusal of a fault: `quota`, `iops` (of the region), `profile` (an instance profile that EC2 does not know yet) and
    `throttled`, and otherwise no capacity."""
    if how == "throttled":
        return Refused("RequestLimitExceeded", "Request limit exceeded.", 503)
    if how == "iops":
        return Refused("MaxIOPSLimitExceeded", "You have reached the limit of IOPS for your volumes in this region.")
    if how == "profile":
        return Refused(
            "InvalidParameterValue",
            "Value (node) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile",
        )
    if how == "quota" and spot:
        return Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    if how == "quota":
        return Refused("VcpuLimitExceeded", "You have requested more vCPU capacity than your limit of 0.")
    return no_capacity(kind, zone)


def no_capacity(kind: str, zone: str) -> Refused:
    """Returns the refusal, an HTTP 500, which botocore by default retries five times."""
    return Refused(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). "
        "Our system will be working on provisioning additional capacity.",
        500,
    )

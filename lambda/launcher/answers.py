"""What an answer of RunInstances means for the ladder; EC2's error codes and nothing else."""

from __future__ import annotations

from contract.intents import Outcome

CAPACITY = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientCapacityOnHost",
        "InsufficientReservedInstanceCapacity",
        "ReservationCapacityExceeded",
        "UnfulfillableCapacity",
        "SpotMaxPriceTooLow",
        "InsufficientFreeAddressesInSubnet",
        "InsufficientVolumeCapacity",
        "Unsupported",
    }
)
"""Another rung may do. `Unsupported`: this zone does not have the type."""
QUOTA = frozenset({"VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded", "InstanceLimitExceeded"})
CLOSED = frozenset({"PendingVerification", "OptInRequired"})
UNKNOWN = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "EC2ThrottledException",
        "TooManyRequestsException",
        "BandwidthLimitExceeded",
        "SlowDown",
        "Unavailable",
        "ServiceUnavailable",
        "InternalError",
        "InternalFailure",
        "RequestTimeout",
        "500",
        "502",
        "503",
        "504",
    }
)


def meaning(code: str) -> Outcome:
    """Anything that is not known to be worth another try is a mistake, and ends the launch at once."""
    if code in CAPACITY:
        return Outcome.NO_CAPACITY
    if code in QUOTA:
        return Outcome.QUOTA
    if code in CLOSED:
        return Outcome.CLOSED
    if code in UNKNOWN:
        return Outcome.UNKNOWN
    if code == "IdempotentInstanceTerminated":
        return Outcome.RENEW
    return Outcome.MISTAKE

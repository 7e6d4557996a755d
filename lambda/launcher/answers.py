"""Maps an error code of RunInstances to what it means for the ladder."""

from __future__ import annotations

from contract.intents import LaunchOutcome

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
QUOTA = frozenset(
    {
        "VcpuLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VolumeLimitExceeded",
        "InstanceLimitExceeded",
        "NetworkInterfaceLimitExceeded",
    }
)
CLOSED = frozenset({"PendingVerification", "OptInRequired"})
ENDS_WALK = frozenset({"IdempotentParameterMismatch"})
"""Mistakes after which no other rung is asked: what was launched with the same token may run. Any other code may be about one type (a
policy of the organization that denies it, an image that it cannot boot, a combination that EC2 does not have)."""
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
        "ServerInternal",
        "RequestTimeout",
        "500",
        "502",
        "503",
        "504",
    }
)


def meaning(code: str, status: int = 0) -> LaunchOutcome:
    """Returns the outcome for an error code. An unknown one counts as a mistake, unless EC2 says by the HTTP status that the fault is its
    own: it may have launched all the same."""
    if code in CAPACITY:
        return LaunchOutcome.NO_CAPACITY
    if code in QUOTA:
        return LaunchOutcome.QUOTA
    if code in CLOSED:
        return LaunchOutcome.CLOSED
    if code == "IdempotentInstanceTerminated":
        return LaunchOutcome.RENEW
    if code in UNKNOWN or (status >= 500 and code not in ENDS_WALK):
        return LaunchOutcome.UNKNOWN
    return LaunchOutcome.MISTAKE

"""Refusals of a reservation."""

from __future__ import annotations

from tools.refusals.jobs.table import Row, Section

MAY_BE = (
    "id of a Capacity Reservation or Capacity Block, as in cr-0123456789abcdef0, or ARN of a resource group of them"
)
HOURS = {"max_hours": 24.0}
GROUP = "arn:aws:resource-groups:eu-central-1:123456789012:group/"
OURS = "cr-00000000000000001"
"""A reservation of four g5.xlarge in eu-central-1a, without an end, with our tag. The others differ from it in one thing."""
BLOCK = "cr-00000000000000002"
"""Ends 12.5 hours after the start: its nodes begin to end after 12."""
LATER = "cr-00000000000000003"
"""A block of two days that begins in ten hours."""
UNTAGGED, FOREIGN, CANCELLED = "cr-00000000000000004", "cr-00000000000000005", "cr-00000000000000006"
WINDOWS, DEDICATED, OTHER_TYPE = "cr-00000000000000007", "cr-00000000000000008", "cr-00000000000000009"
OTHER_ZONE, INTERRUPTIBLE, UNKNOWN = "cr-0000000000000000a", "cr-0000000000000000b", "cr-0000000000000000c"

RESERVATION = Section(
    "reservation",
    MAY_BE,
    rows=(
        ("a number", 5, "5 is not a string"),
        ("a name", "our-h100s", '"our-h100s" does not have the right form'),
        ("the id of an instance", "i-00000000000000001", '"i-00000000000000001" does not have the right form'),
        (
            "one that does not exist",
            UNKNOWN,
            f"{UNKNOWN} is not in eu-central-1, or holds no reservation; allowed: one of the account, in a region that the request names",
        ),
        (
            "a resource group that does not exist",
            f"{GROUP}nothing",
            f"{GROUP}nothing is not in eu-central-1, or holds no reservation"
            "; allowed: one of the account, in a region that the request names",
        ),
        Row(
            "beside spot",
            {"reservation": OURS, "market": "spot"},
            "reservation: the request has market spot too, and nodes of a reservation are never spot"
            "; allowed: a reservation without a market",
        ),
        Row(
            "beside spot, then on demand",
            {"reservation": OURS, "market": "spot-then-on-demand"},
            "reservation: the request has market spot-then-on-demand too, and nodes of a reservation are never spot"
            "; allowed: a reservation without a market",
        ),
        (
            "without our tag",
            UNTAGGED,
            f"{UNTAGGED} has no tag trainyard:deployment=yard"
            "; allowed: a reservation with this tag, which says that jobs may use it",
        ),
        ("of another account", FOREIGN, f"{FOREIGN} belongs to the account 999999999999; allowed: one of this account"),
        ("that was cancelled", CANCELLED, f"{CANCELLED} is cancelled; allowed: one that is active or will be"),
        ("for another system", WINDOWS, f"{WINDOWS} is for Windows; allowed: one for Linux/UNIX"),
        (
            "on machines of its own",
            DEDICATED,
            f"{DEDICATED} has the tenancy dedicated; allowed: one with the tenancy default",
        ),
        (
            "of another type",
            OTHER_TYPE,
            f"{OTHER_TYPE} is of g4dn.xlarge; allowed: one of a type of the request (g5.xlarge)",
        ),
        (
            "in a zone that the deployment is not in",
            OTHER_ZONE,
            f"{OTHER_ZONE} is in eu-central-1z; allowed: one in a zone of the deployment (eu-central-1a, eu-central-1b, eu-central-1c)",
        ),
        Row(
            "with fewer instances than nodes",
            {"reservation": OURS, "nodes": 5},
            f"reservation: {OURS} has 4 instances, and the job has 5 nodes; allowed: one with 5 at least",
        ),
        Row(
            "a block that is too short",
            {"reservation": BLOCK, **HOURS},
            f"reservation: {BLOCK} leaves 12 hours until 2027-01-15 20:00:00 UTC, when AWS begins to end its nodes, half an hour before "
            "the block ends; allowed: max_hours of 12 at most, or a block that ends later",
        ),
        Row(
            "a block that begins later than the job may wait",
            {"reservation": LATER, "max_wait_hours": 2.0},
            f"reservation: {LATER} begins at 2027-01-15 18:00:00 UTC; allowed: max_wait_hours of 10 at least, or one that has begun",
        ),
        Row(
            "in a region that the request does not name",
            {"reservation": OURS, "region": "eu-west-1"},
            f"reservation: {OURS} is not in eu-west-1, or holds no reservation"
            "; allowed: one of the account, in a region that the request names",
        ),
    ),
)

"""Keys and attributes of the table of state: one item for each fact or decision (docs/reference/state.md lists who reads and writes which).

The partition key begins with the kind of the item, because IAM limits a role to partition keys and to nothing finer. A node's own
items are under its `aws:userid`, so that a policy variable binds each node to them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PARTITION, SORT = "pk", "sk"
DOCUMENT = "doc"
"""JSON of the contract: text, or bytes that zlib compressed."""
VERSION = "version"
"""Number of the item's write, from 1; a conditional write names the one that it replaces."""
WRITTEN_AT = "at"
"""When the item was written, UTC epoch seconds. Functions use their own clock; nodes, whose clocks may be wrong, that of AWS's answers."""
URGENT = "urgent"
"""1 on a report that wakes the attendant; absent on every other."""
EXPIRES = "expires"
"""From this time on (UTC epoch seconds, whole) DynamoDB may delete the item, usually within days."""

JOBS, LAUNCHES, CLOSED, ORDERS, SESSIONS, UNHEALTHY = "job#", "launch#", "closed#", "order#", "session#", "unhealthy#"
CURVES = "curve#"
"""Beginnings of the partition keys that end with a job's id."""
WAITING, ADMISSION, REGIONS, MARKS, PASS, GROUPS = "waiting", "admission", "regions", "marks", "pass", "groups"
CAPACITY, TURN, EMPTY, UNTOLD = "capacity", "turn", "empty", "untold"
"""Whole partition keys."""
REPORT, ORDER, KEYS = "report", "order", "keys"
"""Sort keys of a node's own items."""

PLAIN = 1024
"""Bytes of a document that is stored as text; a longer one is compressed."""
MOST_READ = 16 * 1024**2
"""Bytes of a document, at most: a compressed one may claim to be of any length."""
MOST_REPORT = 409_600
"""Bytes of a node's report, at most, once it is unpacked: as many as an item may have."""
MOST_REPORTS = 3 * 1024**2
"""Bytes of all reports of an attempt together, at most. Agents keep to it; the code of a job writes what it likes, and short strings of
JSON take fifteen times their length in Python, where a look at 512 nodes must not keep the other jobs waiting."""
LEAST_REPORT = 4096
"""Bytes that a report may have however many nodes there are; a steady one has about 1,000."""
KEPT_S = 90 * 86400
"""How long the items of a job stay after its deadline: as long as Step Functions remembers an execution that has ended."""

LONGEST_S = 370 * 86400
"""How long items stay that an execution of unknown length needs; Step Functions ends every execution after a year."""


@dataclass(frozen=True, slots=True)
class ItemKey:
    """The primary key of an item."""

    partition: str
    sort: str


def job(job: str) -> ItemKey:
    """The admitted job, as the control plane reads it."""
    return ItemKey(f"{JOBS}{job}", "job")


def launches(job: str) -> str:
    """Partition of a job's launch intents; the last one is of the newest attempt."""
    return f"{LAUNCHES}{job}"


def of_attempt(attempt: int) -> str:
    """Beginning of the sort keys of an attempt."""
    return f"{attempt:04d}#"


def launch(job: str, attempt: int, walk: int) -> ItemKey:
    """The intent of one walk over the ladder."""
    return ItemKey(launches(job), f"{of_attempt(attempt)}{walk:04d}")


def closed(job: str, attempt: int) -> ItemKey:
    """Exists once Terminate has begun to end the attempt: nothing is launched for it any more."""
    return ItemKey(f"{CLOSED}{job}", f"{attempt:04d}")


def endings(job: str) -> str:
    """Partition of a job's closed attempts, and of their ends."""
    return f"{CLOSED}{job}"


def ended(job: str, attempt: int) -> ItemKey:
    """When the attempt's last instance had begun to end, as Terminate first found, and why the attempt ended where it did not end well:
    `{"at": ..., "error": ..., "cause": ...}`."""
    return ItemKey(endings(job), f"{of_attempt(attempt)}ended")


def order(job: str, attempt: int) -> ItemKey:
    """The attempt's order, created once; each node gets a copy of it (`node_order`)."""
    return ItemKey(f"{ORDERS}{job}", f"{attempt:04d}")


def stall_notice(job: str, attempt: int) -> ItemKey:
    """Says when people were last told that the training makes no progress: `{"told": true}`, false while a function tells them."""
    return ItemKey(f"{ORDERS}{job}", f"{of_attempt(attempt)}told")


def recovery_notice(job: str, attempt: int) -> ItemKey:
    """Says the same of a new attempt that trains."""
    return ItemKey(f"{ORDERS}{job}", f"{of_attempt(attempt)}recovered")


def end_notice(job: str) -> ItemKey:
    """Says the same of the end of the job's execution."""
    return ItemKey(f"{ORDERS}{job}", "over")


def untold(job: str) -> ItemKey:
    """Exists from a job's admission until people have been told of its end, where they are to be: `{"execution": ..., ...}`."""
    return ItemKey(UNTOLD, job)


def session(job: str, attempt: int) -> ItemKey:
    """Until when the credentials are valid that the nodes of the attempt have (`node_credentials`)."""
    return ItemKey(f"{SESSIONS}{job}", f"{attempt:04d}")


def unhealthy_of(job: str) -> str:
    """Partition of a job's unhealthy nodes."""
    return f"{UNHEALTHY}{job}"


def unhealthy(job: str, attempt: int, rank: int) -> ItemKey:
    """A node because of whose machine the attempt ended (`health.UnhealthyNode`)."""
    return ItemKey(unhealthy_of(job), f"{of_attempt(attempt)}{rank:04d}")


def curve(job: str) -> ItemKey:
    """The metric of the job over its steps, for its page (`curves.Curve`)."""
    return ItemKey(f"{CURVES}{job}", "curve")


def waiting_of(job: str) -> str:
    """Beginning of the sort keys of a job's waiting Train states."""
    return f"{job}#"


def waiting(job: str, attempt: int, digest: str) -> ItemKey:
    """The task token of a waiting Train state; `digest` is the token's own, so that a dead token's item can be deleted without
    touching the one that took its place."""
    return ItemKey(WAITING, f"{waiting_of(job)}{attempt:04d}#{digest[:16]}")


def awaited(job: str, attempt: int, digest: str) -> ItemKey:
    """The task token of a job that waits for capacity, and its next try; `digest` is the token's own, as above."""
    return ItemKey(CAPACITY, f"{waiting_of(job)}{attempt:04d}#{digest[:16]}")


LAUNCH_TURN = ItemKey(TURN, "launcher")
"""Which invocation of the launcher tries for the jobs that wait for capacity (`waits.Turn`)."""
ADMISSION_CLOSED = ItemKey(ADMISSION, "closed")
"""Exists while admission is closed, by a destroy or a person: `{"reason": "..."}`."""
LAST_PASS = ItemKey(PASS, "attendant")
"""Written by each pass of the attendant over all jobs, so that the next pass knows the time since the last one."""


AWAITING = 3
"""Invocations of the attendant at most that wait until an error is explained, over all jobs: an account may run ten functions at once."""


def awaiting(slot: int) -> ItemKey:
    """The job for which an invocation of the attendant waits until its error is explained: `{"job": "..."}`, for each of AWAITING slots."""
    return ItemKey(PASS, f"await#{slot}")


def region(region: str) -> ItemKey:
    """Exists once anything was launched in the region: from then on the reaper reads the region, whatever the settings say."""
    return ItemKey(REGIONS, region)


def empty(region: str, zone: str, instance_type: str, market: str) -> ItemKey:
    """The newest launch that found no capacity in the place (`empties.EmptyPlace`)."""
    return ItemKey(EMPTY, f"{region}#{zone}#{instance_type}#{market}")


def groups(region: str) -> ItemKey:
    """Which jobs have which security groups of the region (`groups.TakenGroups`)."""
    return ItemKey(GROUPS, region)


def marks(region: str) -> ItemKey:
    """What the reaper's last complete look at a region found suspicious; pieces of a long one follow it."""
    return ItemKey(MARKS, region)


def userid(role: str, instance: str) -> str:
    """`aws:userid` of an instance: the id of its role (`AROA...`) and its own."""
    return f"{role}:{instance}"


def node_report(role: str, instance: str) -> ItemKey:
    """A node's report about itself."""
    return ItemKey(userid(role, instance), REPORT)


def most_report(nodes: int) -> int:
    """Bytes of the report of each of so many nodes, at most, once it is unpacked."""
    return min(MOST_REPORT, max(LEAST_REPORT, MOST_REPORTS // nodes))


def node_order(role: str, instance: str) -> ItemKey:
    """The copy of its attempt's order that the node reads."""
    return ItemKey(userid(role, instance), ORDER)


def node_credentials(role: str, instance: str) -> ItemKey:
    """Holds credentials of a session for the node's job alone."""
    return ItemKey(userid(role, instance), KEYS)


def packed(document: bytes) -> dict[str, str | bytes]:
    """The value of DOCUMENT, as DynamoDB takes it."""
    return {"S": document.decode()} if len(document) <= PLAIN else {"B": zlib.compress(document)}


def unpacked(item: Mapping[str, Any], most: int = MOST_READ) -> bytes:
    """The item's document: cut off where it is longer than `most`, empty where there is none or zlib cannot read it."""
    value = item.get(DOCUMENT, {})
    if "S" in value:
        return str(value["S"]).encode()[:most]
    try:
        return zlib.decompressobj().decompress(value.get("B", b""), most)
    except zlib.error:
        return b""

"""S3 that answers late, or refuses a share of its calls: the faults `s3-slow` and `s3-failing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localaws.refusing import refused
from localaws.services import ec2

if TYPE_CHECKING:
    from localaws.conditions import Fault, Marks
    from localaws.recorder import Answer, Call
    from localaws.server import LocalAws

SLOW, FAILING = "s3-slow", "s3-failing"
ANSWERS = {
    "slow-down": ("SlowDown", "Please reduce your request rate.", 503),
    "internal-error": ("InternalError", "We encountered an internal error. Please try again.", 500),
    "denied": ("AccessDenied", "Access Denied", 403),
}
READS = ("Get", "Head", "List")
"""Beginnings of the names of calls that only read."""
MEGA = 1e6


def install(aws: LocalAws) -> None:
    """People, and AWS itself on behalf of a role, are never affected."""
    aws.recorder.interceptors.append(lambda call, _: _before(aws, call))
    aws.recorder.watchers.append(lambda call: _after(aws, call))


def _before(aws: LocalAws, call: Call) -> Answer | None:
    """Takes in the call's body, and refuses the call where it is to fail."""
    if call.service != "s3" or not call.throttled:
        return None
    for slow in _under(aws, SLOW, call):
        if rate := slow.text("rate"):
            aws.stopping.wait(call.size / (float(rate) * MEGA) / aws.conditions.speed)
    for failing in _under(aws, FAILING, call):
        if _chosen(failing, call) and aws.chance.random() < float(failing.text("share")):
            return refused(call, *ANSWERS[failing.text("as")])
    return None


def _after(aws: LocalAws, call: Call) -> None:
    """Holds the answer back."""
    if call.service != "s3" or not call.throttled:
        return
    for slow in _under(aws, SLOW, call):
        rate, body = slow.text("rate"), 0 if call.action.startswith("Head") else call.answered
        bytes_s = body / (float(rate) * MEGA) if rate else 0.0
        aws.stopping.wait((slow.seconds("each") + bytes_s) / aws.conditions.speed)


def _under(aws: LocalAws, name: str, call: Call) -> list[Fault]:
    """The faults of that name that last now and mean whoever calls."""
    lasting = aws.conditions.all_under(name)
    if not lasting:
        return []
    marks = _marks(call)
    who = "functions" if marks is None else "nodes"
    return [one for one in lasting if one.text("who") in (who, "all") and one.meets(marks or {})]


def _marks(call: Call) -> Marks | None:
    """What is known of the node that calls, by its own keys or by those of its job; None for a function."""
    if call.by.tags:
        return call.by.tags
    if not call.session.startswith("i-"):
        return None
    try:
        machine = ec2.machines().get(call.session)
    except LookupError:
        return {}
    return machine.marks if machine else {}


def _chosen(fault: Fault, call: Call) -> bool:
    """Whether the fault means a call of this kind, about this key."""
    reads = call.action.startswith(READS)
    key = str(call.parameters.get("Key", call.parameters.get("prefix", "")))
    return {"reads": reads, "writes": not reads}.get(fault.text("calls"), True) and fault.text("part") in key

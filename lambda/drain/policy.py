"""Decides whether a deployment is drained, has to be waited for, or cannot be drained without a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from aws.facts import Belonging, Instance
from aws.network_facts import PlacedInterface
from contract import tags
from contract.errors import StillRunning
from ending.policy import find_kept

STOP_REASON = ("Aborted", "The deployment is being destroyed.")
"""Error and cause of the executions that a destroy stops."""
IN_FLIGHT_S = 600.0
"""How long after its execution's end a launch may still be on its way: a launcher's function runs for at most five minutes."""
BY_HAND = 'docs/runbook.md, "Turn it off now", says how to end things by hand.'
OF_A_TASK = re.compile(r"arn:[^:]+:ecs:[^ ]*:attachment/")
"""How the description of a Fargate task's interface begins: it is the ARN of an attachment of ECS."""
MOST_DESCRIPTION = 120
LINES = 15
"""Lines of a list that are shown: CloudFormation takes 4 KB of an answer in all."""


class NotDrained(Exception):
    """Waiting does not help: a person has to do what the message says, and destroy again."""


def explain_closed(deployment: str) -> str:
    """Words why nothing is admitted, for the people whose requests are refused. The table keeps it: a destroy opens admission that is
    closed for this reason alone."""
    return f"deployment {deployment} is being destroyed, or a destroy of it failed"


def refuse_kept(instances: Iterable[Instance], deployment: str, profile: str) -> None:
    """Raises NotDrained where an instance may not be ended, because a destroy would delete its network: a person protects it, or it
    carries our tag and lacks our instance profile (an ARN), so that it may be a stranger's."""
    staying = find_kept(instances, profile)
    if not staying:
        return
    lines = [f"- {one.id} in {one.region}, job {one.job or 'unknown'}, is {one.state}: {_why(one)}" for one in staying]
    raise NotDrained(
        "\n".join(
            [
                f"Deployment {deployment} was not destroyed. These instances are kept:",
                *shorten(lines),
                f"Take the tag off, or end them by hand, then destroy again. Until then admission stays closed. {BY_HAND}",
            ]
        )
    )


def refuse_foreign(interfaces: Iterable[PlacedInterface], deployment: str) -> None:
    """Raises NotDrained where a foreign network interface lies in a network of the deployment, or uses one of its security groups:
    neither can be deleted then, and a destroy would stop half way. Ours are those with our tag, those of NAT gateways and endpoints
    with our tag, and the catalogue's; no description and no security group makes an interface ours."""
    lines = [
        f"- {one.id} in {one.region}, {one.subnet}: {_owner_of(one)}"
        for one in interfaces
        if not (one.tagged or _may_be_a_child(one))
    ]
    if lines:
        raise NotDrained(
            "\n".join(
                [
                    f"Deployment {deployment} was not destroyed. These network interfaces are not its own, and keep its networks and "
                    "security groups from being deleted:",
                    *shorten(lines),
                    "Remove what they belong to, then destroy again. Until then admission stays closed (docs/guides/remove.md).",
                ]
            )
        )


def list_tasks(interfaces: Iterable[PlacedInterface]) -> list[str]:
    """Returns a line for each interface of a Fargate task that is still there. The children of grids end with their grids, and AWS then
    removes theirs; one that stays is of another task."""
    return [
        f"- network interface {one.id} of a Fargate task is left in {one.region}, {one.subnet}: {_owner_of(one)}"
        for one in interfaces
        if not one.tagged and _may_be_a_child(one)
    ]


def _may_be_a_child(interface: PlacedInterface) -> bool:
    """Whether the interface may be that of a grid's child: it says of which task it is, and not whose task."""
    return interface.in_our_group and OF_A_TASK.match(interface.description) is not None


def _owner_of(interface: PlacedInterface) -> str:
    attached = f"attached to {interface.instance}" if interface.instance else "attached to no instance"
    return interface.description[:MOST_DESCRIPTION] or f"without a description, {attached}"


def _why(instance: Instance) -> str:
    if instance.protected:
        return f"it has the tag {tags.PROTECTED}"
    return f"it has the tag {tags.DEPLOYMENT}, and not the deployment's instance profile"


def refuse_protected_trainings(names: Sequence[str], region: str) -> None:
    """Raises NotDrained where a person protects a training: a destroy would delete what it writes to."""
    if names:
        lines = [f"- training {name} in {region}" for name in names]
        raise NotDrained(
            "\n".join(
                [
                    f"The deployment was not destroyed. These trainings have the tag {tags.PROTECTED}, so they are kept:",
                    *shorten(lines),
                    f"Take the tag off, or wait for their end, then destroy again. {BY_HAND}",
                ]
            )
        )


def list_standing(instances: Iterable[Instance], refused: Mapping[str, str]) -> list[str]:
    """Returns a line for each instance that is not terminated. One that is shutting down still holds its network interface."""
    return [
        f"- {one.id} in {one.region} is {one.state}" + (f": {refused[one.id]}" if one.id in refused else "")
        for one in instances
        if one.state != "terminated"
    ]


def list_open_requests(spot_requests: Iterable[Belonging], refused: Mapping[str, str]) -> list[str]:
    """Returns a line for each spot request that was open, the cancelled ones too: the next look proves that they are gone."""
    return [
        f"- spot request {one.id} in {one.region} was open, and "
        + (f"could not be cancelled: {refused[one.id]}" if one.id in refused else "is cancelled")
        for one in spot_requests
    ]


def explain_settling(*, now: float, since: float, settle_s: float) -> list[str]:
    """Returns a line until `settle_s` after admission was closed: Step Functions' list may lack an execution that began just before."""
    if now >= since + settle_s:
        return []
    return [f"- executions that began just before admission was closed may appear for {since + settle_s - now:.0f} s"]


def build_error(left: Sequence[str], *, now: float, since: float, patience_s: float) -> Exception:
    """Builds the error while something is left: StillRunning within the patience, NotDrained beyond it."""
    if now < since + patience_s:
        return StillRunning("\n".join(["the deployment is not drained yet:", *shorten(left)]))
    return NotDrained(
        "\n".join(
            [
                f"The deployment was not destroyed. These are left {(now - since) / 60:.0f} minutes after its executions were stopped:",
                *shorten(left),
                f"End them by hand, then destroy again. {BY_HAND}",
            ]
        )
    )


def shorten(lines: Sequence[str]) -> list[str]:
    """Returns the first lines, and how many more there are."""
    more = len(lines) - LINES
    return [*lines[:LINES], *([f"- and {more} more"] if more > 0 else [])]

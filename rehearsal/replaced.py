"""Says what a rehearsal replaces, under which conditions it ran, and what it left out: a file has all of it, the screen a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localaws.machines.separation import can_separate
from rehearsal.runs import shorten

FILE = "replaced.txt"
"""The file, in a run's folder, with everything that is not as in an account."""
REPLACED = (
    "What this rehearsal replaces: EC2, its capacity and placement groups (interfaces are checked as EC2 checks them, and no node "
    "has EFA; nodes are processes on loopback, in one network: each rehearsal has a `master_port` and addresses of its own, and security "
    "groups, which launches must name as on EC2, keep no node out; nodes have the computer's own name, so variables of the machines "
    "keep the shared memory of Open MPI apart and leave out its hierarchical collectives), the AMI and its "
    "drivers (a virtual environment with PyTorch), disks (a folder for each node, which is gone when it ends), "
    "systemd (stand-ins run the same units), Docker (the Dockerfile of the platform's own image is read, not "
    "run), IAM (a simulator decides for nodes; calls of functions are recorded, and tests put them to it), "
    "`cdk bootstrap` (its template is deployed without it), "
    "the pace and latency of AWS's network, DynamoDB's partitions and their throughput, "
    "the Price List (a few types' prices stand in), spot prices (made up), capacity and interruptions of "
    "spot (only when a fault says so), the delay "
    "of metrics. Rates of schedules, periods of alarms, time-outs of queues and the request's checkpoint_minutes (1.2 s at least) run at "
    "the rehearsal's speed, the training itself, max_hours and the minutes of `stall` do not, nor do time-outs of "
    "functions and builds, nor how long CloudFormation waits for a custom resource. pip's download cache is shared "
    "between nodes, and so are processors: each node computes with one thread "
    "(OMP_NUM_THREADS)."
)
SAME_PATH = "Every node sees its own disk at one path, as on EC2, and no other node's."
OWN_PATHS = (
    "This computer gives no process mounts of its own, so the work folder has another path on each node: a job that writes absolute paths "
    "into its checkpoints finds none of them after a restart, but would on EC2. A node also sees the disks of nodes that still run, "
    "which it would not on EC2."
)


def describe_replaced() -> str:
    """Returns what the rehearsal of a job replaces on this computer."""
    return f"{REPLACED} {SAME_PATH if can_separate() else OWN_PATHS}"


def not_deployed(left_out: Sequence[str]) -> str:
    """Returns a sentence for the printed result."""
    if not left_out:
        return "Every stack was deployed."
    return f"Not deployed, because this run needs none of it: {', '.join(left_out)}."


def describe_conditions(conditions: dict[str, Any]) -> str:
    (soonest, latest), (short, long) = conditions["event_delay_s"], conditions["boot_s"]
    early, late = conditions["stream_delay_s"]
    return (
        f"Conditions, in real seconds before the division by {conditions['speed']:g}: boot {short:g} to {long:g} s; "
        f"{conditions['events_lost']:.0%} of events lost, the others {soonest:g} to {latest:g} s late; "
        f"{conditions['throttled']:.0%} of calls throttled; {conditions['metadata_lost']:.0%} of requests to a node's metadata "
        f"unanswered; pages of {conditions['page_size']}; DynamoDB: reads up to {conditions['table_lag_s']:g} s old unless consistent, "
        f"{conditions['table_short_pages']:.0%} of pages short, {conditions['table_unprocessed']:.0%} of a batch's keys left out, "
        f"{conditions['table_conflicts']:.0%} of writes met a transaction, records of its stream {early:g} to {late:g} s late and "
        f"{conditions['stream_doubled']:.0%} twice; functions timed out at the processor share of their memory; "
        f"faults: {', '.join(conditions['faults']) or 'none'}."
    )


def write_replaced(out: Path, parts: Sequence[str]) -> str:
    """Writes the file, and returns the line that the screen has of it."""
    (out / FILE).write_text("\n\n".join(parts) + "\n")
    return f"A rehearsal replaces EC2, IAM, prices, the network and more; all of it, and the conditions: {shorten(out / FILE)}"

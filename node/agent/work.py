"""Does a node's work, from learning its identity to its last report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from agent.attempt import WORK, Attempt
from agent.aws import Aws
from agent.credentials import JobCredentials
from agent.disk.place import settle
from agent.failures import MachineTrouble, classify_problem
from agent.identity import NodeIdentity, Patience, identify
from agent.machine import power_off_at
from agent.metadata import Metadata
from agent.reports import Reporter
from agent.store import Missing, Store
from agent.table import NodeItems
from contract.codec import Garbled, decode
from contract.items import KEPT_S
from contract.jobs import Job
from contract.keys import JobPrefix
from contract.reports import Exit, NodeReport, Phase
from contract.roles import name_place
from contract.sessions import SessionCredentials
from contract.shapes import seen_by
from contract.timing import Timing

UNKNOWN_NODES = 1000
"""Nodes, for the length of a report, of a job that the node cannot read."""


@dataclass(frozen=True)
class World:
    """Everything outside of the agent; a test can replace all of it."""

    root: Path
    """`/` on a real machine."""
    home_region: str
    home_bucket: str
    table: str
    """Name of the table of state, in the home region."""
    role: str
    """Id of the node's role (`AROA...`): the first half of its `aws:userid`."""
    booted: float
    metadata: Metadata
    aws: Aws
    variables: Mapping[str, str]
    now: Callable[[], float]
    sleep: Callable[[float], None]


def say(text: str) -> None:
    """Prints to the machine's console, which EC2 keeps."""
    print(f"trainyard: {text}", file=sys.stderr, flush=True)


def work(world: World) -> Exit:
    """Runs the node's share of one attempt. Once the node knows its job, every failure is reported."""
    place = settle(world.root, WORK)
    say(place.reason)
    patience = Patience(most_s=Timing().boot_allowance_s, now=world.now, sleep=world.sleep)
    node = identify(world.metadata, patience)
    say(f"rank {node.rank} of attempt {node.attempt} of job {node.job}, {node.instance} in {node.region}")
    patience.wait_for("the credentials of its role", lambda: world.aws.has_credentials() or None)
    items = world.aws.items(world.home_region, world.table, world.role, node.instance)
    first = NodeReport(
        job=node.job,
        attempt=node.attempt,
        rank=node.rank,
        instance=node.instance,
        phase=Phase.RESTORING,
        sent_at=world.now(),
        timeline={"booted": round(world.booted, 3)},
    )

    def now() -> float:
        return items.now(otherwise=world.now())

    try:
        credentials = wait_for_credentials(world, items, node, now)
        world.aws.use(JobCredentials(credentials, items.renewed_credentials, now=now))
        node = replace(node, addresses=credentials.addresses)
        home = world.aws.store(world.home_region, world.home_bucket)
        job = patience.wait_for("the description of its job", lambda: read_job(home, node))
        # Later by the hours in which it waited for capacity, or earlier because its reservation ends.
        job = seen_by(job.due(node.deadline), node.rank)
        node = replace(node, place=name_place(job.roles, node.rank))
        world.aws.gbps = read_gbps(job, world)
        attempt = Attempt(
            job, node, first,
            root=world.root, place=place, home=home, items=items, aws=world.aws, metadata=world.metadata,
            variables=world.variables, now=world.now, aws_now=now, sleep=world.sleep, say=say,
        )  # fmt: skip
    except Exception as problem:
        error, reason = classify_problem(problem)
        ending = Exit(code=1, error=error, reason=f"{node.name}: {reason}")
        say(ending.reason)
        reporter = Reporter(
            items, first, nodes=UNKNOWN_NODES, every_s=1.0, expires=world.now() + KEPT_S,
            progress=lambda: None, note=say, now=world.now,
        )  # fmt: skip
        reporter.end(ending, tries=10, sleep=world.sleep)
        return ending
    return attempt.run()


def wait_for_credentials(
    world: World, items: NodeItems, node: NodeIdentity, now: Callable[[], float]
) -> SessionCredentials:
    """Waits for credentials as long as the job may last: a new attempt would wait for them as well. Raises Unknown."""

    def read() -> SessionCredentials | None:
        try:
            return valid(items.read_credentials(), now())
        except (BotoCoreError, ClientError) as problem:
            raise OSError(f"the table does not answer: {problem}") from problem

    with suppress(OSError):
        if found := read():
            return found
    say("waits for the credentials of its job")
    power_off_at(world.root, node.deadline + Timing().power_off_after_deadline_s, say)
    left_s = max(0.0, node.deadline - now())
    return Patience(most_s=left_s, now=world.now, sleep=world.sleep).wait_for("the credentials of its job", read)


def valid(credentials: SessionCredentials | None, now: float) -> SessionCredentials | None:
    """The credentials, unless they expired before the node came: the attendant may have been away."""
    return credentials if credentials is not None and credentials.expires > now else None


def read_job(home: Store, node: NodeIdentity) -> Job:
    """Raises MachineTrouble when the job is not there, not readable or has no place for this node's region or rank."""
    try:
        job = decode(Job, home.get(JobPrefix(node.job).description))
    except (Missing, Garbled) as problem:
        raise MachineTrouble(f"the job cannot be read: {problem}") from problem
    if node.region not in job.places:
        raise MachineTrouble(f"the job has no place in {node.region}, only in {', '.join(sorted(job.places))}")
    if not 0 <= node.rank < job.nodes:
        raise MachineTrouble(f"the job has no rank {node.rank}; allowed: 0 to {job.nodes - 1}")
    return job


def read_gbps(job: Job, world: World) -> float:
    """Returns how many Gbit/s the machine's way to S3 always gives, as EC2 says of its type; 0 where that is not known."""
    if not job.uplinks:
        return 0.0
    try:
        return job.uplinks.get(world.metadata.patient("instance-type", world.sleep), 0.0)
    except OSError:
        return 0.0

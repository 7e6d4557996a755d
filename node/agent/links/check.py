"""The deep health check of a node: an all-reduce with its peers just before the training, and what follows from it."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.failures import CannotStart
from agent.identity import NodeIdentity
from agent.links import judging
from agent.links.facts import Arrived, Measured
from agent.links.judging import Expected, LinkFinding, Pair
from agent.links.measuring import Group, measure
from agent.links.meeting import Apart, MeetingTable, Seat
from agent.metadata import Metadata
from contract import training
from contract.codec import Garbled, decode
from contract.jobs import Job

PLACE = "links"
"""The folder, in the work folder, where the processes of an all-reduce work. It stays empty."""
AWAY = 1500
"""From the port of a training to that of the agents' table, and from there to that of an all-reduce's store: no training's own ports,
which come right after its first, and all below those that Linux gives to outgoing connections."""
MOST_PORT = 65535


@dataclass(frozen=True)
class Node:
    """One node, as its check needs it."""

    job: Job
    attempt: int
    rank: int
    me: Arrived
    master: str
    """Rank 0's address."""
    python: Path
    environment: Mapping[str, str]
    folder: Path
    """Where the processes work: an empty one."""


def check_network(
    job: Job,
    node: NodeIdentity,
    metadata: Metadata,
    python: Path,
    environment: Mapping[str, str],
    work: Path,
    *,
    pause: Callable[[float], None],
    note: Callable[[str], None],
) -> str:
    """Measures the network with the other nodes of the job. Returns what is wrong with this machine, empty where nothing is known to be.
    `environment` is that of the training. Raises what `pause` raises, and CannotStart."""
    address, kind = (_read_metadata(metadata, one, pause) for one in ("local-ipv4", "instance-type"))
    folder = work / PLACE
    folder.mkdir(parents=True, exist_ok=True)
    master = environment[training.MASTER_ADDR]
    me = Arrived(address=address or master, instance=node.instance, instance_type=kind)
    one = Node(job, node.attempt, node.rank, me, master, python, environment, folder)
    return DeepCheck(one, pause=pause, note=note).run()


def _read_metadata(metadata: Metadata, path: str, pause: Callable[[float], None]) -> str:
    """Reads the value at the path; empty where the metadata service does not answer."""
    with suppress(OSError):
        return metadata.patient(path, pause)
    return ""


class DeepCheck:
    """Measures with the peers. `run` says what is wrong with this machine, and nothing keeps it longer than `gate_allowance_s`."""

    def __init__(self, node: Node, *, pause: Callable[[float], None], note: Callable[[str], None]) -> None:
        """`pause` waits, and may raise what ends the check, such as an order."""
        self._node, self._pause = node, pause
        self._note = lambda text: note(f"health: {text}")
        timing = node.job.timing
        self._most_s = timing.links_patience_s
        self._late_s = self._most_s * 1.2
        """Of a round: an all-reduce ends in time by itself, and the others wait a little longer for its node."""
        self._wait_s = max(0.0, timing.gate_allowance_s - 6 * self._most_s)

    def run(self) -> str:
        """Empty where nothing is wrong with this machine, as far as is known."""
        began, node = time.monotonic(), self._node
        try:
            found = self._alone() if node.job.nodes == 1 else self._together()
        except (Apart, OSError, Garbled) as problem:
            found = LinkFinding(note=f"the network was not measured: {problem}")
        self._note(f"{found.note} ({time.monotonic() - began:.1f} s)")
        if own := found.wrong.get(node.rank):
            return own
        for rank, why in sorted(found.wrong.items()):
            self._note(f"rank {rank} has an unhealthy machine: {why}")
        if found.wrong:
            self._pause(node.job.timing.silence_s)  # the attendant ends the attempt meanwhile
        return ""

    def _alone(self) -> LinkFinding:
        node = self._node
        if node.job.gpus.get(node.me.instance_type, 0) < 2:
            return LinkFinding(note="there is no network to measure: it is the only node, without several GPUs")
        return judging.judged_alone(self._measure((0,), node.me.address))

    def _together(self) -> LinkFinding:
        node = self._node
        first, _ = ports(node.job.master_port)
        name = f"{node.job.id}/{node.attempt}"
        table = self._table(first, name) if node.rank == 0 else None
        seat = Seat(node.master, first, name=name, rank=node.rank, nodes=node.job.nodes, pause=self._pause)
        try:
            return self._judged(seat)
        finally:
            seat.close()
            if table is not None:
                table.close()

    def _table(self, port: int, name: str) -> MeetingTable:
        """Its peers would wait for hours for one that is not there. What has the port is the image's, or the request's."""
        job = self._node.job
        try:
            return MeetingTable(self._node.master, port, name=name, nodes=job.nodes, late_s=self._late_s)
        except OSError as problem:
            raise CannotStart(
                f"rank 0 cannot listen on port {port}, which the check of the network needs (health: quick needs none): {problem}"
            ) from None

    def _judged(self, seat: Seat) -> LinkFinding:
        node = self._node
        said = seat.exchange(dataclasses.asdict(node.me), self._wait_s)
        came = [decode(Arrived, json.dumps(one)) for one in said]
        everyone = tuple(range(node.job.nodes))
        gbps = max(node.job.network.get(one.instance_type, 0.0) for one in came)
        known = Expected(gbps, node.job.network_share)
        found = judging.judged(self._round(seat, came, everyone), known, attempt=node.attempt)
        if not found.unsure:
            return _with_instances(found, came)
        self._note(f"{found.note}: measures its links one by one")
        links: dict[Pair, list[Measured | None]] = {}
        for pairs in judging.rounds(node.job.nodes):
            own = next((pair for pair in pairs if node.rank in pair), None)
            heard = self._round(seat, came, own)
            links.update({pair: [heard[rank] for rank in pair] for pair in pairs})
        return _with_instances(judging.judged_links(links, known), came)

    def _round(self, seat: Seat, came: Sequence[Arrived], ranks: tuple[int, ...] | None) -> list[Measured | None]:
        """What each node has measured in a round; this one within the group of `ranks`, or nothing."""
        own = self._measure(ranks, came[ranks[0]].address) if ranks else None
        heard = seat.exchange({} if own is None else dataclasses.asdict(own), self._late_s * 1.2)
        return [_measured(one) for one in heard]

    def _measure(self, ranks: tuple[int, ...], address: str) -> Measured:
        node = self._node
        group = Group(ranks, address, ports(node.job.master_port)[1])
        return measure(
            node.python, node.environment, node.folder, group, node.rank, most_s=self._most_s, pause=self._pause
        )


def ports(master: int) -> tuple[int, int]:
    """Those of the table and of the store, for a training whose first port is `master`."""
    step = AWAY if master + 2 * AWAY <= MOST_PORT else -AWAY
    return master + step, master + 2 * step


def _measured(said: Mapping[str, Any] | None) -> Measured | None:
    """None for a node that said nothing, and for what cannot be read."""
    with suppress(Garbled):
        return decode(Measured, json.dumps(said))
    return None


def _with_instances(found: LinkFinding, came: Sequence[Arrived]) -> LinkFinding:
    """The finding, with the instances of all that are at fault in the words about each: a report may come from one of them alone."""
    if len(found.wrong) < 2:
        return found
    those = ", ".join(f"rank {rank}: {came[rank].instance}" for rank in sorted(found.wrong))
    return dataclasses.replace(found, wrong={rank: f"{why} ({those})" for rank, why in found.wrong.items()})

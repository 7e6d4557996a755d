"""The nodes of several jobs: what they do by themselves, minute after minute, and what befalls them."""

from __future__ import annotations

import json
import math
from typing import Any

from contract import items, keys, tags
from contract.codec import encode
from contract.commits import CheckpointSet, Commit, CommittedFile
from contract.orders import Order, OrderKind
from contract.reports import Exit, Phase
from contract.timing import Timing
from tests.builders import NODE_ROLE, NOW
from tests.fakes.state import stored
from tests.fakes.threads import SharedClock
from tests.fakes.yard import PLACES
from tests.properties.jobs_oracle import ON_DEMAND, Fate, Run
from tests.properties.jobs_watched import Watched
from tests.properties.world import BEAT_S, Node, send

BUCKET_IN = {place.region: place.bucket for place in PLACES}


class JobNodes:
    """Of all jobs; `owners` says whose an instance is."""

    aws: Watched
    clock: SharedClock
    timing: Timing
    runs: list[Run]
    owners: dict[str, Run]
    boot_s: float

    def living(self, run: Run) -> list[Node]:
        """Nodes of the execution that run and have not told their end."""
        every = [node for fate in run.fates.values() for node in fate.nodes.values()]
        return [node for node in every if node.exit is None and node.machine.runs(self.clock.now)]

    def break_down(self, node: Node) -> None:
        """Its host fails."""
        self.owners[node.machine.id].fate(node.attempt).lost = True
        self._ec2_of(node).end(node.machine, "Server.InternalError", "host failed")

    def take_back(self, node: Node) -> None:
        """AWS wants its spot capacity, and no notice came."""
        self.owners[node.machine.id].fate(node.attempt).taken = True
        self._ec2_of(node).end(node.machine, "Server.SpotInstanceTermination", "Spot instance termination")

    def move_price(self, zone: str, kind: str, share: float) -> None:
        """The spot price there is this share of the on-demand price, which is also the most that anybody bids: beyond it AWS takes the
        nodes back, and launches none."""
        ec2 = self.aws.ec2[zone[:-1]]
        ec2.spot_prices[kind, zone] = share * ON_DEMAND[kind]
        if share <= 1:
            ec2.spot_capacity.pop((kind, zone), None)
            return
        ec2.spot_capacity[kind, zone] = 0
        for node in [node for run in self.runs for node in self.living(run)]:
            machine = node.machine
            if machine.is_spot and (machine.zone, machine.request["InstanceType"]) == (zone, kind):
                self.take_back(node)

    def silence(self, node: Node) -> None:
        """Nobody hears of it again, and EC2 calls it running."""
        self.owners[node.machine.id].fate(node.attempt).lost = True
        node.silent = True

    def stand_still(self, run: Run) -> None:
        """The trainers of its attempt go on no more, and their agents know nothing of it."""
        fate = run.fate(run.execution.attempt)
        fate.stands_since = min(fate.stands_since, self.clock.now)

    def go_on(self, run: Run) -> None:
        fate = run.fate(run.execution.attempt)
        fate.stood_s = max(fate.stood_s, fate.stands_s(self.clock.now, self.timing.warm_up_s))
        fate.stands_since = math.inf

    def leave(self, node: Node, exit_: Exit, torn: str = "") -> None:
        """The node's work ends: its artifacts are committed, whole or `torn`, and its last report says so. A trainer that stands still
        ends only by an order."""
        if node.exit is not None or node.silent or not node.machine.runs(self.clock.now):
            return
        fate = self.owners[node.machine.id].fate(node.attempt)
        if fate.stands_since < math.inf and not exit_.ordered:
            return
        node.exit, node.phase = exit_, Phase.ENDED
        decides, serves = self.owners[node.machine.id].decides(node), self.owners[node.machine.id].serves(node)
        if decides or serves:
            fate.failed |= (serves or exit_.code != 0) and not exit_.ordered
            fate.codes |= {exit_.code} if exit_.code and not exit_.ordered else set()
        if decides:
            fate.first_told_at = min(fate.first_told_at, self.clock.now)
        fate.torn |= {node.machine.id} if torn else set()
        send(self.aws, node, artifacts=self._commit(node, fate, torn))

    def close_set(self, node: Node, step: int) -> None:
        """The last rank of the node's attempt answers a set: it is a checkpoint. No more stay than three."""
        fate = self.owners[node.machine.id].fate(node.attempt)
        if node.silent or len(fate.closed) == 3:
            return
        fate.closed.append(step)
        number = len(fate.closed)
        closed = CheckpointSet(
            job=node.job, attempt=node.attempt, number=number, step=step, closed_at=self.clock.now, parts=()
        )
        key = keys.BytesPrefix(node.job).closed(node.attempt, number)
        self.aws.s3.write(BUCKET_IN[self._ec2_of(node).region], key, encode(closed))

    def _commit(self, node: Node, fate: Fate, torn: str) -> str:
        bucket, prefix, rank = BUCKET_IN[self._ec2_of(node).region], keys.BytesPrefix(node.job), node.rank
        body = f"model of {node.job}, attempt {node.attempt}, rank {rank}".encode()
        key = prefix.artifact(rank, "model")
        if torn == "missing":  # nor is there one of an attempt before, which has the same size
            self.aws.s3.buckets[bucket].objects.pop(key, None)
        else:
            self.aws.s3.write(bucket, key, body[:5] if torn == "short" else body)
        file = CommittedFile(path="model", size=len(body), sha256="ab", key=key)
        commit = Commit(
            job=node.job, attempt=node.attempt, rank=rank, step=3, created_at=NOW, final=True, files=(file,)
        )
        at = prefix.commit(keys.CommitKind.ARTIFACTS, node.attempt, 3, rank)
        if torn != "uncommitted":
            self.aws.s3.write(bucket, at, encode(commit))
        fate.files[rank] = (rank, "model", len(body), f"s3://{bucket}/{key}")
        return at

    def _ec2_of(self, node: Node) -> Any:
        return next(ec2 for ec2 in self.aws.ec2.values() if node.machine.id in ec2.machines)

    def falls_ill(self, node: Node) -> None:
        """Its GPU fails, its command dies of that, and its report says so."""
        self.owners[node.machine.id].fate(node.attempt).unfit = True
        node.exit, node.phase = Exit(code=134), Phase.ENDED
        send(self.aws, node, unhealthy="GPU 0: Xid 79")

    def notice(self, node: Node) -> None:
        """EC2 tells it that it will be taken back in two minutes: it asks for an order, and is gone then, whatever it did."""
        by = int(self.clock.now + 120)
        node.order = Order(
            kind=OrderKind.CHECKPOINT_AND_STOP,
            error="Interrupted",
            reason="so EC2 said.",
            by=by,
            author=f"rank {node.rank}",
        )
        self.owners[node.machine.id].fate(node.attempt).taken = True
        send(self.aws, node, urgent=True)
        self.clock.at(self.clock.now + 120, lambda: self.take_back(node))

    def beat(self) -> None:
        """Every minute, what healthy nodes do by themselves: boot, report, obey an order."""
        self.clock.at(self.clock.now + BEAT_S, self.beat)
        for node in [node for run in self.runs for node in self.living(run)]:
            if node.silent or self.clock.now < node.machine.launched_at + self.boot_s:
                continue
            order = stored(self.aws, items.node_order(NODE_ROLE, node.machine.id))
            if order is not None:
                self.leave(node, Exit(code=143, error=json.loads(order)["error"], ordered=True))
                continue
            if tags.MASTER_ADDRESS not in node.machine.tags:
                node.phase = Phase.WAITING
                send(self.aws, node)
                continue
            node.phase, node.trains_since = Phase.TRAINING, min(node.trains_since, self.clock.now)
            moved_at = max(node.trains_since, self.owners[node.machine.id].fate(node.attempt).stands_since)
            idle_s = max(0.0, self.clock.now - moved_at)
            send(self.aws, node, phase_s=self.clock.now - node.trains_since, idle_s=idle_s)

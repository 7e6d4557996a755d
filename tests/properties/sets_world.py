"""Ranks that train in lockstep and save while their agents commit; everything may be killed inside any request.

Trainers write several files one after the other, and go on while an upload runs: each request takes seconds, during which they
save. Every file says of which step it is, so a mixed restore shows.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from artifact_check.policy import missing
from contract.codec import decode
from contract.commits import CheckpointSet
from contract.jobs import Scope
from contract.roles import Role
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, EVERY_S, Clock, Rank

SECOND = 1.0


class Protocol(Enum):
    """Who writes and who names."""

    NOBODY = "nobody names, rank 0 writes"
    RANK0 = "rank 0 writes and names"
    BARRIER = "all write, and rank 0 names after a barrier"
    EVERY = "all write and name"


class Killed(BaseException):
    """The machine is gone."""


@dataclass(frozen=True)
class Ended:
    """What an attempt left: the steps of all saves that were complete, with the time, and when it was killed."""

    saves: tuple[tuple[float, int], ...]
    at: float


class Attempt:
    """One attempt of the job; `restored` is the step that it starts from."""

    def __init__(
        self, root: Path, s3: FakeS3, number: int, *, nodes: int, protocol: Protocol, chance: random.Random, clock: Clock,
        roles: tuple[Role, ...] = (),
    ) -> None:  # fmt: skip
        self.protocol, self.chance, self.clock, self.s3 = protocol, chance, clock, s3
        scope = Scope.SHARDS if protocol is Protocol.BARRIER and chance.random() < 0.5 else Scope.AUTO
        if roles and chance.random() < 0.5:
            scope = Scope.RANK0
        self.ranks = [
            Rank(root, s3, rank, number, nodes=nodes, scope=scope, clock=clock, roles=roles) for rank in range(nodes)
        ]
        self.saves: list[tuple[float, int]] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0
        self._moving = threading.Lock()
        self.restored = [rank.restore() for rank in self.ranks]
        self.step = self.ranks[0].restore() or 0
        self.every_s = chance.uniform(10.0, 60.0)
        self._at(clock.now + self.every_s, self._save)

    def _at(self, when: float, do: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, do))

    def _save(self) -> None:
        """Every rank saves; the next save begins after the slowest."""
        self.step += 10
        step, now, ends = self.step, self.clock.now, [self.clock.now]
        for rank in self.ranks:
            if rank.rank and self.protocol in (Protocol.NOBODY, Protocol.RANK0):
                continue
            when = now
            for part in ("a",) if self.protocol is Protocol.NOBODY else ("a", "b"):
                when += self.chance.uniform(0.1, 4.0)
                self._at(when, lambda rank=rank, part=part: rank.write(f"{part}-{rank.rank}", f"{part} of {step}"))  # type: ignore[misc]
            if self.protocol is Protocol.EVERY:
                self._at(when + 0.1, lambda rank=rank: rank.at(step, checkpoint=step))  # type: ignore[misc]
            ends.append(when + 0.1)
        if self.protocol in (Protocol.RANK0, Protocol.BARRIER):
            self._at(max(ends) + 0.1, lambda: self.ranks[0].at(step, checkpoint=step))
        done = max(ends) + 0.2
        self._at(done, lambda: self.saves.append((done, step)))
        self._at(done + self.every_s, self._save)

    def advance(self, seconds: float) -> None:
        """Lets trainers go on."""
        with self._moving:  # agents send from several threads
            until = self.clock.now + seconds
            while self._events and self._events[0][0] <= until:
                when, _, do = heapq.heappop(self._events)
                self.clock.now = max(self.clock.now, when)
                do()
            self.clock.now = max(self.clock.now, until)

    def ended(self) -> Ended:
        return Ended(tuple(self.saves), self.clock.now)

    def train(self, until: float, *, tick_s: float) -> list[tuple[float, float]]:
        """Runs until then in an S3 that answers at once; when each set was closed, and when its checkpoint had been saved."""
        found, known = list[tuple[float, float]](), 0
        while self.clock.now < until:
            self.advance(tick_s)
            for rank in self.ranks:
                rank.checkpoints.tick()
            if len(self.saves) and (step := max(rank.checkpoints.closed_step for rank in self.ranks)) > known:
                known = step
                found.append((self.clock.now, {saved: when for when, saved in self.saves}.get(step, self.clock.now)))
        return found

    def run(self, until: float, kill_in: int) -> None:
        """Runs until then, or until the agents have made so many requests since half of that time: in that one all are killed."""
        half, left = (self.clock.now + until) / 2, kill_in

        def fault(_call: str, _key: str) -> None:
            nonlocal left
            if self.clock.now > half:
                left -= 1
            if left <= 0:
                raise Killed
            self.advance(self.chance.choice((0.0, 0.1, 0.5)))

        self.s3.fault = fault
        try:
            while self.clock.now < until:
                self.advance(SECOND)
                for rank in self.ranks:
                    rank.checkpoints.tick()
        except Killed:
            pass
        finally:
            self.s3.fault = lambda _call, _key: None

    def stop(self, lost: int | None) -> None:
        """An order ends the trainers, wherever they are; the agents make their last commits, but that of a lost rank."""
        self._events.clear()
        for rank in self.ranks:
            if rank.rank != lost:
                self.clock.now += self.chance.uniform(0.0, 2.0)
                rank.checkpoints.finish()


AttemptOf = TypeVar("AttemptOf", bound=Attempt)


def play_attempts(
    begin: Callable[[int], AttemptOf],
    judge: Callable[[AttemptOf, Ended], list[str]],
    chance: random.Random,
    *,
    attempts: int,
) -> None:
    """Kills one attempt after the other inside a request, or stops it; fails where `judge` finds something wrong with what the next one
    restored, or Sync would miss a file."""
    killed: AttemptOf | None = None
    for number in range(1, attempts + 1):
        attempt = begin(number)
        if killed is not None:
            assert judge(attempt, killed.ended()) == [], f"attempt {number}"
        attempt.run(attempt.clock.now + chance.uniform(0.5, 3.0) * EVERY_S, chance.randint(1, 60))
        if chance.random() < 0.4:
            attempt.stop(chance.choice([None, 0, len(attempt.ranks) - 1]))
        assert unsynced(attempt) == [], f"attempt {number}"
        killed = attempt


def losses(sets: list[tuple[float, float]], began: float, until: float) -> list[float]:
    """Seconds of training that are lost where everything is lost in that second; each second from the first set on."""
    found = []
    for second in range(int(sets[0][0]) + 1, int(until)):
        newest = max(saved for closed, saved in sets if closed <= second)
        found.append(second - max(newest, began))
    return found


def closed_steps(s3: FakeS3) -> list[int]:
    keys = [at for at in s3.objects if at[0] == BUCKET and at[1].endswith("/closed.json")]
    return [decode(CheckpointSet, s3.objects[at]).step for at in keys]


def unsynced(attempt: Attempt) -> list[str]:
    """What Sync misses of the newest commit of each rank, which its report names. Small files share packs."""
    sizes = {key: len(body) for (bucket, key), body in attempt.s3.objects.items() if bucket == BUCKET}
    return missing([newest for rank in attempt.ranks if (newest := rank.checkpoints.newest)], sizes)


def wrongs(attempt: Attempt, before: Ended, closed: list[int], upload_s: float) -> list[str]:
    """What is wrong with what an attempt restored: a mix, different steps, an old set, more lost than there may be."""
    found = []
    contents = [rank.content for rank in attempt.ranks]
    steps = {text.rpartition(" ")[2] for content in contents for text in content.values()}
    named = attempt.protocol is not Protocol.NOBODY
    if len(steps) > 1:
        found.append(f"mixed: {contents}")
    if any(content != contents[0] for content in contents):
        found.append(f"ranks differ: {contents}")
    writers = len(attempt.ranks) if attempt.protocol in (Protocol.BARRIER, Protocol.EVERY) else 1
    parts = 1 if attempt.protocol is Protocol.NOBODY else 2
    if steps and len(contents[0]) != writers * parts:
        found.append(f"partial: {sorted(contents[0])}")
    step = int(steps.pop()) if steps else 0
    if closed and not step:
        found.append(f"from zero, and {closed} are closed")
    if named and closed and step != max(closed):
        found.append(f"restored {step}, and {max(closed)} is closed")
    old = [one for when, one in before.saves if when < before.at - EVERY_S - attempt.every_s - upload_s]
    if old and step < max(old):
        found.append(f"lost more than an interval and an upload: {max(old)} was saved long before, restored is {step}")
    return found

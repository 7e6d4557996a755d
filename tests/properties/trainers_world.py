"""Trainers in no known layout that name nothing: weights of any format in any rhythm, beside logs, tables and states.

Every save, and every line of a log, is a row of operations with time between them; the agents look and send meanwhile, and everything may
be cut after any operation. The clock is years ahead of the kernel's, so a file that is written in place is dated later than its inode; one
that is renamed into its place keeps an older date, as in life.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent.sets.resting import SHORTEST_S
from agent.snapshot import FileState
from contract.codec import decode
from contract.commits import CheckpointSet, Commit
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, Clock, Rank, job
from tests.properties.weights import FORMATS, as_npy

BEGAN = 4_000_000_000.0
"""In the year 2096."""
TICK_S = 1.0
SLACK_S = 60.0
"""A look, a commit whose requests take time, and the next look after one that found a save in progress."""
Steps = Iterator[float]
"""Seconds until the next operation."""


class Cut(BaseException):
    """The machines are gone."""


@dataclass(frozen=True)
class Style:
    """How one trainer saves."""

    format: str
    renames: bool
    names: str
    """`one` that is used again, `numbered`, or in numbered `folders`."""
    files: int
    writes_s: float
    """For how long a file is written."""
    idles_s: float
    """Between the end of a save and the next one."""
    nodes: int
    writer: int
    every_s: float
    beside: tuple[tuple[int, str], ...]
    """Logs, tables and states by rank."""

    @property
    def is_shown(self) -> bool:
        """Whether something but rest shows that a file is whole."""
        return self.renames or FORMATS[self.format][2]

    @property
    def has_to_close(self) -> bool:
        """Whether whole checkpoints lie there for long enough to be taken."""
        if not self.is_shown:
            return self.idles_s >= min(60.0, self.every_s / 4) + 10.0
        if self.files > 1 and self.names == "one":
            return self.idles_s >= 12.0
        return self.names != "one" or self.idles_s >= 2.5 or self.renames


def draw_style(chance: random.Random) -> Style:
    format_, every_s = chance.choice(sorted(FORMATS)), chance.choice([60.0, 120.0, 300.0])
    nodes = 1 if format_ == "lines" else chance.choice([1, 1, 1, 2, 2, 3])  # texts of two ranks may be shards
    writer = 0 if chance.random() < 0.8 else chance.randrange(nodes)
    kinds = chance.sample(sorted(BESIDE), chance.randint(0, 4))
    texts = sorted(BESIDE.keys() - {"an array that is replaced", "the name of the newest"})
    others = [(rank, kind) for rank in range(nodes) if rank != writer for kind in chance.sample(texts, 2)]
    return Style(
        format=format_,
        renames=chance.random() < 0.25,
        names=chance.choice(["one", "numbered", "folders"]),
        files=chance.choice([1, 1, 2]),
        writes_s=chance.choice([0.1, 0.5, 3.0, 20.0]),
        idles_s=chance.choice([0.3, 3.0, 8.0, 30.0, 75.0, 200.0]),
        nodes=nodes,
        writer=writer,
        every_s=every_s,
        beside=(*((writer, kind) for kind in kinds), *(one for one in others if chance.random() < 0.7)),
    )


class World:
    """One attempt of a trainer; `versions` has every whole version of each file of weights by its path."""

    def __init__(
        self, root: Path, style: Style, chance: random.Random, s3: FakeS3 | None = None, attempt: int = 1
    ) -> None:
        self.style, self.chance, self.s3, self.clock = style, chance, s3 or FakeS3(), Clock()
        self.clock.now = BEGAN + chance.uniform(0.0, style.every_s)
        self.began = self.clock.now
        self.versions = defaultdict[str, list[bytes]](list)
        self.saves: list[tuple[float, dict[str, bytes]]] = []
        self.sets: list[tuple[float, dict[str, bytes]]] = []
        self.left, self.has_stopped = -1, False
        self._moved: dict[int, float] = {}
        self._known: set[str] = set()
        self._events: list[tuple[float, int, Steps]] = []
        self._count, self._moving = 0, threading.Lock()
        self.ranks = [self._rank(root, rank, attempt) for rank in range(style.nodes)]
        self._start(self._save())
        for rank, kind in style.beside:
            self._start(BESIDE[kind](self, self.ranks[rank]))

    def _rank(self, root: Path, rank: int, attempt: int) -> Rank:
        made = Rank(root, self.s3, rank, attempt, nodes=self.style.nodes, clock=self.clock, changed_s=self.changed_s)
        described = replace(job(self.style.nodes), checkpoint_minutes=self.style.every_s / 60, admitted_at=BEGAN)
        return made.arrange(described)

    def changed_s(self, seen: FileState) -> float:
        return seen.mtime_ns / 1e9 if seen.mtime_ns > 3e18 else self._moved.get(seen.inode, self.began)

    # What trainers do

    def write(self, rank: Rank, path: str, data: bytes, how: str = "wb") -> None:
        file = rank.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open(how) as into:
            into.write(data)
        os.utime(file, (self.clock.now, self.clock.now))

    def rename(self, rank: Rank, path: str, to: str) -> None:
        file = rank.path / path
        os.utime(file, (1e9, 1e9))
        self._moved[file.stat().st_ino] = self.clock.now
        (rank.path / to).parent.mkdir(parents=True, exist_ok=True)
        file.rename(rank.path / to)

    def in_pieces(self, rank: Rank, path: str, data: bytes, seconds: float) -> Steps:
        cuts = sorted(self.chance.randint(0, len(data)) for _ in range(3))
        self.write(rank, path, b"")
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            yield seconds / 4
            self.write(rank, path, data[start:end], "ab")

    def _save(self) -> Steps:
        style, rank, number = self.style, self.ranks[self.style.writer], 0
        ending, make, _ = FORMATS[style.format]
        yield self.chance.uniform(0.0, style.idles_s)
        while True:
            number += 1
            saved = dict[str, bytes]()
            for part in ("model", "optimizer")[: style.files]:
                name = {"one": part, "numbered": f"{part}_{number}", "folders": f"step_{number}/{part}"}[style.names]
                path, data = f"{name}{ending}", make(self.chance)
                saved[path] = data
                self.versions[path].append(data)
                to = f"{path}.part.tmp" if style.renames else path
                yield from self.in_pieces(rank, to, data, style.writes_s)
                if style.renames:
                    yield 0.01
                    self.rename(rank, to, path)
            self.saves.append((self.clock.now, saved))
            yield style.idles_s * self.chance.uniform(0.9, 1.1)

    # Time

    def _start(self, steps: Steps, after_s: float = 0.0) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.clock.now + after_s, self._count, steps))

    def advance(self, seconds: float) -> None:
        """Lets trainers go on. Raises Cut after the last operation that is `left`."""
        with self._moving:
            until = self.clock.now + seconds
            while self._events and self._events[0][0] <= until:
                when, _, steps = heapq.heappop(self._events)
                self.clock.now = max(self.clock.now, when)
                self._start(steps, next(steps))
                self.left -= 1
                if not self.left:
                    raise Cut
            self.clock.now = max(self.clock.now, until)

    def run(self, seconds: float) -> None:
        """Trains for so long, and takes note of each set that is closed. Each request takes time, in which trainers go on."""
        until = self.clock.now + seconds
        self.s3.fault = lambda _call, _key: self.advance(self.chance.choice((0.0, 0.0, 0.1)))
        try:
            while self.clock.now < until:
                self.advance(TICK_S)
                for rank in self.ranks:
                    rank.checkpoints.tick()
                self.read_sets()
        finally:
            self.s3.fault = lambda _call, _key: None

    def stop(self) -> None:
        """An order has ended the trainers, wherever they are; the agents make their last commits."""
        self._events.clear()
        self.has_stopped = True
        ended_at = self.clock.now
        self.clock.now += self.chance.uniform(0.0, 20.0)
        for rank in self.ranks:
            rank.checkpoints.finish(ended_at=ended_at)
        self.read_sets()

    def read_sets(self) -> None:
        keys = [at for at in self.s3.objects if at[0] == BUCKET and at[1].endswith("/closed.json")]
        for at in keys:
            if at[1] not in self._known:
                self._known.add(at[1])
                self.sets.append((self.clock.now, self._read_set(at)))

    def _read_set(self, at: tuple[str, str]) -> dict[str, bytes]:
        found = dict[str, bytes]()
        for key in filter(None, decode(CheckpointSet, self.s3.objects[at]).parts):
            for file in decode(Commit, self.s3.objects[BUCKET, key]).files:
                body = self.s3.objects[BUCKET, file.key]
                found[file.path] = body[file.offset : file.offset + file.size]
        return found

    # What may be wrong

    def list_torn(self) -> list[str]:
        """Files of weights in sets that no save has left so."""
        return [
            f"{path} of set {number}"
            for number, (_, files) in enumerate(self._proven, 1)
            for path, data in files.items()
            if path in self.versions and data not in self.versions[path]
        ]

    @property
    def _proven(self) -> list[tuple[float, dict[str, bytes]]]:
        """Without the last set of a trainer that died in a save which nothing shows to be half: it counts where it is older than its own
        writing takes, and where there is no other set."""
        was_seen = self.style.is_shown or (len(self.sets) > 1 and self.style.writes_s / 4 < SHORTEST_S)
        return self.sets if was_seen or not self.has_stopped else self.sets[:-1]

    def list_mixed(self) -> list[str]:
        """Sets with a part of a save whose other part is of another one, or not there; where no file takes longer than a rest, and most of
        the time nothing is saved."""
        wrong = []
        if (
            self.style.writes_s * 1.1 > min(10.0, self.style.every_s / 4)
            or self.style.idles_s < 2 * self.style.writes_s
        ):
            return []
        for number, (_, files) in enumerate(self._proven, 1):
            have = {path: data for path, data in files.items() if path in self.versions}
            if have and not any(saved.items() <= have.items() for _, saved in self.saves):
                wrong.append(f"set {number} has no whole save: {sorted(have)}")
        return wrong

    def list_late(self) -> list[str]:
        """Saves that were whole, and after which no set was closed within two intervals."""
        until, limit = self.clock.now, 2 * self.style.every_s + SLACK_S
        ends = [at for at, _ in self.sets]
        return [
            f"no set within {limit:.0f} s after {at - self.began:.0f} s; sets at {[round(end - self.began) for end in ends]}"
            for at, _ in self.saves
            if at + limit < until and not any(at <= end <= at + limit for end in ends)
        ][:1]


# Beside weights


def appended(path: str, line: Callable[[World, int], bytes], period_s: float) -> Callable[[World, Rank], Steps]:
    """A file to which its writer appends a line after the other."""

    def steps(world: World, rank: Rank) -> Steps:
        number = 0
        while True:
            number += 1
            world.write(rank, path.format(rank=rank.rank), line(world, number), "ab")
            yield period_s * world.chance.uniform(0.5, 1.5)

    return steps


def replaced(
    path: str, make: Callable[[World, int], bytes], period_s: float, *, renames: bool = False
) -> Callable[[World, Rank], Steps]:
    """A file that is written anew all the time."""

    def steps(world: World, rank: Rank) -> Steps:
        number, to = 0, path.format(rank=rank.rank)
        while True:
            number += 1
            world.write(rank, f"{to}.tmp" if renames else to, make(world, number))
            if renames:
                world.rename(rank, f"{to}.tmp", to)
            yield period_s * world.chance.uniform(0.8, 1.2)

    return steps


def once(path: str, data: bytes) -> Callable[[World, Rank], Steps]:
    def steps(world: World, rank: Rank) -> Steps:
        yield 0.2
        world.write(rank, path.format(rank=rank.rank), data)
        while True:
            yield 1e9

    return steps


def rotated(world: World, rank: Rank) -> Steps:
    """A log that is renamed and begun anew."""
    while True:
        for number in range(12):
            world.write(rank, "app.log", b"line %d\n" % number, "ab")
            yield 4.0
        (rank.path / "app.log").rename(rank.path / "app.log.1")


def state(_: World, number: int) -> bytes:
    return json.dumps({"step": number, "loss": [0.1] * 20}, indent=2).encode()


def rows(_: World, number: int) -> bytes:
    return b"epoch,loss\n" + b"1,0.5\n" * min(number, 50)


BESIDE: dict[str, Callable[[World, Rank], Steps]] = {
    "a log": appended("train.log", lambda _, n: b"epoch %d loss 0.1\n" % n, 1.5),
    "a log that pauses": appended("20260101/20260101.log", lambda _, n: b"[01/01 00:00] step %d\n" % n, 25.0),
    "a log of a rank": appended("log.txt.rank{rank}", lambda _, n: b"[01/01 00:00] step %d\n" % n, 7.0),
    "a table": appended("results{rank}.csv", lambda _, n: b"%d,0.1\n" % n, 9.0),
    "a monitor": appended("monitor{rank}.csv", lambda _, n: b'#{"t": 1}\nr,l,t\n' if n == 1 else b"1.0,2,3.5\n", 2.0),
    "lines of JSON": appended("vis_data/scalars{rank}.json", lambda _, n: b'{"step": %d}\n' % n, 3.0),
    "metrics": appended("metrics{rank}.jsonl", lambda _, n: b'{"step": %d}\n' % n, 0.7),
    "events": appended(
        "runs/events.out.tfevents.17.host.1.{rank}", lambda w, n: struct.pack("<Q", n) + w.chance.randbytes(20), 1.1
    ),
    "a run": appended("wandb/offline-run-1/run-1{rank}.wandb", lambda w, _: w.chance.randbytes(30), 2.3),
    "a state": replaced("state{rank}.json", state, 1.0),
    "a state that is renamed": replaced("trainer{rank}.json", state, 5.0, renames=True),
    "a table that is replaced": replaced("history{rank}.csv", rows, 6.0),
    "an array that is replaced": replaced("scores{rank}.npy", lambda w, _: as_npy(w.chance), 7.0),
    "a picture": replaced("results{rank}.png", lambda w, _: b"\x89PNG\r\n\x1a\n" + w.chance.randbytes(90), 4.0),
    "a database": replaced("study{rank}.db", lambda w, _: b"SQLite format 3\0" + w.chance.randbytes(90), 3.0),
    "a sign of life": replaced("heartbeat{rank}.txt", lambda _, n: b"%d\n" % (n % 10), 0.8),
    "the name of the newest": replaced("last_checkpoint", lambda _, n: b"/ckpt/epoch_%d.pth" % n, 5.0),
    "a configuration": once("config{rank}.yaml", b"lr: 0.1\nlayers: 3\n"),
    "a process id": once("train{rank}.pid", b"1234"),
    "a rotated log": rotated,
}

"""One node of the replay: the real agent's decisions on the virtual clock, beside a trainer that only counts.

Real are the report and when it is urgent (Reporter), the orders (OrderWatch), which checkpoints become sets (Checkpoints), which set is
restored (restore), and what an exit is called (concluded). What these do in threads happens here when it is due.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any, Protocol

from agent.checkpoints import Checkpoints
from agent.commits import Folder
from agent.conclusion import concluded
from agent.engine.engine import Engine
from agent.orders import OrderWatch
from agent.position import Position
from agent.progress import ProgressFile
from agent.reports import Reporter
from agent.restore import restore
from agent.saver import SAVED
from agent.store import Store
from agent.table import NodeItems
from benchmarks.spot.assumed import Assumed
from benchmarks.spot.training import Training
from contract import tags
from contract.errors import TrainingFailed
from contract.jobs import Job
from contract.keys import CommitKind
from contract.orders import Order
from contract.reports import Exit, NodeReport, Phase, Progress
from localaws.services.ec2_instance import Machine
from tests.builders import NODE_ROLE
from tests.fakes.aws import Aws
from tests.fakes.state import TABLE
from tests.node.fakes import FakeS3
from tests.node.watching import Notices

TICK_S = 10.0
"""Between looks for a checkpoint to commit; the agent looks twice a second."""
FILE = "model.pt"


class Around(Protocol):
    """What a node needs of its replay."""

    @property
    def aws(self) -> Aws: ...

    @property
    def assumed(self) -> Assumed: ...

    @property
    def s3(self) -> FakeS3: ...

    @property
    def job(self) -> Job: ...

    @property
    def folder(self) -> Path: ...

    def begun(self, training: Training) -> None:
        """All ranks train from now on."""

    def kept(self, attempt: int) -> bool:
        """Whether an attempt before this one has kept what it installed."""

    def quiet(self, training: Training) -> bool:
        """Whether nothing will happen for a while, so that reports and looks would only say so."""


class _Client:
    """The two calls of a node's client, answered by the fake's table."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._answer("PutItem", request)

    def get_item(self, **request: Any) -> dict[str, Any]:
        return self._answer("GetItem", request)

    def _answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._aws.table.answer(operation, request)
        date = {"HTTPHeaders": {"date": formatdate(self._aws.clock.now, usegmt=True)}}
        return {name: value for name, value in answer.items() if value is not None} | {"ResponseMetadata": date}


class Node:
    """Lives from the boot of its machine to its last report, or to the machine's end."""

    def __init__(self, around: Around, machine: Machine, training: Training, *, boot_s: float, tag_s: float) -> None:
        self.around, self.machine, self.training = around, machine, training
        self.rank, self.attempt = machine.index, int(machine.tags[tags.ATTEMPT])
        self.notices = Notices()
        self.ended_at = 0.0
        """When its last report was written."""
        self.vanished = False
        """Nobody hears of it, whatever EC2 says."""
        self._clock, self._tag_at = around.aws.clock, machine.launched_at + tag_s
        self._items = NodeItems(_Client(around.aws), TABLE, NODE_ROLE, machine.id, monotonic=self._clock.monotonic)
        self.folder = around.folder / f"a{self.attempt}r{self.rank}"
        self._step, self._closed, self._leaving = 0, -1, False
        self._exit: Exit | None = None
        self._clock.at(machine.launched_at + boot_s, self._guarded(self._boot))

    @property
    def works(self) -> bool:
        return not self.vanished and self._exit is None and self.machine.runs(self._clock.now)

    def _guarded(self, do: Callable[[], None]) -> Callable[[], None]:
        return lambda: do() if self.works else None

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        """What is to be done when the node is not about to leave by then."""
        self._clock.at(self._clock.now + seconds, self._guarded(lambda: None if self._leaving else do()))

    # To the first step

    def _boot(self) -> None:
        if self._items.read_credentials() is None:
            return self._later(2.0, self._boot)
        checkpoints = self.folder / "checkpoints"
        checkpoints.mkdir(parents=True)
        job, store, now = self.around.job, Store(self.around.s3, self._bucket), self._clock.time
        self._progress = ProgressFile(self.folder / "progress.json")
        self._files = Folder(
            Engine(store), checkpoints, kind=CommitKind.CHECKPOINTS, job=job.id, rank=self.rank,
            note=_unheard, now=now, sleep=self._clock.sleep,
        )  # fmt: skip
        self._checkpoints = Checkpoints(
            Position(job, self.attempt, self.rank), store, self._files, self._progress, now=now, note=_unheard, clock=now,
            changed_s=lambda seen: seen.mtime_ns / 1e9,  # `_write` dates files by the virtual clock
        )  # fmt: skip
        first = NodeReport(
            job=job.id, attempt=self.attempt, rank=self.rank, instance=self.machine.id, phase=Phase.RESTORING,
            sent_at=self._clock.now,
        )  # fmt: skip
        self._reporter = Reporter(
            self._items, first, nodes=job.nodes, every_s=job.timing.report_every_s, expires=job.deadline,
            progress=lambda: Progress(step=self.training.step(self._clock.now)), note=_unheard, now=now,
        )  # fmt: skip
        self._watch = OrderWatch(
            job, self.rank, items=self._items, metadata=self.notices, on_order=self._on_order, note=_unheard, now=now,
            monotonic=self._clock.monotonic,
        )  # fmt: skip
        self._report()
        self._read_orders()
        self._restore(store)
        return None

    @property
    def _bucket(self) -> str:
        return self.around.job.places[self.machine.region].bucket

    def _restore(self, store: Store) -> None:
        place, folder = Position(self.around.job, self.attempt, self.rank), self.folder / "checkpoints"
        found = restore([store], place, folder, self.folder / "staging", _unheard) if self.attempt > 1 else None
        if found is None:
            return self._prepare()
        for file in (file for contents in found.contents.values() for file in contents.files):
            self._date(folder / file.path)
        self._files.adopt(found.contents, here=True)
        self._step = found.step
        self._checkpoints.restored(found.step, named=found.named)
        self._reporter.change(restored_step=found.step, restored=found.name)
        return self._later(self.around.assumed.restore_s, self._prepare)

    def _prepare(self) -> None:
        self._reporter.enter(Phase.PREPARING)
        self._reporter.send()
        self._later(self.around.assumed.prepare_s(kept=self.around.kept(self.attempt)), self._prepared)

    def _prepared(self) -> None:
        self._reporter.moment("prepared")
        self._reporter.enter(Phase.WAITING)
        self._reporter.send()
        self._meet()

    def _meet(self) -> None:
        if tags.MASTER_ADDRESS not in self.machine.tags or self._clock.now < self._tag_at:
            return self._later(self.around.job.timing.metadata_every_s, self._meet)
        self._reporter.moment("addressed")
        self._reporter.moment("started")
        self._reporter.enter(Phase.TRAINING)
        self._reporter.send()
        self._later(TICK_S, self._tick)
        return self._later(self.around.assumed.import_s, self._begin)

    def _begin(self) -> None:
        if self.training.ready(self.rank, self._step, self._clock.now):
            self._reporter.moment("first_step")
            self.around.begun(self.training)

    # While it trains

    def _report(self) -> None:
        if not self._leaving:
            self._later(self.around.job.timing.report_every_s, self._report)
        if not self.around.quiet(self.training):
            self._reporter.send()

    def _read_orders(self) -> None:
        if self._leaving:
            return
        self._later(self.around.job.timing.orders_every_s, self._read_orders)
        if self.around.quiet(self.training):
            return
        before = self._watch.order, self._reporter.report.order
        order = self._watch.read_order()
        if before != (order, self._reporter.report.order):
            self._reporter.send()  # the thread of the reports wakes for it
        if order is not None:
            self._obey(order)

    def _on_order(self, order: Order) -> None:
        self._reporter.change(order=order)
        if order.author == f"rank {self.rank}":
            self._reporter.hurry()

    def save(self) -> None:
        """The trainer saves; its pause is the training's. The name is told once the bytes could be in S3."""
        step, assumed = self.training.step(self._clock.now), self.around.assumed
        self._later(assumed.save_s + assumed.commit_s, lambda: self._write(step))

    def _write(self, step: int) -> None:
        if step <= self._step:
            return  # nothing was trained since
        self._step, now = step, self._clock.now
        file = self.folder / "checkpoints" / FILE
        beside = file.with_suffix(".tmp")
        beside.write_text(f"step {step}")
        beside.rename(file)
        self._date(file)
        progress = self.folder / "progress.json"
        progress.write_text(json.dumps({"step": step, "checkpoint": step}))
        os.utime(progress, (now + 0.001, now + 0.001))

    def _date(self, file: Path) -> None:
        os.utime(file, (self._clock.now, self._clock.now))

    def _tick(self) -> None:
        self._later(TICK_S, self._tick)
        self._handle_answer(self._checkpoints.tick())

    def _handle_answer(self, answered: bool) -> None:
        closed = self._checkpoints.closed_step
        if closed > self._closed:
            self._closed = closed
            self._reporter.set_closed(closed)
        if answered and self._checkpoints.newest is not None:
            newest = self._checkpoints.newest
            self._reporter.change(checkpoint=self._checkpoints.newest_key, checkpoint_step=newest.step)

    # The end

    def _obey(self, order: Order) -> None:
        began = self._reporter.report.phase is Phase.TRAINING
        self.training.stop(self._clock.now)
        self._leave(Exit(code=143 if began else 1, error=TrainingFailed.__name__ if began else ""), order, began=began)

    def succeed(self) -> None:
        """The trainer has trained enough."""
        self._leave(Exit(code=0), None, began=True)

    def _leave(self, ending: Exit, order: Order | None, *, began: bool) -> None:
        self._leaving = True
        writes = began and self.rank == 0 and self.training.began < float("inf")
        after_s = self.around.assumed.save_s if writes else self.around.assumed.stop_s
        self._soon(after_s, lambda: self._last_commit(ending, order, began=began, writes=writes))

    def _soon(self, seconds: float, do: Callable[[], None]) -> None:
        self._clock.at(self._clock.now + seconds, self._guarded(do))

    def _last_commit(self, ending: Exit, order: Order | None, *, began: bool, writes: bool) -> None:
        ending = concluded(ending, order, tail=(), unsaved=SAVED)
        self._reporter.outcome(ending)
        self._reporter.send()
        self._soon(
            self.around.assumed.commit_s if writes else 0.0, lambda: self._end(ending, began=began, writes=writes)
        )

    def _end(self, ending: Exit, *, began: bool, writes: bool) -> None:
        if writes:
            self._write(self.training.step(self._clock.now))
        if began:
            self._handle_answer(self._checkpoints.finish())
        self._reporter.end(ending, tries=1, sleep=self._clock.sleep)
        self._exit, self.ended_at = ending, self._clock.now


def _unheard(_: str) -> None:
    """The log of a node, which nobody reads here."""

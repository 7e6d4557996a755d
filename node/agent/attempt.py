"""Runs one node's share of one attempt: restore, prepare, wait for the master, train, save, report how it ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from agent import code, dumps, efa, fabric, machine, variables
from agent.activity import Activity
from agent.aws import Aws
from agent.checkpoints import Checkpoints
from agent.commits import Artifacts, Folder
from agent.conclusion import concluded
from agent.container.container_workspace import ContainerWorkspace
from agent.credentials import retry_while_expired
from agent.disk.place import WorkPlace
from agent.disk.watch import RoomWatch
from agent.engine.engine import Engine
from agent.failures import Ordered, classify_problem
from agent.health.check import HealthWatch
from agent.identity import NodeIdentity
from agent.kernel import KernelLog
from agent.launching.start import Launch, format_command
from agent.links import check as links
from agent.logs import OWN_LINE, LogShipper
from agent.master import wait_for_master
from agent.metadata import Metadata
from agent.mounts.mounting import Mounts
from agent.orders import PATIENCE, OrderWatch, word_order
from agent.position import Position
from agent.progress import ProgressFile
from agent.reports import Reporter
from agent.restore import choose_regions, restore
from agent.role import RoleCredentials
from agent.saver import SAVED, Saver
from agent.store import Store
from agent.table import NodeItems
from agent.training import LINGER_S, ChildProcess, RunningTraining, described
from agent.workspace import MachineWorkspace, Workspace
from contract import names, training
from contract.errors import NodeUnhealthy, TrainingFailed
from contract.health import HealthCheck
from contract.items import KEPT_S
from contract.jobs import Job
from contract.keys import CommitKind
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase

T = TypeVar("T")
FLUSH_S = 60.0
"""How long the agent tries to send the last lines to CloudWatch Logs."""
LAST_REPORT_TRIES = 20
LOOK_S = 0.2
"""How often the agent checks whether its child process has ended."""
WORK = "var/lib/trainyard"


class Attempt:
    """Made once; `run` returns when the machine may power off."""

    def __init__(
        self,
        job: Job,
        node: NodeIdentity,
        first: NodeReport,
        *,
        root: Path,
        place: WorkPlace,
        home: Store,
        items: NodeItems,
        aws: Aws,
        metadata: Metadata,
        variables: Mapping[str, str],
        now: Callable[[], float],
        aws_now: Callable[[], float],
        sleep: Callable[[float], None],
        say: Callable[[str], None],
    ) -> None:
        self._job, self._node, self._root, self._place = job, node, root, place
        self._home, self._aws, self._metadata = home, aws, metadata
        self._variables, self._now, self._aws_now, self._sleep, self._say = variables, now, aws_now, sleep, say
        self._work = root / WORK
        for name in ("checkpoints", "artifacts", "code"):
            (self._work / name).mkdir(parents=True, exist_ok=True)
        self._workspace = self._choose_workspace(job, node)
        self._progress = ProgressFile(self._workspace.progress_file, note=self._note)
        self._logs = self._shipper(names.log_stream(job.id, node.attempt, node.rank))
        self._kernel_logs = self._shipper(names.kernel_stream(job.id, node.attempt, node.rank))
        self._health = HealthWatch(
            job, root, self._work, instance_type=lambda: metadata.patient("instance-type", sleep), note=self._note,
            clock_ahead_s=lambda: now() - aws_now(), hurry=lambda: self._reporter.hurry(),
        )  # fmt: skip
        self._reporter = Reporter(
            items, first, nodes=job.nodes, every_s=job.timing.report_every_s, expires=job.deadline + KEPT_S,
            progress=self._progress.read, idle_s=lambda: self._activity.idle_s, unhealthy=lambda: self._health.words,
            note=self._note, now=now,
        )  # fmt: skip
        self._watch = OrderWatch(
            job, node.rank, items=items, metadata=metadata, on_order=self._on_order, note=self._note, now=now,
            saved=lambda: self._reporter.report.closed_step >= 0,
        )  # fmt: skip
        self._room = RoomWatch(
            place, volume_gb=job.volume_gb, stop_at=job.stop_at, named=lambda: self._progress.named,
            reporter=self._reporter, note=self._note, now=now,
        )  # fmt: skip
        bucket = self._bucket(node.region)
        self._files = {kind: self._folder(kind, bucket) for kind in CommitKind}
        self._checkpoints = Checkpoints(
            Position(job, node.attempt, node.rank), bucket, self._files[CommitKind.CHECKPOINTS], self._progress,
            now=aws_now, note=self._note,
        )  # fmt: skip
        self._launch = Launch(
            job, node, self._workspace, bucket, self._work, note=self._note, pause=self._pause, places=self._mounts.places,
            tell=lambda text: self._reporter.enter(Phase.CHECKING, text), on_failure=lambda at: self._reporter.moment("failed", at),
        )  # fmt: skip
        artifacts = Artifacts(
            bucket, self._files[CommitKind.ARTIFACTS],
            job=job.id, attempt=node.attempt, rank=node.rank, progress=self._progress,
        )  # fmt: skip
        self._saver = Saver(
            self._checkpoints, artifacts, self._reporter, every_s=job.checkpoint_minutes * 60, note=self._note
        )
        self._activity = Activity(
            self._progress, self._work / "checkpoints", committing=lambda: self._saver.busy_since,
            commit_most_s=job.timing.save_allowance_s,
        )  # fmt: skip
        aws.job_credentials.tell = self._on_credentials
        # For the training alone: not even the installation of its requirements gets them.
        self._role = RoleCredentials(
            self._work / "role", job.job_role, node.region, read=items.read_credentials, note=self._note,
            now=aws_now, monotonic=time.monotonic, shown=self._workspace.folders.role if job.container else "",
        ) if job.job_role else None  # fmt: skip
        self._kernel: KernelLog | None = None
        self._tail: Sequence[str] = ()
        self._ended_well, self._ended_at = False, 0.0  # by itself and with 0; when by itself, or 0
        self._obeyed: Order | None = None  # None for an order that came after the command ended: it explains no exit

    def run(self) -> Exit:
        """Does all of it. Never raises: the last report says what happened."""
        deadline = self._job.deadline + self._job.timing.power_off_after_deadline_s
        machine.power_off_at(self._root, deadline, self._note)
        self._reporter.start()
        self._watch.start()
        self._room.start()
        self._logs.line(OWN_LINE + self._place.reason)
        try:
            self._monitor()
            self._health.start()
            self._workspace.begin()
            self._retry(self._mounts.begin)
            self._retry(self._restore)
            environment = self._prepare()
            fabric.wait(
                self._root, self._job.timing.fabric_patience_s, now=self._now, pause=self._pause, note=self._note
            )
            self._health.gate(efa.check_devices(self._root, self._job, self._metadata, self._note, self._pause))
            environment[training.MASTER_ADDR] = self._meet()
            self._check_links(environment)
            ending = self._train(environment)
        except Ordered:
            self._obeyed = self._watch.order
            ending = Exit(code=1)
        except Exception as problem:
            error, reason = classify_problem(problem)
            ending = Exit(code=1, error=error, reason=f"{self._node.name}: {reason}")
        return self._end(ending)

    def _monitor(self) -> None:
        self._kernel = KernelLog(self._root, ship=self._on_kernel, note=self._note)
        settings = machine.cloudwatch_settings(self._job, self._node.attempt, self._node.rank)
        ways = {"credentials": self._aws.job_credentials.current, "sleep": self._sleep, "note": self._note}
        machine.start_cloudwatch(self._root, self._work, settings, **ways)

    def _restore(self) -> None:
        """Restores the newest checkpoint of earlier attempts, in whichever region they ran, or what the job begins with."""
        if self._node.attempt == 1 and self._job.resume is None:
            return
        regions = choose_regions(self._node.region, self._job.places, self._aws.job_credentials.current().ran_in)
        stores = [self._bucket(one) for one in regions]
        folder, staging = self._work / "checkpoints", self._work / "staging" / "restore"
        place = Position(self._job, self._node.attempt, self._node.rank)
        source = self._aws.store(resume.region, resume.bucket) if (resume := self._job.resume) else None
        found = restore(stores, place, folder, staging, self._note, source=source, now=self._now, pause=self._pause)
        if found is None:
            self._note("no checkpoint of an earlier attempt: training starts from the beginning")
            return
        self._files[CommitKind.CHECKPOINTS].adopt(found.contents, here=found.here)
        self._checkpoints.restored(found.step, named=found.named)
        self._reporter.change(restored_step=found.step, restored=found.name)

    def _prepare(self) -> dict[str, str]:
        """Unpacks the code and makes ready what the training runs on. Returns the command's environment."""
        self._reporter.enter(Phase.PREPARING)
        if (there := self._job.code) is not None:
            code.bring(there.key, self._work, lambda to: self._retry(lambda: self._home.fetch(there.key, to)))
        workspace = self._workspace
        environment = workspace.prepare(self._work / code.FOLDER)
        environment |= self._retry(lambda: variables.for_training(self._job, self._node, workspace.folders, self._aws))
        if self._role is not None:
            self._reporter.change(note=f"waits for the credentials of the job_role {self._job.job_role}")
            led = self._role.begin(self._job.timing.prepare_allowance_s, self._pause)
            environment = {**self._role.without_others(environment), **led}
            self._reporter.change(note="")
        self._reporter.moment("prepared")
        return environment

    def _choose_workspace(self, job: Job, node: NodeIdentity) -> Workspace:
        self._mounts = Mounts(
            job, root=self._root, work=self._work, variables=self._variables, credentials=lambda: self._aws.job_credentials.current(),
            pause=self._pause, note=self._note, tell=lambda text: self._reporter.change(note=text),
        )  # fmt: skip
        if job.container is None:
            return MachineWorkspace(
                job, self._work, self._variables, attempt=node.attempt, rank=node.rank, bucket=self._bucket(node.region),
                tool=self._tool, retry=self._retry, note=self._note, now=self._now,
            )  # fmt: skip
        return ContainerWorkspace(
            job, job.container, node.region, root=self._root, work=self._work, variables=self._variables, mounts=self._mounts.places,
            token=self._aws.registry_token, instance_type=lambda: self._metadata.patient("instance-type", self._pause),
            pause=self._pause, note=self._note, tell=lambda text: self._reporter.change(note=text),
        )  # fmt: skip

    def _meet(self) -> str:
        """Waits for the master address."""
        self._reporter.enter(Phase.WAITING, "waits for the master address")
        address = wait_for_master(self._metadata, self._job.timing, now=self._now, pause=self._pause)
        self._reporter.moment("addressed")
        return address

    def _check_links(self, environment: Mapping[str, str]) -> None:
        """Measures the network between the nodes, where the request asks for it. Admit refuses that with an image."""
        if self._job.health is HealthCheck.DEEP and (program := self._workspace.python):
            self._reporter.enter(Phase.CHECKING, "measures the network with its peers")
            wrong = links.check_network(
                self._job, self._node, self._metadata, program, environment, self._work,
                pause=self._pause, note=self._note,
            )  # fmt: skip
            self._health.gate(wrong)

    def _retry(self, do: Callable[[], T]) -> T:
        """Calls `do` until the job's credentials are valid. The attendant bounds each phase, and an order raises Ordered."""
        return retry_while_expired(do, pause=self._pause, note=self._note)

    def _pause(self, seconds: float) -> None:
        """Waits; raises Ordered where an order comes meanwhile, which ends the preparation."""
        if self._watch.came.wait(seconds):
            raise Ordered

    def _train(self, environment: Mapping[str, str]) -> Exit:
        self._pause(0)  # raises Ordered where an order came during the preparation
        self._activity.expect()
        child = self._launch.start(environment, self._metadata, self._logs.line)
        self._reporter.moment("started")
        self._note(f"started: {format_command(self._job)}")
        self._reporter.enter(Phase.TRAINING)
        self._saver.start()
        self._activity.begin(lambda: child.heard_at)
        status = self._accompany(child)
        self._activity.end()
        self._tail = tuple(child.tail)
        self._note(how := f"the command {described(status)}{child.why}{self._workspace.explain(status, self._tail)}")
        reason = f"{self._node.name}: {how}"
        if self._saver.refused and self._obeyed is None:
            reason = f"{self._node.name}: its checkpoints could not be restored: {self._saver.refused}"
        elif status == 0:
            return Exit(code=0)
        return Exit(code=status or 1, error=TrainingFailed.__name__, reason=reason)

    def _accompany(self, child: RunningTraining) -> int:
        """Waits until the child process has ended, by itself or by an order. Returns its exit code."""
        started = False
        while (status := child.wait(LOOK_S)) is None:
            if self._watch.came.is_set():
                return self._obey(child)
            if self._saver.refused:
                return child.stop(signal.SIGTERM, self._job.timing.stop_grace_s)
            # Each time: a checkpoint is of the moment at which its name is first read, and the saver may be at work.
            started = self._has_stepped() or started
        self._ended_well, self._ended_at = status == 0, time.time() - child.ended_s
        # A peer that obeyed an order first may have broken this trainer's connections: look for that order now.
        self._obeyed = self._watch.read_order(stopped=True) if status else self._watch.order
        self._has_stepped()
        child.end(LINGER_S)
        return status

    def _has_stepped(self) -> bool:
        """Whether the trainer has finished a step after the restored one; notes the moment."""
        progress = self._progress.read()
        if progress is None or progress.step <= max(self._reporter.report.restored_step, 0):
            return False
        self._reporter.moment("first_step")
        return True

    def _obey(self, child: RunningTraining) -> int:
        self._obeyed = order = self._watch.order
        kind = order.kind if order else OrderKind.STOP
        if kind is OrderKind.STOP:
            return child.end(0.0)
        if kind is OrderKind.DUMP:
            self._dump(child)
        return child.stop(signal.SIGTERM, self._job.timing.stop_grace_s)

    def _dump(self, child: RunningTraining) -> None:
        """Writes where the training stands to the log. Trainers break when one of them stops, so this one is not stopped before its peers
        have had the time to read the order and to do the same."""
        until = time.monotonic() + PATIENCE * self._job.timing.orders_every_s
        dumps.dump(child.pid, self._root, heard=lambda: child.heard_at, note=self._note)
        child.wait(max(0.0, until - time.monotonic()))

    def _end(self, ending: Exit) -> Exit:
        """Makes the last commits, sends the last lines and then the last report, which promises the other two."""
        examines = ending.error == TrainingFailed.__name__ and self._may_be_the_machines()
        self._reporter.change(examines=examines)
        self._reporter.outcome(concluded(ending, self._obeyed, tail=tuple(self._tail), unsaved=SAVED), self._ended_at)
        if examines:
            ending = self._examined(ending)
        self._workspace.close()
        unsaved = self._saver.finish(ended_well=self._ended_well, ended_at=self._ended_at or None)
        self._mounts.close()
        self._watch.close()
        self._room.end()
        if self._role is not None:
            self._role.close()
        if self._kernel is not None:
            self._kernel.end()
        ending = concluded(ending, self._obeyed, tail=tuple(self._tail), unsaved=unsaved)
        self._note(f"ended: {ending.error or 'success'} {ending.reason}".rstrip())
        note = unsaved.text or self._files[CommitKind.ARTIFACTS].left_out
        if not self._logs.flush(FLUSH_S):
            note = f"{note} some log lines did not arrive".strip()
            self._say(note)
        self._reporter.change(note=note)
        self._reporter.end(ending, tries=LAST_REPORT_TRIES, sleep=self._sleep)
        for logs in (self._logs, self._kernel_logs):
            logs.flush(FLUSH_S / 4)
            logs.close()
        return ending

    def _may_be_the_machines(self) -> bool:
        """Whether a fault of the machine may explain an error of the command: it had begun, and nothing else explains it."""
        own = self._obeyed is None and not self._saver.refused
        return own and self._health.is_on and "started" in self._reporter.report.timeline

    def _examined(self, ending: Exit) -> Exit:
        """The end of the command, once the machine was looked at; reported at once, because the attendant waits for it."""
        if why := self._health.examine():
            reason = f"{ending.reason}, beside a fault of its machine: {why}"
            ending = replace(ending, error=NodeUnhealthy.__name__, reason=reason)
            self._reporter.change(outcome=concluded(ending, None, tail=tuple(self._tail), unsaved=SAVED))
        self._reporter.change(examines=False)
        self._reporter.hurry()
        return ending

    def _on_kernel(self, line: str) -> None:
        self._kernel_logs.line(line)
        self._health.hear(line)

    def _tool(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, Sequence[str]]:
        """Runs a command of the agent's own and logs its output. An order ends it and raises Ordered."""
        child = ChildProcess(
            words, folder=folder, environment=environment, on_line=lambda line: self._logs.line(OWN_LINE + line)
        )
        status = child.wait_unless(self._watch.came, LOOK_S)
        self._tail = tuple(child.tail)
        return status, self._tail

    def _on_credentials(self, trouble: str) -> None:
        """Says that the job's credentials have expired, or that there are new ones."""
        self._note(trouble or "the job has new credentials")
        self._reporter.change(note=trouble)

    def _on_order(self, order: Order) -> None:
        """Reports the order: the attendant gives a node's own to every node."""
        self._reporter.change(order=order, note=f"ordered by {word_order(self._job, order)}")
        if order.author == f"rank {self._node.rank}":
            self._reporter.hurry()

    def _folder(self, kind: CommitKind, bucket: Store) -> Folder:
        return Folder(
            Engine(bucket, note=self._note), self._work / kind.value, kind=kind, job=self._job.id, rank=self._node.rank, note=self._note,
            shown=self._workspace.folders.shown(self._work), now=time.time, sleep=self._sleep,
        )  # fmt: skip

    def _shipper(self, stream: str) -> LogShipper:
        return LogShipper(
            lambda: self._aws.client("logs", self._job.home_region), self._job.log_group, stream,
            every_s=self._job.timing.logs_every_s, now=self._aws_now,
        )  # fmt: skip

    def _bucket(self, region: str) -> Store:
        return self._aws.store(region, self._job.places[region].bucket)

    def _note(self, text: str) -> None:
        self._say(text)
        for line in text.splitlines():
            self._logs.line(OWN_LINE + line)

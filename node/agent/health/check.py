"""The health check of a node: beside the preparation, at the gate before the training, and once the command has failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent.failures import Unhealthy
from agent.health import facts, judging
from agent.health.facts import Promised
from agent.health.judging import Health
from agent.health.kernel import KernelErrors
from contract.health import HealthCheck
from contract.jobs import Job

PART = 5
"""A GPU's programs have this part of `fabric_patience_s`, a minute: drivers may load after user data has begun, and without NVIDIA's
persistence daemon nvidia-smi wakes each GPU anew, which takes some seconds for eight."""
AGAIN_S = 3.0
"""Between two looks, while something is missing that may only be late."""
LATE_S = 10.0
"""How long programs may take once the command has failed: the peers' errors wait for this node's."""
SETTLES_S = 1.0
"""How long after the command's end a line of the kernel about its cause may still come, through the journal."""


class HealthWatch:
    """Checks one machine. Does nothing where the job asks for no check. Safe to use from any thread; no method raises but `gate`."""

    def __init__(
        self,
        job: Job,
        root: Path,
        work: Path,
        *,
        instance_type: Callable[[], str],
        clock_ahead_s: Callable[[], float | None],
        note: Callable[[str], None],
        hurry: Callable[[], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`work` is the work folder. `hurry` sends a report at once: an unhealthy machine need not restore a checkpoint first.
        `instance_type` may raise OSError; the type is then unknown, and promises nothing."""
        self._job, self._root, self._work = job, root, work
        self._instance_type, self._clock_ahead_s = instance_type, clock_ahead_s
        self._note, self._hurry, self._sleep = note, hurry, sleep
        self._errors = KernelErrors()
        self._promised = Promised()
        self._first = Health()
        self._trains = False
        self._most_s = job.timing.fabric_patience_s / PART
        self._thread = threading.Thread(target=self._check, name="health", daemon=True)

    @property
    def is_on(self) -> bool:
        """Whether the job asks for a check."""
        return self._job.health is not HealthCheck.OFF

    @property
    def words(self) -> str:
        """What is wrong with the machine, for a report: before the training all of it, then what the kernel told in the last minutes."""
        if not self.is_on:
            return ""
        return Health(wrong=tuple(self._errors.recent())).words if self._trains else self._first.words

    def hear(self, line: str) -> None:
        """Takes a line of the kernel."""
        self._errors.hear(line)

    def start(self) -> None:
        """Begins the check, in a thread of its own."""
        if self.is_on:
            self._thread.start()

    def gate(self, lacking: str = "") -> None:
        """Returns once the machine may train, as far as is known; called again once more is. Raises Unhealthy where something is wrong with
        it; `lacking` is what another look has found wrong."""
        if not self.is_on:
            return
        self._thread.join(3 * self._most_s + facts.DISK_S)  # it ends by itself before
        found = judging.with_more(self._first, *self._errors.recent(), lacking)
        self._trains = not found.wrong
        if found.wrong:
            self._first = found
            raise Unhealthy(found.words)

    def examine(self) -> str:
        """What is wrong with the machine that may explain why the command has failed just now; empty where nothing is known."""
        if not self.is_on:
            return ""
        self._sleep(SETTLES_S)
        smi = facts.gpus(self._root, LATE_S) if self._promised.gpus else None
        late = facts.MachineFacts(promised=self._promised, smi=smi, kernel=tuple(self._errors.recent()))
        return judging.judged_late(late, self._first).words

    def _check(self) -> None:
        try:
            self._checked()
        except Exception as problem:  # what is not known keeps no machine from training
            self._note(f"health: the check failed: {type(problem).__name__}: {problem}")
        if self._first.wrong:
            self._hurry()

    def _checked(self) -> None:
        began = time.monotonic()
        self._promised = self._promise()
        found = self._check_machine(began)
        while not found.sure and time.monotonic() - began + AGAIN_S < self._most_s and self._may_change(found):
            self._sleep(AGAIN_S)
            found = self._check_machine(began)
        self._first = found
        for line in (*found.wrong, *found.notes):
            self._note(f"health: {line}")
        if not found.wrong:
            counted = [f"{self._promised.gpus} GPUs"] * bool(self._promised.gpus)
            counted += [f"{self._promised.neurons} Neuron devices"] * bool(self._promised.neurons)
            here = f" with {', '.join(counted)}" if counted and found.sure else ""
            self._note(f"health: nothing is wrong with the machine{here} ({time.monotonic() - began:.1f} s)")

    def _may_change(self, found: Health) -> bool:
        """An image without nvidia-smi does not get one."""
        needs = [facts.SMI] * bool(self._promised.gpus) + [facts.NEURON_LS] * bool(self._promised.neurons)
        return bool(found.wrong) or any((self._root / one).exists() for one in needs)

    def _check_machine(self, began: float) -> Health:
        left_s = max(AGAIN_S, began + self._most_s - time.monotonic())
        return judging.judged(
            facts.gathered(
                self._root,
                self._work,
                self._promised,
                kernel=self._errors.recent,
                clock_ahead_s=self._clock_ahead_s,
                archive=self._job.code.size if self._job.code else 0,
                most_s=left_s,
            )
        )

    def _promise(self) -> Promised:
        try:
            kind = self._instance_type()
        except OSError as problem:
            self._note(f"health: GPUs are not counted, since the metadata service does not tell the type: {problem}")
            return Promised()
        job = self._job
        return Promised(gpus=job.gpus.get(kind, 0), neurons=job.neurons.get(kind, 0), efas=job.efas_of(kind))

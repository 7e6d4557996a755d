"""SageMaker whose trainings run nothing: each training's future is drawn or set in advance, so nobody has to move it along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from localaws.model import ACCOUNT, Clock
from localaws.services.sagemaker_jobs import Step, Training
from localaws.services.sagemaker_model import Begin, SageMaker, invalid

SIGKILL_S = 120.0
"""Seconds from SIGTERM to SIGKILL."""


@dataclass(frozen=True, slots=True)
class Life:
    """The future of a training. Durations are seconds."""

    starting_s: float = 180.0
    downloading_s: float = 30.0
    training_s: float = 600.0
    uploading_s: float = 20.0
    failure: str = ""
    """FailureReason: the job fails with it instead of uploading ..."""
    fails_while: str = "Training"
    """... or it fails at the end of `Starting` or `Downloading`."""
    interruptions: int = 0
    """Interruptions of managed spot, spread evenly over the training; each is followed by another start, which continues."""
    sigterm_s: float = 5.0
    """How long the container takes to end after SIGTERM; SIGKILL ends it after 120 s."""
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def ending_s(self) -> float:
        """Seconds from SIGTERM to the end, including the upload of the results."""
        return min(self.sigterm_s, SIGKILL_S) + self.uploading_s


class Planned(SageMaker):
    """Makes every training's states a function of time."""

    def __init__(self, region: str, clock: Clock, account: str = ACCOUNT) -> None:
        super().__init__(region, clock, account)
        self.life: Callable[[str], Life] = lambda _: Life()
        """Returns the future of the training of a name."""
        self.refusals: dict[str, str] = {}
        """ValidationException by training name: refusals that a plan could not foresee."""
        self._lives: dict[str, Life] = {}

    def prepared(self, request: dict[str, Any]) -> Begin:
        if message := self.refusals.get(request["TrainingJobName"]):
            raise invalid(message)
        return self._begin

    def _begin(self, training: Training) -> None:
        life = self._lives[training.name] = self.life(training.name)
        _plan(training, life)
        training.failure = life.failure
        _limit(training, life)
        _outcome(training, life)

    def end(self, training: Training, left: str) -> None:
        """Ends a training: one that trains gets SIGTERM, one that uploads finishes, one that is starting ends soon."""
        life, now = self._lives[training.name], training.ends_at
        uploads = next((one.at for one in training.timeline if one.secondary == "Uploading"), now)
        wait = {"Training": life.ending_s, "Uploading": uploads + life.uploading_s - now}
        training.enter("Stopped", now + wait.get(left, 5.0))
        _outcome(training, life)


def _plan(training: Training, life: Life) -> None:
    """Plans the states of a job that nobody stops."""
    at = training.created_at + life.starting_s
    if life.failure and life.fails_while == "Starting":
        return training.enter("Failed", at, life.failure)
    training.enter("Downloading", at)
    at += life.downloading_s
    if life.failure and life.fails_while == "Downloading":
        return training.enter("Failed", at, life.failure)
    for piece in range(life.interruptions, -1, -1):
        training.enter("Training", at)
        at += life.training_s / (life.interruptions + 1)
        if piece:
            training.enter("Interrupted", at)
            training.enter("Starting", at + 10)
            at += 10 + life.starting_s
    if life.failure:
        return training.enter("Failed", at, life.failure)
    training.enter("Uploading", at)
    return training.enter("Completed", at + life.uploading_s)


def _limit(training: Training, life: Life) -> None:
    """Ends a training that exceeds its time: it gets SIGTERM, uploads, and is Stopped."""
    steps = training.timeline
    began = next((one.at for one in steps if one.secondary == "Downloading"), steps[0].at)
    limits = [(began + training.limit("MaxRuntimeInSeconds"), "MaxRuntimeExceeded")]
    if training.spot:
        limits.append((steps[0].at + training.limit("MaxWaitTimeInSeconds"), "MaxWaitTimeExceeded"))
    at, why = min(limits)
    if at < training.ends_at:
        training.timeline = [one for one in steps if one.at <= at]
        training.enter("Stopping", at)
        training.enter(why, at + life.ending_s)


def _outcome(training: Training, life: Life) -> None:
    """Sets model and metrics of a training that has trained."""
    trained = any(one.secondary == "Training" for one in training.timeline)
    last: Step = training.timeline[-1]
    training.artifact = f"{training.output}/model.tar.gz" if trained and last.status != "Failed" else ""
    training.metrics = {name: (value, last.at) for name, value in life.metrics.items()} if trained else {}

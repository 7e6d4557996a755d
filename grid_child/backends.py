"""What a child needs of whatever trains its line."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex
from typing import Protocol

from contract.grid import Backend
from contract.records import LineFacts
from grid_child.clusters import ClusterLine
from grid_child.kubernetes import KubernetesLine
from grid_child.plan import Work
from grid_child.policy import SubmitAnswer
from grid_child.sagemaker import SageMakerLine
from grid_child.store import Home


class ChildBackend(Protocol):
    """The training of one line, by its name. Methods do not retry; they raise Trouble where a failure may pass, Unfit where a permission is
    missing."""

    service: str
    """Who answers, for a person."""

    def create(self) -> tuple[SubmitAnswer, str]:
        """Submits the training. Returns the answer and its message; never raises because of an answer, or a lost one."""

    def find(self) -> LineFacts | None:
        """Returns what is known of the training; None where there is none of that name."""

    def name_stranger(self, facts: LineFacts) -> str:
        """Returns in words whose training has the name; empty where it is this very line's."""

    def stop(self) -> None:
        """Has the training end. One that is over, or not there, is left as it is."""


SEAL_BYTES = 32
DESCRIBED_A_S = 5.0
"""Calls of DescribeExecution a second that a grid makes: half of what Step Functions gives an account in a small region (its quotas page:
a bucket of 250 to 300 calls, refilled with 10 to 15 a second), which the functions share."""


def backend_of(work: Work, home: Home, now: Callable[[], float]) -> ChildBackend:
    """Returns the backend that the line names. `now`: UTC epoch seconds."""
    match work.line.backend:
        case Backend.EC2:
            return ClusterLine(work, home, now)
        case Backend.KUBERNETES:
            return KubernetesLine(work, home, now, lambda: token_hex(SEAL_BYTES))
    return SageMakerLine(work)


def watch_s(work: Work, training_watch_s: float) -> float:
    """How often the child looks at a training that runs."""
    is_shared = work.line.backend is Backend.EC2
    return max(training_watch_s, work.beside / DESCRIBED_A_S) if is_shared else training_watch_s

"""The retries that the stack gives the states of the Train machine, as the property tests read them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from contract import errors
from contract.timing import Timing

LOST_HEARTBEAT = "States.HeartbeatTimeout"
KILLED = "Sandbox.Timedout"
THROTTLED = "Lambda.TooManyRequestsException"
LAMBDAS_OWN = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    THROTTLED,
    "Lambda.Unknown",
    "Runtime.ExitError",
    KILLED,
)
WAIT = "Wait for capacity"


@dataclass(frozen=True, slots=True)
class Retrier:
    """One entry of a state's Retry."""

    errors: frozenset[str]
    most: int
    interval_s: float = 1.0
    backoff: float = 1.0
    longest_s: float = math.inf
    jitter: bool = False
    """FULL: anything from nothing to the whole pause."""

    def fits(self, error: str) -> bool:
        wild = "States.TaskFailed" in self.errors and error != "States.Timeout"
        return wild or not self.errors.isdisjoint({error, "States.ALL"})

    def lasting(self, seconds: float) -> int:
        """How many pauses are so long in all, on the average."""
        waited, most = 0.0, 0
        while waited < seconds:
            whole = min(self.interval_s * self.backoff**most, self.longest_s)
            waited, most = waited + (whole / 2 if self.jitter else whole), most + 1
        return most

    def pause_s(self, used: int, chance: random.Random) -> float:
        whole = min(self.interval_s * self.backoff**used, self.longest_s)
        return chance.uniform(0.0, whole) if self.jitter else whole


def outliving(timing: Timing, function_s: float) -> tuple[Retrier, ...]:
    """Any error but a verdict is outlived, for the patience on the average; one after which the function may have run for its
    whole time, less often."""
    quick = Retrier(frozenset({"States.ALL"}), 0, interval_s=2.0, backoff=2.0, longest_s=60.0, jitter=True)
    slow = Retrier(
        frozenset({"States.Timeout", *LAMBDAS_OWN}) - {THROTTLED},
        0,
        interval_s=2.0,
        backoff=4.0,
        longest_s=function_s,
    )
    return (
        Retrier(frozenset(errors.BY_NAME) - {errors.CapacityPending.__name__}, 0),
        *(replace(one, most=one.lasting(timing.trouble_patience_s)) for one in (slow, quick)),
    )


def retriers(timing: Timing) -> dict[str, tuple[Retrier, ...]]:
    """Every state's Retry; a test of the stacks compares it with the synthesised machine."""
    return {
        "Launch": (
            Retrier(
                frozenset({errors.CapacityPending.__name__}),
                math.ceil(timing.launch_patience_s / timing.launch_again_s) + 5,
                interval_s=timing.launch_again_s,
            ),
            *outliving(timing, function_s=300.0),
        ),
        "Train": waiting_for_a_token(100, timing.heartbeat_s / 5),
        WAIT: waiting_for_a_token(60, 60.0),
        "Terminate": (
            Retrier(
                frozenset({"States.ALL"}),
                math.ceil(timing.terminate_patience_s / timing.terminate_again_s),
                interval_s=timing.terminate_again_s,
            ),
        ),
    }


def waiting_for_a_token(most: int, interval_s: float) -> tuple[Retrier, ...]:
    """Verdicts are final, a lost heartbeat is caught, and a function that fails says nothing."""
    troubles = Retrier(frozenset({*LAMBDAS_OWN, "States.TaskFailed"}), most, interval_s=interval_s)
    return Retrier(frozenset(errors.BY_NAME), 0), Retrier(frozenset({LOST_HEARTBEAT}), 0), troubles


def retriers_around(timing: Timing) -> dict[str, tuple[Retrier, ...]]:
    """Those of the steps before the launch and after the training, for which every answer of a function's own is a verdict."""
    final = Retrier(frozenset(errors.BY_NAME), 0)
    longer = replace(timing, trouble_patience_s=timing.sync_patience_s)
    return {
        "Admit": (final, *outliving(timing, function_s=180.0)[1:]),
        "Sync": (final, *outliving(longer, function_s=300.0)[1:]),
    }

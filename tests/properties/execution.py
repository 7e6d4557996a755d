"""The Train machine as a person reads it: Admit, Launch, Train, Sync, Terminate, Decide, with the retries that the stack gives them.

Its JSONata runs in the rehearsal. Here it is what brings the functions into every order that the real one can.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from contract import errors, patience
from contract.jobs import Job
from contract.timing import Timing
from tests.fakes.aws import Aws
from tests.fakes.executions import MACHINE
from tests.fakes.functions import Outcome
from tests.fakes.states import Wait

Answered = Callable[[Outcome], None]
Invoke = Callable[[str, dict[str, object], Answered], None]
"""Function, event, and what is to be called with the answer: at once, or once the function has ended."""
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
MENDABLE = {error.__name__ for error in errors.NEW_ATTEMPT}
WAIT = "Wait for capacity"
FUNCTION_OF = {
    "Admit": "admission",
    "Launch": "launcher",
    WAIT: "launcher",
    "Train": "attendant",
    "Sync": "artifact_check",
    "Terminate": "terminator",
}
ENDS = frozenset({"Done", "Failed", "Aborted"})


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


@dataclass
class Execution:
    """One execution of the machine, from its request to its end; one with an `admitted` job begins with its launch."""

    id: str
    aws: Aws
    invoke: Invoke
    timing: Timing
    admitted: Job | None = None
    request: Mapping[str, object] = field(default_factory=dict)
    started_at: float = 0.0
    state: str = ""
    attempt: int = 1
    problem: tuple[str, str] | None = None
    """Error and cause."""
    verdicts: dict[int, str] = field(default_factory=dict)
    """Attempt to the error with which it went to Terminate; empty where everything went well."""
    wait: Wait | None = None
    terminating: set[int] = field(default_factory=set)
    """Attempts for which Terminate was entered."""
    terminated: set[int] = field(default_factory=set)
    """Attempts for which Terminate succeeded."""
    launched: dict[int, tuple[str, ...]] = field(default_factory=dict)
    throttled: dict[str, float] = field(default_factory=dict)
    """Function to the time until which Lambda invokes it for nobody."""
    ended_at: float = math.inf
    judged: Callable[[], None] = lambda: None
    """Called when an attempt has its verdict."""
    ended: Callable[[], None] = lambda: None
    deadline: float = 0.0
    recoveries: int = 0
    wait_left_s: float = 0.0
    waits_until: float = 0.0
    transitions: int = 0
    events: int = 0
    """Of the history, as AWS counts them: two a state, and three a try of a task, four where it waits for a token."""
    _used: dict[Retrier, int] = field(default_factory=dict)
    """How often each retrier of the state at hand was used."""
    _chance: random.Random = field(default_factory=lambda: random.Random(0))
    _turn: int = 0
    _entered_at: float = 0.0
    """When the state at hand was; retries leave it as it is."""
    _running: Callable[[Outcome], None] | None = None

    def __post_init__(self) -> None:
        self._retriers = retriers(self.timing) | retriers_around(self.timing)

    @property
    def arn(self) -> str:
        return f"{MACHINE.replace(':stateMachine:', ':execution:')}:{self.id}"

    @property
    def over(self) -> bool:
        return self.state in ENDS

    def start(self) -> None:
        self.started_at = self.aws.clock.now
        if self.admitted:
            self.deadline, self.recoveries = self.admitted.deadline, self.admitted.recoveries
            self.wait_left_s = self.admitted.max_wait_hours * 3600
        self.state = "Launch" if self.admitted else "Admit"
        self._entered_at = self.aws.clock.now + 5.0
        self._soon(5.0, self._launch if self.admitted else self._admit)

    def stop(self) -> None:
        """A person stops it: no step of its own follows, and no Catch."""
        if not self.over:
            if self.wait is not None:
                self.wait.closed = True
            self._turn, self._running = self._turn + 1, None
            self._end("Aborted")

    def give_up(self, throttled_s: float = 0.0) -> None:
        """The running function's answer is lost on its way: the machine has its error and goes on, the function does too.

        For `throttled_s` the machine does not get through to that function again.
        """
        if self._running is not None:
            ends, self._running = self._running, None
            self._turn += 1
            self.throttle(FUNCTION_OF[self.state], throttled_s)
            ends(Outcome(error=KILLED, cause="the answer was lost"))

    def throttle(self, function: str, seconds: float) -> None:
        """Lambda invokes it for nobody, for so long."""
        self.throttled[function] = self.aws.clock.now + seconds

    def _run(self, name: str, event: dict[str, object], ends: Callable[[Outcome], None]) -> None:
        """Invokes a function; an answer that nobody waits for any more is dropped."""
        self._turn += 1
        self.events += 4 if "token" in event else 3
        turn, self._running = self._turn, ends

        def answered(outcome: Outcome) -> None:
            if turn == self._turn:
                self._running = None
                ends(outcome)

        if self.aws.clock.now < self.throttled.get(name, 0.0):
            answered(Outcome(error=THROTTLED, cause="Rate Exceeded."))
        else:
            self.invoke(name, event, answered)

    def _soon(self, seconds: float, action: Callable[[], None]) -> None:
        """Unless it is over by then."""
        self.aws.clock.at(self.aws.clock.now + seconds, lambda: None if self.over else action())

    def _enter(self, state: str, action: Callable[[], None]) -> None:
        self.state, self.wait, self._entered_at = state, None, self.aws.clock.now
        self._used.clear()
        self.transitions, self.events = self.transitions + 1, self.events + 2
        self._soon(0.05, action)

    def _failed(self, error: str, cause: str, again: Callable[[], None]) -> None:
        """The first retrier that fits, as often as it may; then the state's Catch."""
        retrier = next((one for one in self._retriers[self.state] if one.fits(error)), None)
        used = self._used.get(retrier, 0) if retrier else 0
        if retrier and used < retrier.most:
            self._used[retrier] = used + 1
            self.transitions += 1
            self._soon(retrier.pause_s(used, self._chance), again)
        elif self.state == "Admit":
            self.problem = (error, cause)
            self._end("Failed")
        elif self.state == "Terminate":
            self.problem = self.problem or (error, cause)
            self._end("Failed")
        elif self.state == "Launch" and error == errors.CapacityAwaited.__name__:
            self.waits_until = self.aws.clock.now + self.wait_left_s
            self._enter(WAIT, self._await)
        elif self.state == WAIT and error == LOST_HEARTBEAT:
            self._enter(WAIT, self._await)
        elif error == LOST_HEARTBEAT and self.aws.clock.now < self.deadline + self.timing.power_off_after_deadline_s:
            self._enter("Train", self._train)
        elif (
            self.state == "Train"
            and error in {LOST_HEARTBEAT, "States.Timeout"}
            and self.aws.clock.now >= self.deadline
        ):
            self.problem = (errors.DeadlineReached.__name__, cause)
            self._go_to_terminate()
        else:
            late = self.state == WAIT and error == "States.Timeout"
            self.problem = (errors.CapacityUnavailable.__name__ if late else error, cause)
            self._go_to_terminate()

    def _told(self, patience_s: float) -> dict[str, object]:
        """What a step tells its function of its patience."""
        entered = datetime.fromtimestamp(self._entered_at, UTC).isoformat()
        return {patience.FIELD: {patience.ENTERED_AT: entered, patience.SECONDS: patience_s}}

    def _admit(self) -> None:
        began = datetime.fromtimestamp(self.started_at, UTC).isoformat(timespec="milliseconds")
        execution = {"arn": self.arn, "name": self.id, "started_at": began.replace("+00:00", "Z")}
        told = self._told(self.timing.trouble_patience_s)
        self._run("admission", {"request": self.request, "execution": execution, **told}, self._after_admit)

    def _after_admit(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._admit)
        else:
            self.deadline, self.recoveries = outcome.value["deadline"], outcome.value["recoveries"]
            self.wait_left_s = outcome.value["wait_left_s"]
            self._enter("Launch", self._launch)

    def _launch(self) -> None:
        told = self._told(self.timing.launch_patience_s + self.timing.trouble_patience_s)
        self._run("launcher", {"job": self.id, "attempt": self.attempt, **told}, self._after_launch)

    def _after_launch(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._launch)
        else:
            self._go_on_with(outcome.value)

    def _go_on_with(self, launched: Mapping[str, Any]) -> None:
        self.launched[self.attempt] = tuple(launched["instances"])
        self.deadline, self.wait_left_s = launched["deadline"], launched["wait_left_s"]
        self._enter("Train", self._train)

    def _await(self) -> None:
        left = self.waits_until + 2 * (330 + 60) - self.aws.clock.now
        self._for_token(max(left, 330), self.timing.wait_heartbeat_s, self._await)

    def _train(self) -> None:
        left = self.deadline + self.timing.power_off_after_deadline_s - self.aws.clock.now
        self._for_token(max(left, self.timing.heartbeat_s + 1), self.timing.heartbeat_s, self._train)

    def _for_token(self, timeout_s: float, heartbeat_s: float, again: Callable[[], None]) -> None:
        """A new token with every try; the function keeps it, and its answer is none of the task's."""
        wait = self.aws.states.wait(heartbeat_s=heartbeat_s, timeout_s=timeout_s)
        wait.answered = lambda: self._soon(0.05, lambda: self._watch(wait))
        self.wait, action = wait, {"action": "token"} if self.state == "Train" else {}
        event: dict[str, object] = {"job": self.id, "attempt": self.attempt, "token": wait.token, **action}
        self._run(FUNCTION_OF[self.state], event, lambda outcome: self._after_keeping(wait, outcome, again))

    def _after_keeping(self, wait: Wait, outcome: Outcome, again: Callable[[], None]) -> None:
        if self.wait is not wait:
            return
        if outcome.error and wait.waits(self.aws.clock.now):
            wait.closed = True
            self._failed(outcome.error, outcome.cause, again)
        else:
            self._watch(wait)

    def _watch(self, wait: Wait) -> None:
        """Ends the wait when it was answered or its time is over; else looks again when its time may be over."""
        late = wait.timed_out(self.aws.clock.now)
        if self.wait is not wait or wait.closed:
            pass
        elif wait.output is not None and self.state == WAIT:
            self._go_on_with(wait.output)
        elif wait.output is not None:
            self._enter("Sync", self._sync)
        elif wait.error is not None or late:
            wait.closed = True
            self._failed(*(wait.error or (late, "")), self._await if self.state == WAIT else self._train)
        else:
            self.aws.clock.at(min(wait.until, wait.beaten_at + wait.heartbeat_s), lambda: self._watch(wait))

    def _sync(self) -> None:
        told = self._told(self.timing.sync_patience_s)
        self._run("artifact_check", {"job": self.id, "attempt": self.attempt, **told}, self._after_sync)

    def _after_sync(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._sync)
        else:
            self._go_to_terminate()

    def _go_to_terminate(self) -> None:
        self.verdicts[self.attempt] = self.problem[0] if self.problem else ""
        self.judged()
        self.terminating.add(self.attempt)
        self._enter("Terminate", self._terminate)

    def _terminate(self) -> None:
        problem = {"error": self.problem[0], "cause": self.problem[1]} if self.problem else None
        event: dict[str, object] = {"job": self.id, "attempt": self.attempt, "problem": problem}
        self._run("terminator", event, self._after_terminate)

    def _after_terminate(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._terminate)
        else:
            self.terminated.add(self.attempt)
            self._decide()

    def _decide(self) -> None:
        now = self.aws.clock.now
        self.transitions, self.events = self.transitions + 2, self.events + 4  # Decide, and an end
        if self.problem is None:
            self._end("Done")
        elif self.problem[0] in MENDABLE and self.attempt <= self.recoveries and now < self.deadline:
            self.attempt, self.problem = self.attempt + 1, None
            self._enter("Launch", self._launch)
        else:
            self._end("Failed")

    def _end(self, state: str) -> None:
        self.state, self.ended_at, self.wait = state, self.aws.clock.now, None
        self.ended()

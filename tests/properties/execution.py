"""The Train machine as a person reads it: Admit, Launch, Train, Sync, Terminate, Decide, with the retries that the stack gives them.

Its JSONata runs in the rehearsal. Here it is what brings the functions into every order that the real one can.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from contract import errors, patience
from contract.jobs import Job, Reaction
from contract.timing import Timing
from tests.fakes.aws import Aws
from tests.fakes.executions import MACHINE
from tests.fakes.functions import Outcome
from tests.fakes.states import Wait
from tests.properties.retrying import (
    KILLED,
    LOST_HEARTBEAT,
    THROTTLED,
    WAIT,
    Retrier,
    retriers,
    retriers_around,
)

Answered = Callable[[Outcome], None]
Invoke = Callable[[str, dict[str, object], Answered], None]
"""Function, event, and what is to be called with the answer: at once, or once the function has ended."""
MENDABLE = {error.__name__ for error in errors.NEW_ATTEMPT}
TAKEN = errors.Interrupted.__name__
HALF = errors.LaunchIncomplete.__name__
RETRIED, OWN = errors.RetriedExit.__name__, errors.TrainingFailed.__name__
FUNCTION_OF = {
    "Admit": "admission",
    "Launch": "launcher",
    WAIT: "launcher",
    "Train": "attendant",
    "Sync": "artifact_check",
    "Terminate": "terminator",
}
ENDS = frozenset({"Done", "Failed", "Aborted"})


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
    retries: int = 0
    """How many are left."""
    retried: bool = False
    """Whether the request wants another attempt after the problem."""
    lost: int = 0
    """Recoveries since an attempt committed a newer checkpoint."""
    step: int = -1
    """The highest of a checkpoint that was committed."""
    young: int = 0
    """Attempts in a row that died young."""
    launched_at: float = 0.0
    wait_left_s: float = 0.0
    waits_until: float = 0.0
    transitions: int = 0
    events: int = 0
    """Of the history, as AWS counts them: two a state, and three a try of a task, four where it waits for a token."""
    _left_in: str = ""
    """The state in which it was stopped."""
    _life: int = 0
    """Goes up with every redrive: what was due before is not due any more."""
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
            self.retries = self.admitted.retries.times
            self.wait_left_s = self.admitted.max_wait_hours * 3600
        self.late_error = errors.DeadlineReached.__name__
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

    def redrive(self, *, entered_anew: bool) -> None:
        """A person has it go on: in the state in which it was stopped, with what it knew then, its retries and its time-outs from the
        beginning; after a Fail state it only fails again. Whether its context then tells a new time of entering, nobody has said."""
        assert self.over
        assert self.state != "Done"
        self._life, self.ended_at, self.transitions = self._life + 1, math.inf, self.transitions + 1
        self._used.clear()
        again = {
            "Fail": lambda: self._end("Failed"),
            "Admit": self._admit,
            "Launch": self._launch,
            WAIT: self._await,
            "Train": self._train,
            "Sync": self._sync,
            "Terminate": self._terminate,
            "Pause": lambda: self._enter("Launch", self._launch),
        }
        self.state = "Fail" if self.state == "Failed" else self._left_in
        self._entered_at = self.aws.clock.now if entered_anew else self._entered_at
        self._soon(0.05, again[self.state])

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
        """Unless it is over by then, or was and is redriven."""
        life = self._life
        self.aws.clock.at(self.aws.clock.now + seconds, lambda: None if self.over or self._life != life else action())

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
            self.problem = (self.late_error, cause)
            self._go_to_terminate()
        else:
            late, self.retried = self.state == WAIT and error == "States.Timeout", error == RETRIED
            named = OWN if self.retried else error
            self.problem = (errors.CapacityUnavailable.__name__ if late else named, cause)
            self._go_to_terminate()

    def _build_event(self, patience_s: float) -> dict[str, object]:
        """What a step tells its function of its patience."""
        entered = datetime.fromtimestamp(self._entered_at, UTC).isoformat()
        return {patience.FIELD: {patience.ENTERED_AT: entered, patience.SECONDS: patience_s}}

    def _admit(self) -> None:
        began = datetime.fromtimestamp(self.started_at, UTC).isoformat(timespec="milliseconds")
        execution = {"arn": self.arn, "name": self.id, "started_at": began.replace("+00:00", "Z")}
        told = self._build_event(self.timing.trouble_patience_s)
        self._run("admission", {"request": self.request, "execution": execution, **told}, self._after_admit)

    def _after_admit(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._admit)
        else:
            self.deadline, self.recoveries = outcome.value["deadline"], outcome.value["recoveries"]
            self.retries = outcome.value["retries"]
            self.wait_left_s = outcome.value["wait_left_s"]
            self._enter("Launch", self._launch)

    def _launch(self) -> None:
        told = self._build_event(self.timing.launch_patience_s + self.timing.trouble_patience_s)
        self._run("launcher", {"job": self.id, "attempt": self.attempt, **told}, self._after_launch)

    def _after_launch(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._launch)
        else:
            self._go_on_with(outcome.value)

    def _go_on_with(self, launched: Mapping[str, Any]) -> None:
        self.launched[self.attempt] = tuple(launched["instances"])
        self.deadline, self.wait_left_s = launched["deadline"], launched["wait_left_s"]
        self.late_error = launched["late_error"]
        self.launched_at = self.aws.clock.now
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
        told = self._build_event(self.timing.sync_patience_s)
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
        event: dict[str, object] = {"job": self.id, "attempt": self.attempt, "problem": problem, "step": self.step}
        self._run("terminator", event, self._after_terminate)

    def _after_terminate(self, outcome: Outcome) -> None:
        if outcome.error:
            self._failed(outcome.error, outcome.cause, self._terminate)
        else:
            self.terminated.add(self.attempt)
            further, lived_s = outcome.value.get("progressed", False), self.aws.clock.now - self.launched_at
            self.step, self.lost = outcome.value.get("step", self.step), 0 if further else self.lost
            self.young = 0 if further or lived_s >= self.timing.recovery_longest_s else self.young + 1
            self._decide()

    def _decide(self) -> None:
        now = self.aws.clock.now
        self.transitions, self.events = self.transitions + 2, self.events + 4  # Decide, and an end
        if self.problem is None:
            self._end("Done")
        elif self.problem[0] in MENDABLE and self._may_recover() and not self._stays_stalled() and now < self.deadline:
            self.lost += self.problem[0] not in {TAKEN, HALF}
            self._go_on()
        elif self.retried and self.retries and now < self.deadline:
            self.retries -= 1
            self._go_on()
        else:
            self._end("Failed")

    def _may_recover(self) -> bool:
        taken = self.problem is not None and self.problem[0] == TAKEN
        half = self.problem is not None and self.problem[0] == HALF
        return self.lost < self.recoveries or half or (taken and self.recoveries > 0)

    def _stays_stalled(self) -> bool:
        """Whether its request wants it to end where it is stalled."""
        stall = self.request.get("stall")
        stops = isinstance(stall, Mapping) and stall["then"] == Reaction.STOP.value
        return stops and self.problem is not None and self.problem[0] == errors.Stalled.__name__

    def _go_on(self) -> None:
        """A new attempt, after a pause where the ones before died young."""
        longest_s = min(self.timing.recovery_longest_s, (self.deadline - self.aws.clock.now) / 2)
        pause_s = min(self.timing.recovery_pause_s * 2 ** (self.young - 1), longest_s) if self.young else 0.0
        self.attempt, self.problem, self.retried = self.attempt + 1, None, False
        self._enter("Pause", lambda: self._soon(math.floor(pause_s), lambda: self._enter("Launch", self._launch)))

    def _end(self, state: str) -> None:
        self._left_in = self.state
        self.state, self.ended_at, self.wait = state, self.aws.clock.now, None
        self.ended()

"""The Train machine as a person reads it: Launch, Train, Terminate, Decide, with the retries that the stack gives them.

Its JSONata runs in the rehearsal. Here it is what brings the functions into every order that the real one can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from contract import errors
from contract.jobs import Job
from tests.fakes.aws import Aws
from tests.fakes.functions import Outcome
from tests.fakes.states import Wait

Invoke = Callable[[str, dict[str, object]], Outcome]
KILLED = "Sandbox.Timedout"
SERVICE_RETRIES = 6
LOOKS = 20
MENDABLE = {error.__name__ for error in errors.NEW_ATTEMPT}


@dataclass
class Execution:
    """One execution of the machine, from its admitted job to its end."""

    job: Job
    aws: Aws
    invoke: Invoke
    state: str = "Launch"
    attempt: int = 1
    problem: tuple[str, str] | None = None
    wait: Wait | None = None
    terminating: set[int] = field(default_factory=set)
    """Attempts for which Terminate was entered."""
    terminated: set[int] = field(default_factory=set)
    """Attempts for which Terminate succeeded."""
    launched: dict[int, tuple[str, ...]] = field(default_factory=dict)
    ended_at: float = math.inf
    tries: dict[str, int] = field(default_factory=dict)
    """Of the state at hand: retrier to how often it was used."""
    _turn: int = 0
    _running: Callable[[Outcome], None] | None = None

    @property
    def over(self) -> bool:
        return self.state in {"Done", "Failed"}

    def start(self) -> None:
        self._soon(5.0, self._launch)

    def give_up(self) -> None:
        """The running function's answer is lost on its way: the machine has its error and goes on, the function does too."""
        if self._running is not None:
            ends, self._running = self._running, None
            self._turn += 1
            ends(Outcome(error=KILLED, cause="the answer was lost"))

    def _run(self, name: str, event: dict[str, object], ends: Callable[[Outcome], None]) -> None:
        """Invokes a function; an answer that nobody waits for any more is dropped."""
        self._turn += 1
        turn, self._running = self._turn, ends
        outcome = self.invoke(name, event)
        if turn == self._turn:
            self._running = None
            ends(outcome)

    def _soon(self, seconds: float, action: Callable[[], None]) -> None:
        self.aws.clock.at(self.aws.clock.now + seconds, action)

    def _enter(self, state: str, action: Callable[[], None]) -> None:
        self.state, self.tries, self.wait = state, {}, None
        self._soon(0.05, action)

    def _again(self, retrier: str, most: int, seconds: float, action: Callable[[], None]) -> bool:
        used = self.tries[retrier] = self.tries.get(retrier, 0) + 1
        if used > most:
            return False
        self._soon(seconds, action)
        return True

    def _retried(self, outcome: Outcome, action: Callable[[], None]) -> bool:
        """The second chances for Lambda's own troubles, a killed function among them."""
        used = self.tries.get(KILLED, 0)
        return outcome.error == KILLED and self._again(KILLED, SERVICE_RETRIES, 2.0 * 2**used, action)

    def _launch(self) -> None:
        self._run("launcher", {"job": self.job.id, "attempt": self.attempt}, self._after_launch)

    def _after_launch(self, outcome: Outcome) -> None:
        timing = self.job.timing
        if not outcome.error:
            self.launched[self.attempt] = tuple(outcome.value["instances"])
            self._enter("Train", self._train)
        elif outcome.error == errors.CapacityPending.__name__ and self._again(
            outcome.error,
            math.ceil(timing.launch_patience_s / timing.launch_again_s) + 5,
            timing.launch_again_s,
            self._launch,
        ):
            pass
        elif not self._retried(outcome, self._launch):
            self._catch(outcome.error, outcome.cause)

    def _train(self) -> None:
        """A new token with every try; the function keeps it, and its answer is none of the task's."""
        timing, now = self.job.timing, self.aws.clock.now
        left = self.job.deadline + timing.power_off_after_deadline_s - now
        wait = self.aws.states.wait(heartbeat_s=timing.heartbeat_s, timeout_s=max(left, timing.heartbeat_s + 1))
        wait.answered = lambda: self._soon(0.05, lambda: self._watch(wait))
        self.wait = wait
        event = {"door": "token", "job": self.job.id, "attempt": self.attempt, "token": wait.token}
        self._run("attendant", event, lambda outcome: self._after_look(wait, outcome))

    def _after_look(self, wait: Wait, outcome: Outcome) -> None:
        if self.wait is not wait:
            return
        if outcome.error and wait.waits(self.aws.clock.now):
            wait.closed = True
            if not self._retried(outcome, self._train):
                self._catch(outcome.error, outcome.cause)
            return
        self._watch(wait)

    def _watch(self, wait: Wait) -> None:
        """Ends the wait when it was answered or its time is over; else looks again when its time may be over."""
        late = wait.timed_out(self.aws.clock.now)
        if self.wait is not wait or wait.closed:
            pass
        elif wait.output is not None:
            self._go_to_terminate()
        elif wait.error is not None:
            self._catch(*wait.error)
        elif not late:
            self.aws.clock.at(min(wait.until, wait.beaten_at + wait.heartbeat_s), lambda: self._watch(wait))
        else:
            wait.closed = True
            if late != "States.HeartbeatTimeout" or not self._again(late, LOOKS, 1.0, self._train):
                self._catch(late, "")

    def _catch(self, error: str, cause: str) -> None:
        self.problem = (error, cause)
        self._go_to_terminate()

    def _go_to_terminate(self) -> None:
        self.terminating.add(self.attempt)
        self._enter("Terminate", self._terminate)

    def _terminate(self) -> None:
        problem = {"error": self.problem[0], "cause": self.problem[1]} if self.problem else None
        event = {"job": self.job.id, "attempt": self.attempt, "problem": problem}
        self._run("terminator", event, self._after_terminate)

    def _after_terminate(self, outcome: Outcome) -> None:
        timing = self.job.timing
        if not outcome.error:
            self.terminated.add(self.attempt)
            self._decide()
        elif outcome.error == errors.StillRunning.__name__ and self._again(
            outcome.error,
            math.ceil(timing.terminate_patience_s / timing.terminate_again_s),
            timing.terminate_again_s,
            self._terminate,
        ):
            pass
        elif not self._retried(outcome, self._terminate):
            self._end("Failed")

    def _decide(self) -> None:
        now = self.aws.clock.now
        if self.problem is None:
            self._end("Done")
        elif self.problem[0] in MENDABLE and self.attempt <= self.job.recoveries and now < self.job.deadline:
            self.attempt, self.problem = self.attempt + 1, None
            self._enter("Launch", self._launch)
        else:
            self._end("Failed")

    def _end(self, state: str) -> None:
        self.state, self.ended_at, self.wait = state, self.aws.clock.now, None

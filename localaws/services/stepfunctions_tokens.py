"""Task tokens of moto's interpreter: a token per attempt, early answers, heartbeats, and AWS's errors for dead tokens."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from moto.stepfunctions.exceptions import AWSError
from moto.stepfunctions.parser.api import (
    HistoryEventType,
    TaskTimedOutEventDetails,
)
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.state.exec.execute_state import ExecutionState
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import ResourceCondition
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import StateTaskService
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_callback import (
    StateTaskServiceCallback,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task import StateTask
from moto.stepfunctions.parser.asl.eval.callback.callback import (
    CallbackConsumerTimeout,
    CallbackEndpoint,
    CallbackOutcomeFailure,
    CallbackOutcomeSuccess,
    CallbackOutcomeTimedOut,
    CallbackPoolManager,
    HeartbeatTimedOut,
    HeartbeatTimeoutError,
)
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.responses import EmptyResult, StepFunctionResponse

if TYPE_CHECKING:
    from localaws.server import LocalAws


class Token(CallbackEndpoint):  # type: ignore[misc]
    """One wait of one attempt of a task. Dead once it is answered, has timed out, or its execution has ended."""

    def __init__(self, callback_id: str) -> None:
        super().__init__(callback_id=callback_id)
        self._changed = threading.Condition()
        self._beaten_at = time.monotonic()
        self._heartbeat_s: float | None = None
        self._interrupted = False

    def setup_heartbeat_endpoint(self, heartbeat_seconds: float) -> Token:
        self._heartbeat_s = heartbeat_seconds
        return self

    def notify(self, outcome: Any) -> None:
        """Takes the answer; moto loses an answer that comes before the wait begins."""
        with self._changed:
            self._outcome = outcome
            self.consumer_error = CallbackConsumerTimeout()
            self._changed.notify_all()

    def notify_heartbeat(self) -> bool:
        """Always returns true: moto refuses heartbeats before the wait begins."""
        with self._changed:
            self._beaten_at = time.monotonic()
            self._changed.notify_all()
        return True

    def interrupt_all(self) -> None:
        with self._changed:
            self._interrupted = True
            self.consumer_error = self.consumer_error or CallbackConsumerTimeout()
            self._changed.notify_all()

    def outcome(self, env: Any, timeout_s: float) -> Any:
        """Waits for the answer, a missing heartbeat, the time-out or the end of the execution."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._outcome is None and env.is_running() and not self._interrupted:
                silent_at = deadline if self._heartbeat_s is None else self._beaten_at + self._heartbeat_s
                left = min(deadline, silent_at) - time.monotonic()
                if left <= 0:
                    self.consumer_error = CallbackConsumerTimeout()
                    return HeartbeatTimedOut() if silent_at < deadline else None
                self._changed.wait(left)
            return self._outcome


def install(aws: LocalAws) -> None:
    """Replaces moto's waiting, its token for all attempts of a state, and the three SendTask calls."""
    aws.patch(CallbackPoolManager, "add", _add)
    aws.patch(StateTaskServiceCallback, "_eval_wait_for_task_token", _wait)
    aws.patch(StateTaskServiceCallback, "_eval_body", _evaluate_state)
    aws.wrap(ExecutionState, "_evaluate_with_timeout", _evaluate_with_token)
    aws.wrap(StateTask, "_from_error", _error_with_heartbeats)
    aws.patch(StepFunctionsParserBackend, "send_task_success", _send_success)
    aws.patch(StepFunctionsParserBackend, "send_task_failure", _send_failure)
    aws.patch(StepFunctionsParserBackend, "send_task_heartbeat", _send_heartbeat)
    aws.patch(StepFunctionResponse, "send_task_failure", _failure_with_cause)


def _add(self: Any, callback_id: str) -> Token:
    token = self._pool[callback_id] = Token(callback_id)
    return token


def _wait(_: Any, env: Any, timeout_seconds: float, callback_endpoint: Token, heartbeat_endpoint: object) -> Any:  # noqa: ARG001
    outcome = callback_endpoint.outcome(env, timeout_seconds)
    return outcome or CallbackOutcomeTimedOut(callback_id=callback_endpoint.callback_id)


def _evaluate_state(self: Any, env: Any) -> None:
    """Makes no token: moto makes the state's only token here; `_evaluate_with_token` makes one per attempt."""
    StateTaskService._eval_body(self, env)
    env.states.context_object.context_object_data.pop("Task", None)


def _evaluate_with_token(original: Any, state: Any, env: Any) -> None:
    waits = (
        isinstance(state, StateTaskServiceCallback) and state.resource.condition == ResourceCondition.WaitForTaskToken
    )
    if waits:
        env.callback_pool_manager.add(env.states.context_object.update_task_token())
    try:
        original(state, env)
    except Exception:
        # A stopped execution neither retries nor catches.
        if env.is_running():
            raise
    finally:
        if waits:
            token = env.states.context_object.context_object_data["Task"]["Token"]
            env.callback_pool_manager.get(token).interrupt_all()


def _error_with_heartbeats(original: Any, task: Any, env: Any, ex: Exception) -> Any:
    """Corrects the name of a lost heartbeat, which moto calls States.Timeout."""
    if not isinstance(ex, HeartbeatTimeoutError):
        return original(task, env=env, ex=ex)
    kind = StatesErrorNameType.StatesHeartbeatTimeout
    details = TaskTimedOutEventDetails(
        resourceType=task._get_sfn_resource_type(), resource=task._get_sfn_resource(), error=kind.to_name()
    )
    return FailureEvent(
        env=env,
        error_name=StatesErrorName(typ=kind),
        event_type=HistoryEventType.TaskTimedOut,
        event_details=EventDetails(taskTimedOutEventDetails=details),
    )


def _token(backend: Any, task_token: str) -> Token:
    """Returns a living token; raises AWS's errors for a dead one and for one that never existed."""
    for machine in list(backend.state_machines):
        for execution in list(machine.executions):
            env = execution.exec_worker and execution.exec_worker.env
            if env and (token := env.callback_pool_manager.get(task_token)):
                if token.consumer_error is not None:
                    raise AWSError("Task Timed Out: 'Provided task does not exist anymore'", "TaskTimedOut")
                return token  # type: ignore[no-any-return]
    raise AWSError("Invalid Token: 'Invalid token'", "InvalidToken")


def _send_success(self: Any, task_token: str, outcome: str) -> None:
    try:
        json.loads(outcome)
    except ValueError:
        raise AWSError("Invalid Output: 'Invalid Output'", "InvalidOutput") from None
    _token(self, task_token).notify(CallbackOutcomeSuccess(callback_id=task_token, output=outcome))


def _send_failure(self: Any, task_token: str, error: str | None = None, cause: str | None = None) -> None:
    _token(self, task_token).notify(CallbackOutcomeFailure(callback_id=task_token, error=error, cause=cause))


def _send_heartbeat(self: Any, task_token: str) -> None:
    _token(self, task_token).notify_heartbeat()


def _failure_with_cause(self: Any) -> Any:
    """Keeps the cause, which moto's API forgets."""
    error, cause = self._get_param("error"), self._get_param("cause")
    self.stepfunction_backend.send_task_failure(self._get_param("taskToken"), error=error, cause=cause)
    return EmptyResult()

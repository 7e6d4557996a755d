"""Step Functions: state machines from CloudFormation run in moto's interpreter with their role, and end when they are told to."""

from __future__ import annotations

import copy
import datetime
import json
import logging
import re
import sys
import threading
import uuid
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from moto.s3.models import s3_backends
from moto.stepfunctions import models
from moto.stepfunctions import responses as api
from moto.stepfunctions.parser.api import (
    ExecutionAbortedEventDetails,
    ExecutionStatus,
    ExecutionTimedOutEventDetails,
    HistoryEventType,
)
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager
from moto.stepfunctions.parser.asl.eval.program_state import ProgramStopped, ProgramTimedOut
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication, Execution
from moto.stepfunctions.parser.models import StepFunctionsParserBackend, stepfunctions_parser_backends

from localaws.services import stepfunctions_tokens, sync_tasks
from localaws.services.cloudformation_repairs import around_creation

if TYPE_CHECKING:
    from localaws.server import LocalAws

OF_STATES = Config(
    parameter_validation=False,
    retries={"total_max_attempts": 1},
    connect_timeout=30,
    read_timeout=100_000,
    max_pool_connections=64,
)
_LAST = {
    HistoryEventType.ExecutionSucceeded,
    HistoryEventType.ExecutionFailed,
    HistoryEventType.ExecutionAborted,
    HistoryEventType.ExecutionTimedOut,
}
_read_definition = AmazonStateLanguageParser.parse


@lru_cache(maxsize=64)
def _read_tree(definition: str) -> Any:
    """Reads a definition once. In moto every execution reads it anew, and one of 20 kB takes 0.07 s of processor time."""
    return _read_definition(definition)[1]


def parse(definition: str) -> tuple[EvalComponent, Any]:
    """Returns what an execution evaluates, which no other execution shares, and the tree, as moto's `parse` does."""
    tree = _read_tree(definition)
    return Preprocessor().visit(tree), tree


def install(aws: LocalAws) -> None:
    """Installs one back end for API and CloudFormation, with tokens, ends, roles and status events as in AWS, and states that wait for
    another execution."""
    aws.patch(AmazonStateLanguageParser, "parse", staticmethod(parse))
    aws.configure("stepfunctions", execute_state_machine=True)
    # CloudFormation writes into the back end that does not run machines.
    aws.patch(models, "stepfunctions_backends", stepfunctions_parser_backends)
    stepfunctions_tokens.install(aws)
    # The interpreter logs every error that a machine catches; the history already has these errors.
    interpreter = logging.getLogger("moto.stepfunctions")
    aws.patch(interpreter, "handlers", [logging.NullHandler()])
    aws.patch(interpreter, "propagate", False)
    _deployment(aws)
    _starts(aws)
    _ends(aws)
    _clients(aws)
    _status_events(aws)
    sync_tasks.install(aws, sync_tasks.CHILD)
    sync_tasks.install(aws, sync_tasks.CHILD_AS_TEXT)
    aws.recorder.interceptors.append(sync_tasks.answer_for_managed_rules)
    aws.at_stop(lambda: _end_all(aws))


def _deployment(aws: LocalAws) -> None:
    def attribute(original: Any, machine: Any, name: str) -> Any:
        return machine.arn if name == "Arn" else original(machine, name)

    around_creation(aws, models.StateMachine, seen=partial(_with_definition, aws.account))
    aws.wrap(models.StateMachine, "has_cfn_attr", lambda original, name: name == "Arn" or original(name))
    aws.wrap(models.StateMachine, "get_cfn_attribute", attribute)


def _with_definition(account: str, resource: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the properties with DefinitionString, from whichever form the template uses, with substitutions made."""
    whole = copy.deepcopy(dict(resource))
    properties = whole["Properties"]
    if place := properties.get("DefinitionS3Location"):
        found = s3_backends[account]["aws"].get_object(place["Bucket"], place["Key"])
        properties["DefinitionString"] = found.value.decode()
    elif "Definition" in properties:
        properties["DefinitionString"] = json.dumps(properties["Definition"])
    values = properties.get("DefinitionSubstitutions", {})
    properties["DefinitionString"] = re.sub(
        r"\$\{([A-Za-z0-9_.-]+)\}",
        lambda match: str(values.get(match[1], match[0])),
        properties.get("DefinitionString", ""),
    )
    return whole


def _starts(aws: LocalAws) -> None:
    turn = threading.Lock()

    def named(
        original: Any, backend: Any, machine: str, name: str | None = None, given: str | None = None, *rest: Any
    ) -> Any:
        """Gives an execution its own name: moto names every nameless execution alike, and lets two callers with one name both be first."""
        name = name or str(uuid.uuid4())
        backend._validate_name(name)
        with turn:
            return original(backend, machine, name, given, *rest)

    aws.wrap(StepFunctionsParserBackend, "start_execution", named)


def _ends(aws: LocalAws) -> None:
    turn = threading.RLock()

    def stopped(original: Any, env: Any, *given: Any, **how: Any) -> None:
        original(env, *given, **how)
        if over := getattr(env, "over", None):
            over.set()

    def added(original: Any, manager: Any, context: Any, event_type: Any, *rest: Any, **more: Any) -> int:
        """Adds no event after an execution's last one, whatever its threads are still doing."""
        with turn:
            if getattr(manager, "closed", False):
                return 0
            manager.closed = event_type in _LAST
            return int(original(manager, context, event_type, *rest, **more))

    def stop(self: Any) -> Any:
        execution = self.stepfunction_backend.describe_execution(self._get_param("executionArn"))
        execution.stop(stop_date=_now(), error=self._get_param("error"), cause=self._get_param("cause"))
        return api.ActionResult({"stopDate": execution.stop_date or _now()})

    def stop_execution(self: Any, stop_date: Any, error: str | None, cause: str | None) -> None:
        self.began.wait(5)
        if self.exec_status == ExecutionStatus.RUNNING:
            self.exec_worker.stop(stop_date=stop_date, cause=cause, error=error)
            self.ended.wait(5)

    aws.wrap(Environment, "set_stop", stopped)
    aws.wrap(EventManager, "add_event", added)
    aws.patch(Program, "eval", _run_program)
    aws.patch(api.StepFunctionResponse, "stop_execution", stop)
    aws.wrap(api.StepFunctionResponse, "describe_execution", _describe_with_its_end)
    aws.patch(Execution, "stop", stop_execution)
    # Class attributes, so that an execution has them from its first moment; `_status_events` replaces them by its own.
    aws.patch(Execution, "began", threading.Event())
    aws.patch(Execution, "ended", threading.Event())


def _describe_with_its_end(original: Any, call: Any) -> Any:
    answer = original(call)
    execution = call.stepfunction_backend.describe_execution(call._get_param("executionArn"))
    if execution.stop_date:  # moto omits it for TIMED_OUT
        answer._result["stopDate"] = execution.stop_date
    if execution.exec_status == ExecutionStatus.SUCCEEDED:
        answer._result["output"] = _output(execution)
    return answer


def _output(execution: Any) -> str:
    """Returns the output as AWS writes it; moto writes text without its quotes."""
    return json.dumps(execution.output, separators=(",", ":"))


def _run_program(self: Any, env: Any) -> None:
    """Returns when the execution has ended for its owner; moto waits for a running task."""
    env.over = over = threading.Event()
    env.next_state_name = self.start_at.start_at_name

    def work() -> None:
        try:
            EvalComponent.eval(self, env)
        finally:
            over.set()

    threading.Thread(target=work, daemon=True).start()
    if not over.wait(self.timeout_seconds.timeout_seconds if self.timeout_seconds else None):
        env.set_timed_out()
    if env.is_frame():
        return
    state = env.program_state()
    if isinstance(state, ProgramStopped):
        details = ExecutionAbortedEventDetails(
            **{k: v for k, v in (("error", state.error), ("cause", state.cause)) if v}
        )
        env.event_history_context.source_event_id = 0
        env.event_manager.add_event(
            env.event_history_context,
            HistoryEventType.ExecutionAborted,
            EventDetails(executionAbortedEventDetails=details),
        )
    elif isinstance(state, ProgramTimedOut):
        env.event_manager.add_event(
            env.event_history_context,
            HistoryEventType.ExecutionTimedOut,
            EventDetails(executionTimedOutEventDetails=ExecutionTimedOutEventDetails()),
        )
    for token in list(env.callback_pool_manager._pool.values()):
        token.interrupt_all()


def _clients(aws: LocalAws) -> None:
    def client(region: str, service: str, state_credentials: Any = None) -> Any:
        """Returns one signed client per service, region and role; moto makes an unsigned one per call."""
        role = state_credentials.role_arn if state_credentials else ""
        return aws.client(service, region, role=role, throttled=False, config=OF_STATES)

    for name, module in list(sys.modules.items()):
        if name.startswith("moto.stepfunctions.") and hasattr(module, "boto_client_for"):
            aws.patch(module, "boto_client_for", client)


def _status_events(aws: LocalAws) -> None:
    def emit(execution: Any) -> None:
        change, arns = "Step Functions Execution Status Change", [execution.execution_arn]
        aws.emit("aws.states", change, _detail(execution), arns, execution.region_name)

    def started(original: Any, execution: Any) -> None:
        execution.began, execution.ended = threading.Event(), threading.Event()
        original(execution)
        emit(execution)
        threading.Thread(target=_until_it_runs, args=(execution,), daemon=True).start()

    def ended(original: Any, worker: Any) -> None:
        original(worker)
        execution = worker.execution
        state = execution.exec_worker.env.program_state()
        if isinstance(state, ProgramStopped):
            execution.error, execution.cause = state.error, state.cause
        execution.ended.set()
        emit(execution)

    aws.wrap(Execution, "start", started)
    aws.wrap(BaseExecutionWorkerCommunication, "terminated", ended)


def _until_it_runs(execution: Any) -> None:
    """Waits until the execution's environment has a program, because it can only be stopped then."""
    while not execution.ended.wait(0.002):
        env = execution.exec_worker.env
        if env and env.is_running():
            break
    execution.began.set()


def _detail(execution: Any) -> dict[str, Any]:
    output = _output(execution) if execution.exec_status == ExecutionStatus.SUCCEEDED else None
    return {
        "executionArn": execution.execution_arn,
        "stateMachineArn": execution.state_machine_arn,
        "name": execution.name,
        "status": execution.status,
        "startDate": _milliseconds(execution.start_date),
        "stopDate": _milliseconds(execution.stop_date),
        "input": execution.execution_input,
        "output": output,
        "stateMachineVersionArn": None,
        "stateMachineAliasArn": None,
        "redriveCount": 0,
        "redriveDate": None,
        "redriveStatus": "NOT_REDRIVABLE",
        "inputDetails": {"included": True},
        "outputDetails": {"included": True} if output is not None else None,
        "error": execution.error,
        "cause": execution.cause,
    }


def _milliseconds(moment: datetime.datetime | None) -> int | None:
    return int(moment.timestamp() * 1000) if moment else None


def _now() -> datetime.datetime:
    return datetime.datetime.now(tz=datetime.timezone.utc)


def _end_all(aws: LocalAws) -> None:
    """Ends all executions with their AWS."""
    for backend in list(stepfunctions_parser_backends[aws.account].values()):
        for execution in backend._get_executions():
            if execution.exec_status == ExecutionStatus.RUNNING:
                execution.stop(stop_date=_now(), error=None, cause="the local AWS stops")

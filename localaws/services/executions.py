"""ListExecutions (pages, a little behind), and the fault that stops executions in a state."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult
from moto.stepfunctions.parser.models import stepfunctions_parser_backends
from moto.stepfunctions.responses import StepFunctionResponse

from localaws.conditions import EXECUTION

if TYPE_CHECKING:
    from localaws.server import LocalAws

FAULT = "abort-in-state"
LOOK_S = 0.05
MOST = 100
"""Entries of a page where the caller names no number."""
RUNNING = "RUNNING"


def install(aws: LocalAws) -> None:
    aws.patch(StepFunctionResponse, "list_executions", lambda call: _list(aws, call))
    aws.later(0, lambda: _stop_some(aws))


def _list(aws: LocalAws, call: Any) -> Any:
    """Lists the newest first, as of a moment ago: a new execution may be missing, and an ended one may still be shown as running."""
    machine, wanted = call._get_param("stateMachineArn"), call._get_param("statusFilter")
    found = call.stepfunction_backend.describe_state_machine(machine).executions
    asked_at = datetime.datetime.now(tz=datetime.timezone.utc)
    seen_at = asked_at - datetime.timedelta(seconds=aws.conditions.scaled(aws.conditions.list_delay_s, aws.chance))
    shown = [_shown(one, seen_at) for one in reversed(found)]
    if token := call._get_param("nextToken"):  # of a page that may have been of a later moment than this one
        shown = shown[[one["executionArn"] for one in shown].index(token) + 1 :]
    fitting = [one for one in shown if one["startDate"] <= seen_at and wanted in (None, one["status"])]
    size = min(int(call._get_param("maxResults") or MOST), aws.conditions.page_size)
    more = fitting[size - 1]["executionArn"] if len(fitting) > size else None
    return ActionResult({"executions": fitting[:size], "nextToken": more})


def _shown(execution: Any, seen_at: datetime.datetime) -> dict[str, Any]:
    ended = execution.stop_date is not None and execution.stop_date <= seen_at
    return {
        "executionArn": execution.execution_arn,
        "stateMachineArn": execution.state_machine_arn,
        "name": execution.name,
        "status": execution.status if ended else RUNNING,
        "startDate": execution.start_date,
        **({"stopDate": execution.stop_date} if ended else {}),
    }


def _stop_some(aws: LocalAws) -> None:
    """Applies the fault `abort-in-state`: stops each matching execution once, `after` so long in the state."""
    struck, met, known = set[tuple[str, str]](), dict[str, list[Any]](), None
    while not aws.stopping.wait(LOOK_S):
        if aws.conditions.faults is not known:
            known = aws.conditions.faults
            faults = [fault for fault in known if fault.name == FAULT]
            met.clear()
        for execution in _running(aws.account) if faults else ():
            arn = execution.execution_arn
            if arn not in met:
                met[arn] = [fault for fault in faults if fault.meets({EXECUTION: execution.name})]
            for fault in met[arn]:
                mark = (arn, fault.text("state"))
                if mark not in struck and _state(execution) == mark[1]:
                    struck.add(mark)
                    aws.later(fault.seconds("after") / aws.conditions.speed, partial(_stop, aws, mark[0]))


def _stop(aws: LocalAws, arn: str) -> None:
    states = aws.client("stepfunctions", arn.split(":")[3])
    states.stop_execution(executionArn=arn, error="Stopped", cause="the rehearsal was asked to stop it in this state")


def _running(account: str) -> Iterator[Any]:
    for backend in list(stepfunctions_parser_backends[account].values()):
        for machine in list(backend.state_machines):
            yield from [one for one in list(machine.executions) if one.exec_status and one.status == RUNNING]


def _state(execution: Any) -> str:
    """Returns the state that it entered last; empty before the first."""
    worker = execution.exec_worker
    events = worker.env.event_manager.get_event_history() if worker and worker.env else []
    entered = [one["stateEnteredEventDetails"]["name"] for one in list(events) if "stateEnteredEventDetails" in one]
    return str(entered[-1]) if entered else ""

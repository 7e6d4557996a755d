"""Says what an execution of the Train machine means as a line of a grid, in the words that all backends share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contract import keys, names
from contract.errors import DeadlineReached, InvalidRequest, TrainingFailed
from contract.grid import Grid, GridLine, Line, LineOutcome
from contract.links import Console
from contract.metric_values import DIVERGED, MOST, describe_values
from contract.records import LineFacts, to_epoch
from contract.reports import NOT_BEGUN

RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED = "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"
_ENDS = {
    ABORTED: ("Aborted", "The execution was stopped without a reason."),
    TIMED_OUT: ("TimedOut", "The execution ran longer than its state machine allows."),
    FAILED: ("Failed", "The execution failed, and Step Functions gives no reason."),
    "GONE": ("Gone", "Step Functions no longer has the execution."),
}
"""Status to the error and cause of an execution for which Step Functions gives neither."""
METRIC = "metric"
"""Name of the value that a job's PROGRESS_FILE has."""
REPORTED_S = 1800.0
"""How long after an execution's end its report is waited for. The cleanup writes it once no instance of the job runs, which takes minutes;
where it cannot prove that, people get a letter and an alarm."""


BEFORE_END_S = 60.0
"""An execution ends so soon after Terminate has written the report."""


def explain_end(status: str, error: str, cause: str) -> tuple[str, str]:
    """Returns error and cause of an execution that did not succeed, in words where Step Functions gives none."""
    known = _ENDS.get(status, _ENDS[FAILED])
    return error or known[0], cause or known[1]


ENDED_BY = "GridEnded"
"""Error of an execution that its grid stops."""
ENDED_CAUSE = "The grid of this line has ended."


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the home bucket has of an execution's job."""

    is_admitted: bool
    """Whether there is a job.json: without one nothing was launched."""
    report: Mapping[str, Any] | None = None
    """The report.json; None where there is none, or where it cannot be read."""


MARK = "grid_line"
"""The field of a request by which an execution is a line's."""


def is_marked(line: Line, grid: Grid) -> bool:
    """Whether the input of the line's execution names the line and its grid: without that it could be another's."""
    return _read_input(line.request.get("input")).get(MARK) == {"execution": grid.execution, "index": line.index}


def read_mark(given: str) -> GridLine | None:
    """Returns the line that the input of an execution names; None where it names none."""
    mark = _member(_read_input(given), MARK)
    execution, index = mark.get("execution"), mark.get("index")
    if not isinstance(execution, str) or isinstance(index, bool) or not isinstance(index, int):
        return None
    return GridLine(execution=execution, index=index)


def address_execution(line: Line) -> str:
    """Returns the ARN of the line's execution."""
    machine = str(line.request["stateMachineArn"])
    return f"{machine.replace(':stateMachine:', ':execution:')}:{line.training}"


def needs_evidence(answer: Mapping[str, Any]) -> bool:
    """Whether a DescribeExecution answer alone does not tell how the execution ended."""
    return answer["status"] not in {RUNNING, SUCCEEDED}


def describe_execution(line: Line, answer: Mapping[str, Any], evidence: Evidence | None, *, now: float) -> LineFacts:
    """Returns the facts of a DescribeExecution answer. `evidence` is needed where `needs_evidence` says so.

    An execution that was stopped has ended once its job's report says so: instances of it may run until then.
    """
    status, arn = str(answer["status"]), str(answer["executionArn"])
    began, over = to_epoch(answer["startDate"]), to_epoch(answer.get("stopDate"))
    base = {"arn": arn, "detail": status, "submitted_at": began, "log": link_to_log(line, arn)}
    if status == RUNNING:
        return LineFacts(status="InProgress", region=line.region, **base)
    if status == SUCCEEDED:
        return _describe_success(line, _read_input(answer.get("output")), base, over)
    error, cause = explain_end(status, str(answer.get("error") or ""), str(answer.get("cause") or ""))
    assert evidence is not None, "a stopped or failed execution needs evidence"
    report = evidence.report if _covers(evidence.report, error, over) else None
    waits = over is not None and now < over + REPORTED_S
    if evidence.is_admitted and report is None and waits:
        return LineFacts(status="Stopping", region=line.region, said=f"{error}: {cause}", **base)
    outcome = LineOutcome.STOPPED if status == ABORTED else LineOutcome.FAILED
    if error == InvalidRequest.__name__ and not evidence.is_admitted:
        outcome = LineOutcome.REFUSED
    told = report or {}
    cost = told.get("cost") if evidence.is_admitted else {"usd_at_most": 0.0, "billed_s": 0.0}
    where = where_to_look(line, arn) if evidence.is_admitted else f"The execution is {arn}."
    return LineFacts(
        status="Stopped" if outcome is LineOutcome.STOPPED else "Failed",
        region=_region_of(told) or line.region,
        outcome=outcome,
        reason=_as_text(f"{error}: {' '.join(cause.split()).rstrip('.')}. {where}"),
        own_failure=_is_own_failure(error, cause, told),
        ended_at=over,
        seconds=None if began is None or over is None else round(max(0.0, over - began), 3),
        **_costs(cost),
        **base,
    )


def _is_own_failure(error: str, cause: str, report: Mapping[str, Any]) -> bool:
    """Whether the job's own command ended it, or ran for all of its hours: hours that lost nodes took say nothing of the command."""
    if error == TrainingFailed.__name__:
        return NOT_BEGUN not in cause.partition("\n")[0]
    return error == DeadlineReached.__name__ and report.get("attempts") == 1


def is_of_end(report: Mapping[str, Any], over: float | None) -> bool:
    """Whether a report was written when the execution was about to end, or later: then it is not one of an earlier attempt, or of an end
    before a redrive. Reports of older versions do not say when they were written."""
    at = report.get("ended_at")
    return at is None or over is None or (isinstance(at, (int, float)) and at >= over - BEFORE_END_S)


def _covers(report: Mapping[str, Any] | None, error: str, over: float | None) -> bool:
    return report is not None and report.get("error") == error and is_of_end(report, over)


def _describe_success(line: Line, output: Mapping[str, Any], base: Mapping[str, Any], over: float | None) -> LineFacts:
    began = base["submitted_at"]
    return LineFacts(
        status="Completed",
        region=str(output.get("region") or line.region),
        outcome=LineOutcome.COMPLETED,
        artifact=_address_artifacts(line, base["arn"], output),
        metrics=_metrics(_member(output, "progress")),
        metric_problems=_describe_metric(_member(output, "progress")),
        ended_at=over,
        seconds=None if began is None or over is None else round(max(0.0, over - began), 3),
        **_costs(output.get("cost")),
        **base,
    )


def deployment_of(arn: str) -> str:
    """Returns the deployment whose Train machine the execution is of."""
    return arn.split(":")[6].removesuffix(names.machine(""))


def link_to_log(line: Line, arn: str) -> str:
    """Returns the console's address of what all nodes of the line's job write."""
    console = Console(arn.split(":")[1], arn.split(":")[3])
    return console.streams(names.log_group(deployment_of(arn)), f"{line.training}/")


def where_to_look(line: Line, arn: str) -> str:
    """Returns one sentence: the log group and its streams, and the report."""
    logs = f"{names.log_group(deployment_of(arn))} in {arn.split(':')[3]}, streams {line.training}/"
    return f"Logs: {logs}; report: {keys.JobPrefix(line.training).result} in the home bucket."


def _address_artifacts(line: Line, arn: str, output: Mapping[str, Any]) -> str:
    """Returns the folder of all ranks' artifacts, in the region of the last attempt; empty where there are none."""
    if not _member(output, "artifacts").get("artifacts"):
        return ""
    region = str(output.get("region") or line.region)
    bucket = names.bytes_bucket(deployment_of(arn), arn.split(":")[4], region)
    return f"s3://{bucket}/{keys.BytesPrefix(line.training).artifacts}"


def read_report(body: bytes | None) -> Mapping[str, Any] | None:
    """Returns the content of a report.json; None where it is none."""
    try:
        found = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _as_text(words: str) -> str:
    """Returns the words without halves of surrogate pairs, which no document takes."""
    return words.encode("utf-8", "replace").decode()


def _read_input(text: object) -> Mapping[str, Any]:
    """Returns the object in the input or the output of an execution; an empty one where there is none."""
    try:
        found = json.loads(text) if isinstance(text, str) and text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _member(output: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = output.get(name)
    return found if isinstance(found, dict) else {}


def _metrics(progress: Mapping[str, Any]) -> dict[str, float]:
    found = _number(progress.get("metric"))
    return {} if found is None else {METRIC: found}


def _describe_metric(progress: Mapping[str, Any]) -> dict[str, str]:
    """Says why a job's metric has no value; empty where it has one, or the training told of none. The output has a node's words."""
    word, number = progress.get("diverged"), progress.get(METRIC)
    if word in DIVERGED:
        number = float(str(word))
    return describe_values({METRIC: number}) if isinstance(number, float) else {}


def _costs(cost: object) -> dict[str, Any]:
    """Returns what the instances cost at most, and how long they ran; None where that is not known."""
    known = cost if isinstance(cost, Mapping) else {}
    usd, billed = known.get("usd_at_most"), known.get("billed_s")
    return {"cost_usd": _number(usd), "billable_seconds": _number(billed)}


def _number(value: object) -> float | None:
    """Returns a finite number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -MOST < value < MOST:
        return None
    return float(value)


def _region_of(report: Mapping[str, Any]) -> str:
    """Returns the region of the newest launch that a report names, empty where it names none."""
    launches = report.get("launches")
    known = [one for one in launches if isinstance(one, dict)] if isinstance(launches, list) else []
    found = [str(one.get("region") or "") for one in known if one.get("instances")]
    return found[-1] if found else ""

"""Says what SageMaker's description of a line's training means, in the words that all backends share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contract.grid import Line, LineOutcome
from contract.links import Console
from contract.metric_values import describe_values, keep_values
from contract.records import LineFacts, to_epoch

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
"""Log group of SageMaker trainings, in the training's region; SageMaker sets its name."""
_OUTCOMES = {"Completed": LineOutcome.COMPLETED, "Failed": LineOutcome.FAILED, "Stopped": LineOutcome.STOPPED}
_FAILURES = {
    "AlgorithmError": "the training's own code or container ended with an error",
    "ClientError": "SageMaker could not run the line as it is: its data, image, role or parameters do not fit",
    "InternalServerError": "SageMaker itself failed, not the training; the line can be started again",
    "CapacityError": "SageMaker found no machines of this type; start the line again later, elsewhere or on another type",
    "ResourceLimitExceeded": "the account's quota of machines of this type is used up",
}
"""Meaning of the word before the colon of a FailureReason."""
_LOGGED = frozenset({"AlgorithmError", "ClientError"})
"""Failures that the training's own log can explain further."""
_OUT_OF_MEMORY = "more memory"
"""Stands in the ClientError of a container that was ended because its machine had no memory left."""
_TOO_SLOW = "MaxRuntimeExceeded"
_STOPS = {
    _TOO_SLOW: "reached the longest time of its line (MaxRuntimeInSeconds {runtime}) and was stopped",
    "MaxWaitTimeExceeded": "reached the longest wait for spot machines (MaxWaitTimeInSeconds {wait}) and was stopped",
    "Interrupted": "lost its spot machines and was not started again",
}
"""Reason by the last secondary status of a Stopped training; any other status means that a call stopped it."""


def describe_training(line: Line, answer: Mapping[str, Any]) -> LineFacts:
    """Returns the facts of a DescribeTrainingJob answer. Times may be datetimes, as boto3 makes them, or UTC epoch seconds."""
    began, over = to_epoch(answer.get("TrainingStartTime")), to_epoch(answer.get("TrainingEndTime"))
    status, arn = str(answer["TrainingJobStatus"]), str(answer.get("TrainingJobArn", ""))
    outcome = _OUTCOMES.get(status)
    billable = _billable(answer, began, over)
    transitions = answer.get("SecondaryStatusTransitions") or [{}]
    metrics = {one["MetricName"]: float(one["Value"]) for one in answer.get("FinalMetricDataList") or []}
    return LineFacts(
        status=status,
        arn=arn,
        region=line.region,
        detail=str(answer.get("SecondaryStatus", status)),
        said=str(answer.get("FailureReason") or transitions[-1].get("StatusMessage") or ""),
        outcome=outcome,
        reason="" if outcome in {None, LineOutcome.COMPLETED} else reason_of(line, answer),
        own_failure=None if outcome in {None, LineOutcome.COMPLETED} else _is_own_failure(answer),
        seconds=None if began is None or over is None else round(max(0.0, over - began), 3),
        billable_seconds=billable,
        cost_usd=cost(line, billable),
        artifact=(answer.get("ModelArtifacts") or {}).get("S3ModelArtifacts", ""),
        metrics=keep_values(metrics),
        metric_problems=describe_values(metrics),
        submitted_at=to_epoch(answer.get("CreationTime")),
        ended_at=over if over is not None else to_epoch(answer.get("LastModifiedTime")),
        log=link_to_log(line, arn),
    )


def link_to_log(line: Line, arn: str) -> str:
    """Returns the console's address of the training's log; empty for a training that never was."""
    partition = arn.split(":")[1] if arn.count(":") > 1 else ""
    return Console(partition, line.region).streams(LOG_GROUP, f"{line.training}/") if partition else ""


def reason_of(line: Line, answer: Mapping[str, Any]) -> str:
    """Says why a training did not complete, in words for a person that include SageMaker's own, and where to look."""
    if answer["TrainingJobStatus"] == "Stopped":
        return f"{line.training} {_stop(line, answer)}. {where_to_look(line)}"
    said = " ".join(str(answer.get("FailureReason") or "").split())
    kind = said.partition(":")[0].strip()
    if not said:
        return f"SageMaker says Failed and gives no reason. {where_to_look(line)}"
    meaning = _FAILURES.get(kind)
    words = f"{meaning[0].upper()}{meaning[1:]}. SageMaker: {said}" if meaning else f"SageMaker: {said}"
    return words if meaning and kind not in _LOGGED else f"{words.rstrip('.')}. {where_to_look(line)}"


def _is_own_failure(answer: Mapping[str, Any]) -> bool:
    """Whether the training's own code ended it, for want of memory too, or ran for longer than its line allows."""
    if answer["TrainingJobStatus"] == "Stopped":
        return answer.get("SecondaryStatus") == _TOO_SLOW
    kind, _, said = str(answer.get("FailureReason") or "").partition(":")
    return kind.strip() == "AlgorithmError" or (kind.strip() == "ClientError" and _OUT_OF_MEMORY in said)


def _stop(line: Line, answer: Mapping[str, Any]) -> str:
    condition = line.request.get("StoppingCondition", {})
    words = _STOPS.get(answer.get("SecondaryStatus", ""), "was stopped before it completed")
    return words.format(
        runtime=condition.get("MaxRuntimeInSeconds", "of SageMaker's default"),
        wait=condition.get("MaxWaitTimeInSeconds", "of SageMaker's default"),
    )


def where_to_look(line: Line) -> str:
    """Returns one sentence: the log group, the beginning of the streams' names, the region."""
    return f"Logs: {LOG_GROUP} in {line.region}, streams {line.training}/."


def cost(line: Line, billable_seconds: float | None) -> float | None:
    """Returns US dollars, None where the price or the time is unknown.

    SageMaker's billable seconds are wall-clock seconds, billed for every instance. A line's price is the on-demand price of all
    of its instances together; spot savings are in the seconds.
    """
    if billable_seconds == 0:
        return 0.0
    if billable_seconds is None or line.hourly_usd is None:
        return None
    return round(billable_seconds * line.hourly_usd / 3600, 6)


def _billable(answer: Mapping[str, Any], began: float | None, over: float | None) -> float | None:
    """SageMaker bills from a training's start to its end; one that never started is not billed at all."""
    if (said := answer.get("BillableTimeInSeconds")) is not None:
        return float(said)
    if began is None:
        return 0.0
    return None if over is None or answer.get("EnableManagedSpotTraining") else max(0.0, over - began)

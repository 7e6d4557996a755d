"""Says what an MPIJob and its pods mean as a line of a grid, in the words that all backends share."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract import tags
from contract.grid import Grid, Line, LineOutcome
from contract.links import Console
from contract.mpi_job import ENDED_FOR, JOB_ROLE, SAVED_S, TRAINING, WORKER, count_nodes, read_begin, read_marks
from contract.pod_files import LOG, PodResult
from contract.records import LineFacts
from contract.training_facts import cost

PLACED_S = 3600.0
"""How long a job may wait for machines. What has come of them meanwhile is paid for."""
LAUNCHED_S = 600.0
"""How long a launcher may not be there when every worker is ready."""
STUCK = frozenset({"InvalidImageName", "CreateContainerConfigError", "CreateContainerError"})
"""Reasons for which a container waits that do not pass by themselves."""
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff"})
"""Reasons that a registry's throttle has too. The kubelet pulls again, half a dozen times in PULLED_S."""
PULLED_S = 600.0
"""How long a pod may fail to pull an image from when it could."""
READY = "Ready"
"""The condition of a pod whose containers run."""
PULLS = ("PodScheduled", "Initialized")
"""Conditions of a pod whose times say since when it pulls: a training's image comes after the helper has brought the data."""
LIVE = frozenset({"Pending", "Running", "Unknown", ""})
"""Phases of a pod that may still cost something."""
STOPPED, FAILED = "Stopped", "Failed"
MOST_WORDS = 700
"""Characters that are shown of what a pod says."""
GRID_ENDED = f"{STOPPED}: the grid of this line has ended"
_MISSING = re.compile(r"(?:^|[\s/\"'])(mpirun|sshd|torchrun)\b[^\n]*(?:not found|no such file)", re.IGNORECASE)
_LACKS = "the image has no"
_ENDED = re.compile(rf", container {re.escape(TRAINING)}, exit code [0-9]")
_DEADLINE = "DeadlineExceeded"
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvidence:
    """What is known of a line on Kubernetes."""

    job: Mapping[str, Any] | None
    """The MPIJob; None where there is none of its name."""
    pods: Sequence[Mapping[str, Any]] = ()
    was_made: bool = False
    """Whether it was noted that the line's MPIJob was made."""
    result: PodResult | None = None


def address_job(line: Line) -> str:
    """Names a line's MPIJob for a person, in the place of an ARN."""
    return f"{line.request['cluster']}/{line.request['namespace']}/{line.training}"


def find_stranger(line: Line, grid: Grid, job: Mapping[str, Any]) -> str:
    """Returns whose MPIJob has the line's name, by its annotations; empty where it is this very line's."""
    marks = read_marks(job)
    wanted = {
        tags.DEPLOYMENT: grid.deployment,
        tags.GRID: grid.id,
        tags.LINE: str(line.index),
        tags.EXECUTION: grid.execution,
    }
    if wanted.items() <= marks.items():
        return ""
    shown = ", ".join(f"{key}={marks[key]}" for key in (tags.DEPLOYMENT, tags.GRID, tags.LINE) if key in marks)
    return f"annotations: {shown or 'none of ours'}"


def is_marked_pod(line: Line, grid: Grid) -> bool:
    """Whether the MPIJob that the plan has for the line names the line and its grid: without that it could be another's."""
    job = line.request.get("job")
    return isinstance(job, Mapping) and not find_stranger(line, grid, job)


def find_obstacle(evidence: PodEvidence, now: float) -> str:
    """Returns why a job that has not ended cannot go on; empty where nothing says so. The operator waits for ever for a worker that has
    failed, calls a job failed whose worker was evicted and leaves its pods, and makes a worker again that was lost, to which no launcher
    speaks; the job's own deadline begins with its launcher. `now` must not run ahead of the cluster's clock."""
    job = evidence.job
    if job is None or not is_live(job):
        return ""
    for pod in evidence.pods:
        if _phase(pod) == "Failed" and _is_worker(pod):
            return f"{FAILED}: {_describe_status(pod) or describe_pods([pod]) or 'a worker failed'}"
        if stuck := _find_stuck(pod, now):
            return f"{FAILED}: {stuck}"
    if given_up := _find_condition(job, FAILED):
        return f"{FAILED}: {given_up.get('message') or given_up.get('reason') or 'the operator gave the job up'}"
    runs = _find_condition(job, "Running")
    begun = _at(runs.get("lastTransitionTime")) if runs else None
    again = [_name(pod) for pod in evidence.pods if _is_worker(pod) and begun and (_find_pod_time(pod) or 0) > begun]
    if again:
        return f"{FAILED}: {', '.join(again)} was lost while the job ran, and made again"
    age = now - (read_created(job) or now)
    if age > PLACED_S and (missing := _find_missing(job, evidence.pods, now)):
        return f"{FAILED}: after {PLACED_S / 60:.0f} minutes {missing}"
    deadline = ((job.get("spec") or {}).get("runPolicy") or {}).get("activeDeadlineSeconds")
    if isinstance(deadline, int) and age > PLACED_S + deadline + SAVED_S:
        return f"{STOPPED}: reached the longest time of its line ({deadline} s) and was ended"
    return ""


def describe_mpi_job(line: Line, evidence: PodEvidence, *, now: float) -> LineFacts | None:
    """Returns what is known of the line's training; None where there never was one. A job that was deleted was stopped: it is
    not made again."""
    base = {"arn": address_job(line), "region": line.region}
    job = evidence.job
    if job is None:
        if not evidence.was_made:
            return None
        gone = f"The MPIJob {base['arn']} was deleted before its end. {where_to_look(line)}"
        return LineFacts(status=STOPPED, outcome=LineOutcome.STOPPED, reason=gone, **base)
    created = read_created(job)
    begun = _at(read_begin(job))
    facts = {**base, "submitted_at": created, "log": link_to_log(line)}
    lives = [pod for pod in evidence.pods if _phase(pod) in LIVE]
    if over := _find_end(job):
        return _describe_end(line, evidence, over, facts, begun, now)
    ended_for = ((job.get("metadata") or {}).get("annotations") or {}).get(ENDED_FOR, "")
    if is_suspended(job) and ended_for:
        if lives:
            return LineFacts(status="Stopping", said=ended_for, detail="Suspended", **facts)
        kind, _, words = ended_for.partition(": ")
        outcome = LineOutcome.FAILED if kind == FAILED else LineOutcome.STOPPED
        at = _find_time(job, "Suspended")
        reason = f"{words[:1].upper()}{words[1:]}. {where_to_look(line)}"
        return LineFacts(
            status=kind,
            outcome=outcome,
            reason=reason,
            own_failure=_is_own_failure(words),
            **facts,
            **_measure(line, begun, at),
            **_results(line, evidence),
        )
    detail = "Suspended" if is_suspended(job) else _condition(job) or "Created"
    return LineFacts(status="InProgress", detail=detail, **facts)


def link_to_log(line: Line) -> str:
    """Returns the console's address of what the launcher's pod printed, in S3: pods are gone soon after their end."""
    partition = read_marks(line.request["job"]).get(tags.EXECUTION, "").partition(":")[2].partition(":")[0]
    bucket, _, folder = str(line.request["notes"]).removeprefix("s3://").partition("/")
    return Console(partition, line.region).object(bucket, f"{folder}{LOG}") if partition else ""


def where_to_look(line: Line) -> str:
    """Returns one sentence: the pods, and where their files are."""
    notes = str(line.request.get("notes", ""))
    return f"Pods: kubectl -n {line.request['namespace']} get pods -l {JOB_ROLE.partition('/')[0]}/job-name={line.training}; notes: {notes}"


def describe_pods(pods: Sequence[Mapping[str, Any]]) -> str:
    """Returns what the first pod that failed says, with the name of a program that its image lacks. Its training speaks before its
    helpers, which may have failed because it did."""
    for pod in pods:
        for name, state in sorted(_states(pod), key=lambda one: one[0] != TRAINING):
            ended = state.get("terminated") or {}
            if not ended.get("exitCode"):
                continue
            words = " ".join(str(ended.get("message") or ended.get("reason") or "").split())
            missing = _MISSING.search(words)
            lacks = f"{_LACKS} {missing[1].lower()}, which its line needs; " if missing and name == TRAINING else ""
            shown = f": {words[-MOST_WORDS:]}" if words else ""
            return f"{lacks}{_name(pod)}, container {name}, exit code {ended['exitCode']}{shown}"
    return ""


def is_over(job: Mapping[str, Any]) -> bool:
    """Whether the operator has ended the job."""
    return _find_end(job) is not None


def is_live(job: Mapping[str, Any]) -> bool:
    """Whether the job may have pods that train, or get some."""
    return not is_over(job) and not is_suspended(job)


def read_created(job: Mapping[str, Any]) -> float | None:
    """Returns when the object was made, UTC epoch seconds by the cluster's clock."""
    return _at((job.get("metadata") or {}).get("creationTimestamp"))


def is_suspended(job: Mapping[str, Any]) -> bool:
    """Whether the job is to have no pods."""
    return ((job.get("spec") or {}).get("runPolicy") or {}).get("suspend") is True


def _describe_end(
    line: Line,
    evidence: PodEvidence,
    over: Mapping[str, Any],
    facts: Mapping[str, Any],
    begun: float | None,
    now: float,
) -> LineFacts:
    at = _at(((evidence.job or {}).get("status") or {}).get("completionTime")) or _at(over.get("lastTransitionTime"))
    lives = [pod for pod in evidence.pods if _phase(pod) in LIVE]
    waits = at is not None and now < at + SAVED_S
    result = evidence.result
    if waits and (lives or (over["type"] == "Succeeded" and result is None)):
        # It cannot be stopped any more: the models are on their way.
        return LineFacts(status="Stopping", detail="Saving", **facts)
    found = {**facts, **_measure(line, begun, at), **_results(line, evidence)}
    if over["type"] == "Succeeded" and result is not None and not result.problem:
        return LineFacts(status="Completed", detail="Succeeded", outcome=LineOutcome.COMPLETED, **found)
    said = str(over.get("message") or "")
    if over["type"] == "Succeeded":
        why = result.problem if result else f"nothing noted it within {SAVED_S / 60:.0f} minutes"
        said = f"The training succeeded, and its model was not saved: {why}"
    elif _DEADLINE in str(over.get("reason") or ""):
        said = f"{line.training} reached the longest time of its line and was stopped"
        reason = f"{said}. {where_to_look(line)}"
        found["own_failure"] = True
        return LineFacts(status=STOPPED, detail=_DEADLINE, outcome=LineOutcome.STOPPED, reason=reason, **found)
    words = describe_pods(evidence.pods)
    found["own_failure"] = _is_own_failure(words) and not any(map(_describe_status, evidence.pods))
    reason = f"{words or said or 'The MPIJob failed, and gives no reason'}. {where_to_look(line)}"
    return LineFacts(status=FAILED, detail=FAILED, said=said, outcome=LineOutcome.FAILED, reason=reason, **found)


def _is_own_failure(words: str) -> bool:
    """Whether the words of `describe_pods` say that the training's own container failed, in an image that has what a line needs."""
    return _ENDED.search(words) is not None and _LACKS not in words


def _results(line: Line, evidence: PodEvidence) -> dict[str, Any]:
    result = evidence.result
    if result is None:
        return {}
    return {
        "metrics": result.metrics,
        "metric_problems": result.metric_problems,
        "artifact": str(line.request.get("model", "")) if result.model else "",
    }


def _measure(line: Line, begun: float | None, over: float | None) -> dict[str, Any]:
    """A job takes all of its nodes from when all of its pods run; what machines cost before and after is the cluster's."""
    if begun is None:
        return {"billable_seconds": 0.0, "cost_usd": 0.0, "ended_at": over}
    if over is None:
        return {"ended_at": None}
    seconds = round(max(0.0, over - begun), 3)
    return {"seconds": seconds, "billable_seconds": seconds, "cost_usd": cost(line, seconds), "ended_at": over}


def _find_end(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the condition that says that the job is over; None where it is not. A failure without its time is none: the operator
    says so of a job whose worker was evicted, and leaves its pods."""
    if not (job.get("status") or {}).get("completionTime"):
        return _find_condition(job, "Succeeded")
    return _find_condition(job, "Succeeded") or _find_condition(job, FAILED)


def _find_missing(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now: float) -> str:
    """Returns which pods of a job lack their machines, or are not there; empty where none, and where data are still brought."""
    if waiting := [_name(pod) for pod in pods if _phase(pod) == "Pending" and not _is_placed(pod)]:
        return f"the cluster has no machine for {', '.join(waiting)}"
    wanted = count_nodes(job)
    if len(pods) >= wanted or _find_time(job, "Running") is not None:
        return ""
    if len(pods) == wanted - 1 and all(_is_worker(pod) for pod in pods):
        # The launcher comes when every worker is ready.
        ready = [_find_time(pod, READY) for pod in pods if _phase(pod) == "Running"]
        if len(ready) < len(pods) or any(at is not None and now - at < LAUNCHED_S for at in ready):
            return ""
    return f"the cluster has {len(pods) or 'no'} pods of {wanted}, and no room for the rest"


def _find_condition(job: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Returns the condition if it is true."""
    conditions: Sequence[Mapping[str, Any]] = (job.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == kind and one.get("status") == "True"), None)


def _find_time(thing: Mapping[str, Any], kind: str) -> float | None:
    """Returns when a condition of a job or a pod was set, whether it still is; None where it never was."""
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return next((_at(one.get("lastTransitionTime")) for one in conditions if one.get("type") == kind), None)


def _condition(job: Mapping[str, Any]) -> str:
    """Returns the newest condition that is true."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((str(one.get("type")) for one in reversed(conditions) if one.get("status") == "True"), "")


def _find_stuck(pod: Mapping[str, Any], now: float) -> str:
    pulls = max((at for kind in PULLS if (at := _find_time(pod, kind)) is not None), default=now)
    reasons = STUCK | PULLING if now - pulls > PULLED_S else STUCK
    for name, state in _states(pod):
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in reasons:
            words = " ".join(str(waiting.get("message") or "").split())[:MOST_WORDS]
            return f"{_name(pod)}, container {name}, cannot start: {waiting['reason']} {words}".rstrip()
    return ""


def _states(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(kind) or ():
            yield str(one.get("name", "")), one.get("state") or {}


def _describe_status(pod: Mapping[str, Any]) -> str:
    """Returns what the kubelet says of a pod that it ended."""
    status = pod.get("status") or {}
    words = " ".join(f"{status.get('reason') or ''} {status.get('message') or ''}".split())[:MOST_WORDS]
    return f"{_name(pod)}: {words}" if words else ""


def _find_pod_time(pod: Mapping[str, Any]) -> float | None:
    return _at((pod.get("metadata") or {}).get("creationTimestamp"))


def _is_worker(pod: Mapping[str, Any]) -> bool:
    return ((pod.get("metadata") or {}).get("labels") or {}).get(JOB_ROLE) == WORKER


def _is_placed(pod: Mapping[str, Any]) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _name(pod: Mapping[str, Any]) -> str:
    return str((pod.get("metadata") or {}).get("name", "a pod"))


def _at(text: Any) -> float | None:
    """Returns UTC epoch seconds of a time as Kubernetes writes it."""
    found = _TIME.fullmatch(str(text))
    return float(calendar.timegm((*map(int, found.groups()), 0, 0, 0))) if found else None

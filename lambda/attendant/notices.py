"""Decides which messages are due at a look at an attempt, and words every message about a job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from attendant.facts import AttemptFacts
from attendant.policy import Action, Verdict
from aws.facts import Status
from aws.state import AttemptEnd, OwedEnd
from contract import links, money, names
from contract.errors import Stalled
from contract.events import Event
from contract.intents import Intent
from contract.jobs import Job
from contract.orders import OrderKind

UNKNOWN_COST = "Its cost so far is unknown, because its admission found no price."
ENDS = {
    "ABORTED": "its execution was stopped",
    "TIMED_OUT": "its execution ran longer than its state machine allows",
    "GONE": "Step Functions no longer has its execution, so nothing says how it ended",
}
"""By status of the execution, how it ended where the job did not end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to people about a job."""

    event: Event
    job: str
    owner: str
    subject: str
    text: str


def stall_reason(facts: AttemptFacts, verdict: Verdict) -> str:
    """Returns why the training counts as stalled, empty where no message is due: `then: notify` always has one, the other reactions only
    where `notify` of the request has `stalled`. What a node orders itself does not count."""
    if verdict.stall is not None:
        return verdict.reason
    given = verdict.order or (facts.order.order if facts.order is not None else None)
    if Event.STALLED not in facts.job.notify or given is None:
        return ""
    ours = given.kind is OrderKind.DUMP and given.author == "attendant" and given.error == Stalled.__name__
    return given.reason if ours else ""


def trains_again(facts: AttemptFacts, verdict: Verdict) -> bool:
    """Whether the message that a new attempt trains is due: every node has begun to, and none has ended the attempt by an error."""
    if facts.attempt == 1 or Event.RECOVERED not in facts.job.notify or verdict.action is Action.FAIL:
        return False
    started = [node for node in facts.nodes.values() if "started" in node.report.timeline]
    return len(started) == facts.job.nodes


def word_stall(job: Job, attempt: int, reason: str, *, goes_on: bool, cost: str) -> Message:
    """Words which training makes no progress, what it costs, and what a person can do. `goes_on`: nothing but this message follows."""
    choices = [
        f"Its {job.nodes} nodes run and cost money until the job's deadline. {_point_to_log(job, attempt)} Or stop its execution.",
        *_list_links(job),
        "",
        'The request says {"then": "notify"}. With "restart" a new attempt would begin from the newest checkpoint; with "stop" the job '
        "would end.",
    ]
    places = [_point_to_log(job, attempt), *_list_links(job)]
    return Message(
        event=Event.STALLED,
        job=job.id,
        owner=job.owner,
        subject=_subject(job, "makes no progress"),
        text=_text(
            f"Job {_name_job(job.id, job.owner)}, attempt {attempt}: {reason}", cost, choices if goes_on else places
        ),
    )


def word_recovery(facts: AttemptFacts, ends: Mapping[int, AttemptEnd], cost: str) -> Message:
    """Words why the attempt before ended, where the new one trains, and from which step."""
    job, attempt = facts.job, facts.attempt
    since = [f"Attempt {number}: {end.error}: {end.cause}" for number, end in sorted(ends.items()) if end.error]
    before = since[-1:] or [
        f"The table has no cause for the end of attempt {attempt - 1}; the job's report.json may have it."
    ]
    return Message(
        event=Event.RECOVERED,
        job=job.id,
        owner=job.owner,
        subject=_subject(job, f"trains again (attempt {attempt})"),
        text=_text(
            f"Job {_name_job(job.id, job.owner)}: attempt {attempt} trains in {facts.region}, {_start(facts)}.",
            cost,
            [
                *before,
                "",
                f"You do not have to do anything. {_point_to_log(job, attempt)}",
                *_list_links(job),
            ],
        ),
    )


def _start(facts: AttemptFacts) -> str:
    """Words from where the nodes train, as they report it: all from the same set, whose step may not be known."""
    reports = [node.report for node in facts.nodes.values()]
    step = max((one.restored_step for one in reports), default=-1)
    if step >= 0:
        return f"from the checkpoint of step {step}"
    if any(one.restored for one in reports):
        return "from the newest checkpoint, whose trainer reported no step"
    return "from the beginning: there was no checkpoint"


def word_end(
    owed: OwedEnd,
    status: Status,
    deployment: str,
    job: Job | None,
    attempts: int,
    cost: str,
    *,
    regions: Collection[str] = (),
) -> Message:
    """Words how the execution ended, why, and what a person can do. `job` is None where its admission did not complete; it ran in
    `regions`."""
    event = event_of(status)
    head = f"Job {_name_job(owed.job, owed.owner)}"
    tried = f"after {attempts} attempt{'' if attempts == 1 else 's'}"
    where = (
        [_point_to_log(job, max(1, attempts)), *_list_links(job, regions)]
        if job
        else [f"Execution: {links.at_home(owed.execution).execution(owed.execution)}"]
    )
    if event is Event.DONE:
        text = _text(f"{head} is done, {tried}.", cost, ["Its artifacts and checkpoints are in S3.", *where])
        return Message(
            event=event,
            job=owed.job,
            owner=owed.owner,
            subject=_name_subject(deployment, owed.job, "is done"),
            text=text,
        )
    error = status.error or status.name
    why = ENDS.get(status.name, f"it ended with {error}")
    text = _text(
        f"{head} has failed, {tried}: {why}.",
        cost,
        [f"{error}: {status.cause or 'Step Functions has no cause.'}", "", _advice(status), *where],
    )
    return Message(
        event=event,
        job=owed.job,
        owner=owed.owner,
        subject=_name_subject(deployment, owed.job, "has failed"),
        text=text,
    )


def event_of(status: Status) -> Event:
    """Returns which of the two ends it is. Only what succeeded is done."""
    return Event.DONE if status.name == "SUCCEEDED" else Event.FAILED


def cost_so_far(job: Job, walks: Iterable[Intent], ends: Mapping[int, float], *, now: float) -> str:
    """Words in one sentence what all attempts have cost at most, and the cap where there is one. `ends`: by attempt, when all had ended."""
    usd = money.spent_usd(job, walks, ends, now=now)
    if usd is None:
        return UNKNOWN_COST
    cap = f" of its max_cost_usd of ${job.max_cost_usd:g}" if job.max_cost_usd is not None else ""
    return f"So far it has cost ${money.up_to_cents(usd):.2f} at most{cap}, at on-demand prices."


def _advice(status: Status) -> str:
    if status.name in ENDS:
        return "Its commits stay in S3. The cleanup ends its instances; if one runs on, see the runbook."
    return (
        "Its commits stay in S3. Correct what the cause names, and start the job again under a new name; the execution's input is its "
        "request."
    )


def _point_to_log(job: Job, attempt: int) -> str:
    return f"Read its log (log group {job.log_group}, stream {names.log_stream(job.id, attempt, 0)})."


def _list_links(job: Job, regions: Collection[str] = ()) -> list[str]:
    """Returns lines with the console's addresses of the job, and of its artifacts in each region in which it ran."""
    found = links.of_job(job)
    ran_in = sorted(set(regions) & job.places.keys())[: links.SHOWN_REGIONS]
    return [
        *(f"{name.capitalize()}: {found[name]}" for name in ("page", "execution", "log")),
        *(f"Artifacts in {region}: {links.of_artifacts(job, region)}" for region in ran_in),
    ]


def _name_job(job: str, owner: str) -> str:
    return f"{job} of {owner}" if owner else job


def _subject(job: Job, what: str) -> str:
    return _name_subject(job.deployment, job.id, what)


def _name_subject(deployment: str, job: str, what: str) -> str:
    return f"Trainyard {deployment}: {job} {what}"


def _text(first: str, cost: str, then: list[str]) -> str:
    return "\n".join([first, "", cost, "", *then])

"""Decides of what people have to be told at a look at an attempt, and words every message about a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attendant.facts import AttemptFacts
from attendant.policy import Action, Verdict
from attendant.telling import Message
from aws.facts import Status
from aws.state import AttemptEnd, OwedEnd
from contract import money, names
from contract.errors import Stalled
from contract.events import Event
from contract.intents import Intent
from contract.jobs import Job
from contract.orders import OrderKind

UNKNOWN_COST = "What it has cost so far is not known: a price was not known at its admission."
STATED = {
    "ABORTED": "somebody stopped its execution",
    "TIMED_OUT": "its execution ran longer than its machine allows",
    "GONE": "Step Functions does not know its execution any more, so how it ended is not known",
}
"""What happened, where it was not the job's own end."""


def stall_reason(facts: AttemptFacts, verdict: Verdict) -> str:
    """Why the training counts as stalled, empty where people have not to be told: `then: notify` tells them always, the other reactions
    where `notify` of the request has `stalled`. What a node orders itself does not count."""
    if verdict.stall is not None:
        return verdict.reason
    given = verdict.order or (facts.order.order if facts.order is not None else None)
    if Event.STALLED not in facts.job.notify or given is None:
        return ""
    ours = given.kind is OrderKind.DUMP and given.author == "attendant" and given.error == Stalled.__name__
    return given.reason if ours else ""


def trains_again(facts: AttemptFacts, verdict: Verdict) -> bool:
    """Whether people have to be told that a new attempt trains: every node has begun to, and none has ended the attempt by an error."""
    if facts.attempt == 1 or Event.RECOVERED not in facts.job.notify or verdict.action is Action.FAIL:
        return False
    started = [node for node in facts.nodes.values() if "started" in node.report.timeline]
    return len(started) == facts.job.nodes


def stalled(job: Job, attempt: int, reason: str, *, goes_on: bool, cost: str) -> Message:
    """What stands still, what it costs, and what a person can do. `goes_on`: nothing but this message follows."""
    does = [
        f"Its {job.nodes} nodes run and cost money until the job's hours are over. {_look(job, attempt)} Or stop its execution: "
        f"{job.execution}",
        "",
        'The request says {"then": "notify"}. With "restart" a new attempt would begin from the newest checkpoint; with "stop" the job '
        "would end.",
    ]
    follows = [f"{_look(job, attempt)} Its execution: {job.execution}"]
    return Message(
        event=Event.STALLED,
        job=job.id,
        owner=job.owner,
        subject=_subject(job, "makes no progress"),
        text=_text(f"Job {_whose(job.id, job.owner)}, attempt {attempt}: {reason}", cost, does if goes_on else follows),
    )


def recovered(facts: AttemptFacts, region: str, ends: Mapping[int, AttemptEnd], cost: str) -> Message:
    """Why the attempts before ended, where the new one trains, and from which step."""
    job, attempt = facts.job, facts.attempt
    since = [f"Attempt {number}: {end.error}: {end.cause}" for number, end in sorted(ends.items()) if end.error]
    before = since[-1:] or [f"Why attempt {attempt - 1} ended was not noted; report.json of the job may say it."]
    return Message(
        event=Event.RECOVERED,
        job=job.id,
        owner=job.owner,
        subject=_subject(job, f"trains again (attempt {attempt})"),
        text=_text(
            f"Job {_whose(job.id, job.owner)}: attempt {attempt} trains in {region}, {_start(facts)}.",
            cost,
            [*before, "", f"Nothing has to be done. {_look(job, attempt)} Its execution: {job.execution}"],
        ),
    )


def _start(facts: AttemptFacts) -> str:
    """From where the nodes train, as they report it: all from the same set. Its trainer may have told no step."""
    reports = [node.report for node in facts.nodes.values()]
    step = max((one.restored_step for one in reports), default=-1)
    if step >= 0:
        return f"from the checkpoint of step {step}"
    if any(one.restored for one in reports):
        return "from the newest checkpoint, whose trainer told no step"
    return "from the beginning: there was no checkpoint"


def ended(untold: OwedEnd, status: Status, deployment: str, job: Job | None, attempts: int, cost: str) -> Message:
    """How the execution ended, why, and what a person can do. `job` is None where its admission did not come to its end."""
    event = event_of(status)
    head = f"Job {_whose(untold.job, untold.owner)}"
    tried = f"after {attempts} attempt{'' if attempts == 1 else 's'}"
    where = (
        f"{_look(job, max(1, attempts))} Its execution: {untold.execution}"
        if job
        else f"Its execution: {untold.execution}"
    )
    if event is Event.DONE:
        text = _text(f"{head} is done, {tried}.", cost, ["Its artifacts and checkpoints are in S3.", where])
        return Message(
            event=event,
            job=untold.job,
            owner=untold.owner,
            subject=_named(deployment, untold.job, "is done"),
            text=text,
        )
    error = status.error or status.name
    why = STATED.get(status.name, f"it ended with {error}")
    text = _text(
        f"{head} has failed, {tried}: {why}.",
        cost,
        [f"{error}: {status.cause or 'no reason was given.'}", "", _advice(status), where],
    )
    return Message(
        event=event, job=untold.job, owner=untold.owner, subject=_named(deployment, untold.job, "has failed"), text=text
    )


def event_of(status: Status) -> Event:
    """Which of the two ends it is. Only what succeeded is done."""
    return Event.DONE if status.name == "SUCCEEDED" else Event.FAILED


def cost_so_far(job: Job, walks: Iterable[Intent], ends: Mapping[int, float], *, now: float) -> str:
    """One sentence: what all attempts have cost at most, and the cap where there is one. `ends`: by attempt, when all had ended."""
    usd = money.spent_usd(job, walks, ends, now=now)
    if usd is None:
        return UNKNOWN_COST
    cap = f" of its max_cost_usd of ${job.max_cost_usd:g}" if job.max_cost_usd is not None else ""
    return f"So far it has cost ${money.up_to_cents(usd):.2f} at most{cap}, at on-demand prices."


def _advice(status: Status) -> str:
    if status.name in STATED:
        return "What was committed stays in S3. Its instances are ended by the cleanup; look into the runbook where one runs on."
    return (
        "What was committed stays in S3. Correct what the cause says and start the job again under a new name; its request is the input of "
        "the execution."
    )


def _look(job: Job, attempt: int) -> str:
    return f"Look into its log (log group {job.log_group}, stream {names.log_stream(job.id, attempt, 0)})."


def _whose(job: str, owner: str) -> str:
    return f"{job} of {owner}" if owner else job


def _subject(job: Job, what: str) -> str:
    return _named(job.deployment, job.id, what)


def _named(deployment: str, job: str, what: str) -> str:
    return f"Trainyard {deployment}: {job} {what}"


def _text(first: str, cost: str, then: list[str]) -> str:
    return "\n".join([first, "", cost, "", *then])

"""Decides the walk over the ladder: which rung is next, what an answer closes, when patience is over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aws.facts import Instance
from aws.times import utc
from contract import money
from contract.errors import (
    BudgetExceeded,
    CapacityPending,
    CapacityUnavailable,
    InvalidRequest,
    JobError,
    LaunchIncomplete,
    QuotaExceeded,
)
from contract.health import UnhealthyNode
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Rung
from contract.places import Zone
from contract.shapes import find_missing, list_shapes, name_markets
from launcher.answers import PASSES_WALKS, explain_answers, find_meaning
from launcher.arguments import LaunchMarks, build_arguments, security_group
from launcher.groups import describe_reach, shorten_jobs
from launcher.quotas import find_kind, is_closed_with, list_kinds

STARTED = frozenset({"pending", "running"})
GONE = "InvalidCapacityReservation"
"""How EC2's codes begin that say a reservation cannot be used any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Who walks, and what its launches are made of."""

    number: int
    started_at: float
    patience_until: float
    holder: str
    held_until: float
    marks: LaunchMarks
    user_data: str
    waiting: bool = False
    """Whether the job waits for capacity."""
    waited_s: float = 0.0
    """How long the job has waited when the walk begins, in all attempts."""
    spent_usd: float = 0.0
    """What the attempts before have cost at most, of a job with a cap."""
    doubted_usd: float = 0.0
    """What an hour of the nodes costs that an earlier walk of the attempt may have launched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """What a region has for the nodes of the attempt."""

    busy: frozenset[str]
    """Placement groups that run a job."""
    security_group: str
    shared_with: tuple[str, ...] = ()
    """Other jobs that have the security group too."""


def find_busy(instances: Iterable[Instance]) -> frozenset[str]:
    """Placement groups in which instances run or begin to."""
    return frozenset(one.placement_group for one in instances if one.state in STARTED) - {""}


def plan(job: Job, attempt: int, walk: Walk, *, passed_over: Mapping[Rung, LaunchAnswer]) -> Intent:
    """Returns the intent of a walk: every rung, in the order of the ladder. Requests come with the walk into a region. A reservation that
    begins later, or whose nodes AWS ends already, has its answer without a call, and so have places that are `passed_over`, or too
    expensive for what is left of the job's money."""
    return Intent(
        job=job.id,
        attempt=attempt,
        walk=walk.number,
        started_at=walk.started_at,
        patience_until=walk.patience_until,
        user_data=walk.user_data,
        held_by=walk.holder,
        held_until=walk.held_until,
        steps=tuple(
            Step(
                rung=rung,
                request={},
                walk=walk.number,
                answer=_not_now(rung, walk.started_at) or _too_expensive(job, rung, walk) or passed_over.get(rung),
            )
            for rung in job.ladder
        ),
        waiting=walk.waiting,
        waited_s=walk.waited_s,
        spent_usd=walk.spent_usd,
        doubted_usd=walk.doubted_usd,
    )


def _not_now(rung: Rung, now: float) -> LaunchAnswer | None:
    if now < rung.begins_at:
        code, message = f"NotAsked: begins {utc(rung.begins_at)}", "the reservation begins later"
    elif rung.ends_at is not None and have_ended([rung], now):
        code, message = f"NotAsked: ended {utc(rung.ends_at)}", "AWS has begun to end the nodes of the block"
    else:
        return None
    return LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=now, code=code, message=message)


def have_ended(rungs: Sequence[Rung], now: float) -> bool:
    """Whether AWS ends the nodes of every rung by now: nothing can be launched any more that would live."""
    return bool(rungs) and all(rung.ends_at is not None and now >= rung.ends_at for rung in rungs)


def _too_expensive(job: Job, rung: Rung, walk: Walk | Intent) -> LaunchAnswer | None:
    if _affords_s(job, rung, walk) >= money.least_s(job.timing):
        return None
    return LaunchAnswer(
        outcome=LaunchOutcome.NO_CAPACITY,
        at=walk.started_at,
        code="NotAsked: too expensive for the rest of max_cost_usd",
        message=f"${walk.spent_usd:.2f} of ${job.max_cost_usd} are spent",
    )


def _affords_s(job: Job, rung: Rung, walk: Walk | Intent) -> float:
    return money.affords_s(job, rung, walk.spent_usd, walk.doubted_usd)


def explain_no_money(job: Job, walk: Walk) -> BudgetExceeded | None:
    """Returns the end of a job whose money pays for no place of its ladder any more; None as long as it does."""
    if any(_too_expensive(job, rung, walk) is None for rung in job.ladder):
        return None
    longest = max((_affords_s(job, rung, walk) for rung in job.ladder), default=0.0)
    return BudgetExceeded(
        f"max_cost_usd is ${job.max_cost_usd:g}, and the attempts so far have cost ${walk.spent_usd:.2f} at most. The rest pays for "
        f"{longest / 60:.1f} min of the job's nodes, and a new attempt needs {money.least_s(job.timing) / 60:.0f} min. All commits stay "
        "in S3."
    )


def begins_at(job: Job) -> float:
    """From when on any rung of the ladder can be used, UTC epoch seconds."""
    return min((rung.begins_at for rung in job.ladder), default=0.0)


def prepare_region(job: Job, intent: Intent, region: str, groups: Groups, *, marks: LaunchMarks) -> Intent:
    """Returns the intent with the requests of a region, which have to be written down before the first of them is sent. Their deadline
    counts what the job has waited, and what its money pays for."""

    def with_arguments(step: Step) -> Step:
        return _step(money.launched_as(job, intent, step.rung), intent.attempt, step, groups, marks)

    return _with_steps(intent, with_arguments, region)


def skip_region(intent: Intent, region: str, answer: LaunchAnswer) -> Intent:
    """Returns the intent where a region could not even be asked what it has: the walk goes on elsewhere, and nothing was sent there."""
    return _with_steps(intent, lambda step: replace(step, answer=answer), region)


def _with_steps(intent: Intent, changed: Callable[[Step], Step], region: str) -> Intent:
    """Changes the steps of the region that have no request yet."""
    new = (step.rung.region == region and not step.request and not step.answer for step in intent.steps)
    steps = [changed(step) if is_new else step for step, is_new in zip(intent.steps, new, strict=True)]
    return replace(intent, steps=tuple(steps))


def _step(job: Job, attempt: int, step: Step, groups: Groups, marks: LaunchMarks) -> Step:
    first, *further = (
        build_arguments(
            job,
            attempt,
            shape.rung,
            group=_group(job, attempt, shape.rung, groups.busy),
            security_group=groups.security_group,
            marks=marks,
            shape=shape,
        )
        for shape in list_shapes(job, step.rung)
    )
    return replace(step, request=first, further=tuple(further), shared_with=groups.shared_with)


def _group(job: Job, attempt: int, rung: Rung, busy: Collection[str]) -> str:
    """Returns a group that runs nothing, if there is one: two jobs in one cluster group find less capacity than in two."""
    if not rung.cluster:
        return ""
    zone: Zone = next(zone for zone in job.places[rung.region].zones if zone.name == rung.zone)
    groups = zone.placement_groups
    if not groups:
        return ""
    free = [group for group in groups if group not in busy] or list(groups)
    return free[sum(job.id.encode(), attempt) % len(free)]


def order_like(job: Job, intent: Intent) -> Job:
    """Returns the job with the rungs of an intent, in their order there: new prices may have changed it since."""
    return replace(job, ladder=tuple(step.rung for step in intent.steps))


def avoid_unhealthy(job: Job, attempt: int, known: Iterable[UnhealthyNode]) -> Job:
    """Returns the job with the rungs last whose zone had an unhealthy node in an earlier attempt: of the capacity that was given back a
    moment ago, EC2 may give the same machine again. They stay in the ladder, and everything in its order."""
    zones = {(one.region, one.zone) for one in known if one.attempt < attempt}
    return replace(job, ladder=tuple(sorted(job.ladder, key=lambda rung: (rung.region, rung.zone) in zones)))


def keep_doubts(intent: Intent, before: Intent | None) -> Intent:
    """Returns the intent with the tokens of the walk before it where that never learned whether a rung launched: the same bytes again then
    find what is there, and launch nothing beside it. A job that waits for capacity has later deadlines in its requests, and so other
    tokens: its first walk asks EC2 what runs of the attempt, before it launches anything."""
    doubted = {step.rung: step for step in (before.steps if before else ()) if step.is_in_doubt}
    steps = (
        replace(step, walk=old.walk, generation=old.generation) if (old := doubted.get(step.rung)) else step
        for step in intent.steps
    )
    return replace(intent, steps=tuple(steps))


def list_doubted(intent: Intent) -> list[str]:
    """Returns the regions in which the walk went on although it never learned whether a rung launched."""
    return sorted({step.rung.region for step in intent.steps if step.answer is not None and step.answer.doubted})


def carry_answers(intent: Intent, before: Intent) -> Intent:
    """Returns the intent with the final answers of the walk before it: it goes on where that one stopped."""
    steps = tuple(old if old.is_final else new for old, new in zip(before.steps, intent.steps, strict=True))
    return replace(intent, steps=steps)


def record_answer(intent: Intent, place: int, answer: LaunchAnswer, *, recovering: bool) -> Intent:
    """Returns the intent with an answer to a rung, and with what that answer closes beside it.

    `recovering`: nodes of the attempt before may still count against a quota, so that it is treated as missing capacity.
    """
    steps = list(intent.steps)
    if answer.outcome is LaunchOutcome.RENEW:
        steps[place] = replace(steps[place], generation=steps[place].generation + 1, answer=answer)
        return replace(intent, steps=tuple(steps))
    if answer.outcome is LaunchOutcome.QUOTA and recovering:
        answer = replace(answer, outcome=LaunchOutcome.NO_CAPACITY)
    if answer.outcome is LaunchOutcome.MISTAKE and _is_gone(answer) and _others_last(steps, place, answer.at):
        answer = replace(answer, outcome=LaunchOutcome.NO_CAPACITY)
    meaning, is_young = find_meaning(answer.code, answer.message), intent.walk <= PASSES_WALKS
    passes = answer.outcome is LaunchOutcome.MISTAKE and meaning.passes and is_young
    if answer.outcome is LaunchOutcome.MISTAKE and not meaning.ends_walk:
        answer = replace(answer, outcome=LaunchOutcome.NO_CAPACITY, refused=not passes)
    steps[place] = replace(steps[place], answer=answer)
    if answer.is_half:  # the attempt is over, and the next one reads what it closes
        return replace(intent, steps=tuple(steps))
    if passes or answer.refused or answer.outcome in {LaunchOutcome.QUOTA, LaunchOutcome.CLOSED}:
        rung = find_kind(steps[place].rung, answer)
        for other, step in enumerate(steps):
            if not step.is_final and any(is_closed_with(one, rung, answer) for one in list_kinds(step.rung)):
                steps[other] = replace(step, answer=answer)
    return replace(intent, steps=tuple(steps))


def give_up(job: Job, intent: Intent, place: int, answer: LaunchAnswer) -> Intent:
    """Returns the intent once no walk will ask again whether the rung launched. Its nodes may run for as long as the attempt, at the job's
    cost, so that less time is left to the places that were not asked: their requests are made anew, with that deadline."""
    closed = record_answer(
        intent, place, replace(answer, outcome=LaunchOutcome.NO_CAPACITY, doubted=True), recovering=False
    )
    doubted_usd = intent.doubted_usd + (money.hourly_usd(job.nodes, intent.steps[place].rung) or 0.0)
    poorer = replace(closed, doubted_usd=doubted_usd)
    steps = (
        one if one.answer else replace(one, request={}, answer=_too_expensive(job, one.rung, poorer))
        for one in closed.steps
    )
    return replace(poorer, steps=tuple(steps))


def _is_gone(answer: LaunchAnswer | None) -> bool:
    return answer is not None and answer.code.startswith(GONE) and not answer.code.endswith("PendingActivation")


def _others_last(steps: Sequence[Step], place: int, now: float) -> bool:
    """Whether another reservation may still be used, as far as is known."""
    others = (step for number, step in enumerate(steps) if number != place)
    return any(not _is_gone(step.answer) and not have_ended([step.rung], now) for step in others)


def find_error(intent: Intent, now: float) -> JobError:
    """Returns the error with which a walk without a launch ends; only CapacityPending is worth another walk."""
    answers = [step.answer for step in intent.steps if step.answer]
    if mistake := next((answer for answer in answers if answer.outcome is LaunchOutcome.MISTAKE), None):
        said = f"EC2 refused the launch, and a repeat cannot help: {mistake.code}: {mistake.message}"
        return InvalidRequest(f"{said} {explain_answers([mistake])}".strip())
    rungs, advice = describe_rungs(intent), explain_answers(answers)
    if (half := intent.half) is not None and half.answer is not None:
        shape = half.rung.shapes[half.answer.shape]
        return LaunchIncomplete(
            f"{len(half.answer.instances)} nodes were launched in {half.rung.zone}, and EC2 did not launch those of "
            f"{shape.role.replace('+', ' and ')} on {shape.rung.instance_type}: {half.answer.code}: {half.answer.message} What runs is "
            "ended, and another attempt looks for a place that has all."
        )
    if answers and all(answer.refused for answer in answers) and intent.next_place is None:
        return InvalidRequest(
            f"EC2 refuses the launch for every type, and a repeat cannot help: {_describe_refusals(intent)} {advice}".strip()
        )
    outcomes = {answer.outcome for answer in answers if not answer.refused}
    if outcomes and outcomes <= {LaunchOutcome.QUOTA, LaunchOutcome.CLOSED} and intent.next_place is None:
        return QuotaExceeded(
            f"the account closes every rung of the ladder: {rungs}. {advice or 'Raise the quota in Service Quotas.'}"
        )
    if intent.steps and all(step.rung.begins_at > now for step in intent.steps):
        return CapacityUnavailable(f"no reservation of the job has begun: {rungs}")
    if have_ended([step.rung for step in intent.steps], now):
        return CapacityUnavailable(f"every reservation of the job has ended: {rungs}")
    if now >= intent.patience_until:
        return CapacityUnavailable(
            f"no rung had capacity until the launch patience was over (walk {intent.walk}): {rungs}. {advice}".strip()
        )
    return CapacityPending(f"no rung had capacity in walk {intent.walk}: {rungs}")


def describe_rungs(intent: Intent) -> str:
    """Every rung that was asked, with its answer, for the cause of an error."""
    return "; ".join(_describe_rung(step) for step in intent.steps if step.answer)


def _describe_rung(step: Step) -> str:
    assert step.answer is not None
    said = step.answer.code or step.answer.outcome.value
    said += f" for {missing.instance_type}" if (missing := find_missing(step)) else ""
    has_words = step.answer.refused or find_meaning(step.answer.code, step.answer.message).passes
    words = f": {step.answer.message}" if has_words else ""
    return f"{step.rung.instance_type} in {step.rung.zone} ({name_markets(step.rung)}): {said}{words}"


def _describe_refusals(intent: Intent) -> str:
    """One sentence for all types that EC2 refuses in the same words."""
    said: dict[str, dict[str, None]] = {}
    for step in intent.steps:
        if step.answer is not None:
            said.setdefault(f"{step.answer.code}: {step.answer.message}", {})[step.rung.instance_type] = None
    return "; ".join(f"{', '.join(types)}: {words}" for words, types in said.items())


def list_rungs(intent: Intent) -> list[dict[str, Any]]:
    """Returns the rungs that were asked, with their answers, as the execution shows them. The one that launched shows its security group
    too."""
    return [_show_rung(step, step.answer, launched=step is intent.launched) for step in intent.steps if step.answer]


def _show_rung(step: Step, answer: LaunchAnswer, *, launched: bool) -> dict[str, Any]:
    rung: dict[str, Any] = {
        "region": step.rung.region,
        "zone": step.rung.zone,
        "instance_type": step.rung.instance_type,
        "market": name_markets(step.rung),
        "answer": answer.code or answer.outcome.value,
    }
    if (missing := find_missing(step)) is not None:
        rung["missing"] = missing.instance_type
    if launched:
        rung |= {"security_group": security_group(step), "shared_with": shorten_jobs(step.shared_with)}
    return rung


def describe_network(job: Job, step: Step) -> str:
    """Says who can reach the nodes of a launch."""
    region = step.rung.region
    groups = len(job.places[region].security_groups)
    return describe_reach(security_group(step), step.shared_with, region=region, groups=groups)

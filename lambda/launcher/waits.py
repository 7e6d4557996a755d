"""Decides about jobs that wait for capacity: whether a job waits on, whose turn it is, when the next try is, and what people read.

Facts and the time in, verdicts out: no call of AWS.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from aws.times import utc
from contract.errors import CapacityAwaited, CapacityUnavailable, JobError
from contract.intents import Intent
from contract.jobs import Job
from contract.timing import Timing
from contract.waits import CapacityWait
from launcher import prices
from launcher.policy import begins_at, describe_rungs, have_ended, list_rungs

BEATS = 6
"""How often a token gets a heartbeat within the time of one, so that five may be missed."""
VARIES = 0.5
"""By which share of itself a pause is longer or shorter, so that jobs that began to wait together get apart."""
FIRST_TRY_S = 120.0
"""So long after a reservation begins a job may be tried for that waits for it: two ticks of the clock."""
MOST_DOUBLED = 20
"""Doubling further changes no pause, and makes large numbers."""


def since(walks: Sequence[Intent]) -> float:
    """Returns when the attempt was first asked for capacity: from then on it waits, the launch patience included."""
    return walks[0].started_at


def until(job: Job, walks: Sequence[Intent]) -> float:
    """Returns when the attempt has waited for all that the job has left of its `max_wait_hours`. A walk keeps what was used up before its
    own attempt in `waited_s`, so the first walk of the attempt says what is left."""
    return since(walks) + wait_left_s(job, walks[0].waited_s)


def wait_left_s(job: Job, waited_s: float) -> float:
    """Seconds that the job may still wait once it has waited for `waited_s`."""
    return max(0.0, job.max_wait_hours * 3600 - waited_s)


def after_patience(job: Job, walks: Sequence[Intent], problem: CapacityUnavailable, *, now: float) -> JobError:
    """Returns what Launch ends with where its patience is over: the job waits if it may, and if there is something to wait for."""
    if not walks or now >= until(job, walks) or have_ended(job.ladder, now):
        return problem
    return CapacityAwaited(f"{problem} The job waits for capacity until {utc(until(job, walks))} at most.")


def pause_s(tries: int, timing: Timing, chance: float) -> float:
    """Seconds until the next try after so many; `chance` is from 0 to 1."""
    whole = min(timing.wait_again_s * 2 ** min(tries, MOST_DOUBLED), timing.wait_longest_s)
    return whole * (1 - VARIES + 2 * VARIES * chance)


def begin_wait(
    job: Job, attempt: int, token: str, walks: Sequence[Intent], *, halves: int = 0, now: float, chance: float
) -> CapacityWait:
    """Returns the wait of a state that was entered now. One that ends as its reservation begins still has the try that it waited for.
    `halves`: attempts right before that could launch some of their nodes only; each doubles the first pause, because it costs money."""
    begins, end = begins_at(job), until(job, walks)
    return CapacityWait(
        job=job.id,
        attempt=attempt,
        token=token,
        since=since(walks),
        until=max(end, begins + FIRST_TRY_S) if now < begins <= end else end,
        next_try_at=begins if begins > now else now + pause_s(halves, job.timing, chance),
    )


def count_try(
    wait: CapacityWait, timing: Timing, *, now: float, chance: float, trouble: str = "", soon: bool = False
) -> CapacityWait:
    """Returns the wait after one more try. One that met trouble may have launched, so the next comes soon, and their pauses grow. `soon`:
    the function's time did not suffice for the whole ladder."""
    troubles = wait.troubles + 1 if trouble else 0
    doubled = troubles - 1 if trouble else 0 if soon else wait.tries
    pause = pause_s(doubled, timing, chance)
    return replace(wait, tries=wait.tries + 1, next_try_at=now + pause, trouble=trouble, troubles=troubles)


def list_due(waits: Iterable[CapacityWait], *, now: float) -> list[CapacityWait]:
    """Returns those whose try is due, or whose time is over, the longest overdue first: none comes last again and again."""
    ready = [wait for wait in waits if min(wait.next_try_at, wait.until) <= now]
    return sorted(ready, key=lambda wait: (min(wait.next_try_at, wait.until), wait.job))


def beats_now(job: str, *, now: float, heartbeat_s: float, every_s: float) -> bool:
    """Whether the tokens of this job get their heartbeat in this tick of a clock that ticks every `every_s`: each BEATS times within the
    time of a heartbeat, and never all in the same tick."""
    ticks = max(1, int(heartbeat_s / BEATS / every_s))
    return int(now / every_s) % ticks == zlib.crc32(job.encode()) % ticks


def explain_end(wait: CapacityWait, job: Job, walks: Sequence[Intent], *, now: float) -> CapacityUnavailable | None:
    """Returns the end of a wait whose time is over; None where its last walk launched, and only the answer is missing. It says how long the
    job waited, and what every rung answered last."""
    if walks and walks[-1].launched:
        return None
    answers = describe_rungs(walks[-1]) if walks else "the table has no walk"
    trouble = f" The last try failed: {wait.trouble}." if wait.trouble else ""
    return CapacityUnavailable(
        f"no rung had capacity for {(now - wait.since) / 3600:.1f} h (since {utc(wait.since)}, {wait.tries} tries while it waited); "
        f"max_wait_hours is {job.max_wait_hours:g}, for all attempts of the job together. The last answers: {answers}.{trouble}"
    )


def build_document(wait: CapacityWait, walks: Sequence[Intent], state: str, *, now: float) -> dict[str, Any]:
    """Returns the document that people read while the job waits (`keys.JobPrefix.wait`), and afterwards how the wait ended."""
    last = walks[-1] if walks else None
    return {
        "job": wait.job,
        "attempt": wait.attempt,
        "state": state,
        "written_at": utc(now),
        "waits_since": utc(wait.since),
        "waits_until": utc(wait.until),
        "tries": wait.tries,
        "next_try_at": utc(wait.next_try_at) if state == WAITS else None,
        "trouble": wait.trouble or None,
        "rungs": _list_rungs(last, now) if last else [],
    }


def _list_rungs(walk: Intent, now: float) -> list[dict[str, Any]]:
    """Returns the rungs with their last answers and their prices."""
    asked = [step.rung for step in walk.steps if step.answer]
    return [
        one | {"price": prices.describe_price(rung, now=now)} for one, rung in zip(list_rungs(walk), asked, strict=True)
    ]


WAITS, LAUNCHED = "waits for capacity", "launched"
"""What the document says while the job waits, and once it has capacity; otherwise it has the name of the error."""


def has_unasked(intent: Intent) -> bool:
    """Whether rungs are left that no walk has asked yet, and none is in doubt."""
    place = intent.next_place
    return place is not None and intent.steps[place].answer is None


def describe_doubt(intent: Intent) -> str:
    """Describes the rung of which it is unknown whether it launched, with the last answer; empty where there is none."""
    place = intent.next_place
    step = None if place is None else intent.steps[place]
    if step is None or step.answer is None:
        return ""
    said = step.answer.code or step.answer.outcome.value
    return f"{step.rung.instance_type} in {step.rung.zone}: {said}"

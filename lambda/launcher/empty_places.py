"""Decides which places a walk passes over because another job's walk has just found them empty. No call of AWS."""

from __future__ import annotations

from collections.abc import Iterable

from contract.empty_places import EmptyPlace
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Rung
from contract.shapes import list_shapes

EMPTY = frozenset({"InsufficientInstanceCapacity", "InsufficientHostCapacity", "UnfulfillableCapacity"})
"""Codes that say something of a place to every job. Others are about the request, an account's limit, or a subnet."""
NOT_ASKED = "NotAsked: "


def describe_empty(job: Job, step: Step) -> EmptyPlace | None:
    """Returns what an answer says to other jobs; None where it says nothing. A reservation is its owner's alone."""
    rung, answer = step.rung, step.answer
    if answer is None or answer.code not in EMPTY or rung.reservation:
        return None
    asked = list_shapes(job, rung)[answer.shape]
    return EmptyPlace(
        region=rung.region,
        zone=rung.zone,
        instance_type=asked.rung.instance_type,
        market=asked.rung.market.value,
        nodes=asked.nodes,
        job=job.id,
        at=answer.at,
    )


def pass_over(
    job: Job, known: Iterable[EmptyPlace], before: Intent | None, *, waiting: bool, now: float
) -> dict[Rung, LaunchAnswer]:
    """Returns the rungs that are not asked in the walk that begins now, with the answer that each gets instead.

    A place counts as empty for `empty_place_s`, for as many nodes as were asked for or more, and never by the job's own word. Launch
    asks every place itself in its first walk, and then at least in every second one: a job does not fail on what others say. Jobs that
    wait take their turn, so that one of them asks for all.
    """
    asked = {step.rung for step in before.steps if _has_own_answer(step)} if before else set[Rung]()
    answers: dict[Rung, LaunchAnswer] = {}
    for rung in job.ladder:
        note = next((one for one in known if _is_about(one, rung, job)), None)
        fresh = note is not None and now - note.at < job.timing.empty_place_s
        if note is not None and fresh and (waiting or rung in asked):
            answers[rung] = LaunchAnswer(
                outcome=LaunchOutcome.NO_CAPACITY,
                at=note.at,
                code=f"{NOT_ASKED}{note.job} found it empty",
                message=f"{note.job} asked for {note.nodes} nodes {now - note.at:.0f} s before",
            )
    return answers


def _has_own_answer(step: Step) -> bool:
    return step.answer is not None and not step.answer.code.startswith(NOT_ASKED)


def _is_about(one: EmptyPlace, rung: Rung, job: Job) -> bool:
    place = (one.region, one.zone, one.instance_type, one.market)
    same = any(
        place == (rung.region, rung.zone, shape.rung.instance_type, shape.rung.market.value)
        and one.nodes <= shape.nodes
        for shape in list_shapes(job, rung)
    )
    return same and not rung.reservation and one.job != job.id

"""What a rung asks EC2 for: one request of RunInstances for each shape, and who of the job's nodes it launches."""

from __future__ import annotations

from dataclasses import replace

from contract.containers import Container
from contract.intents import LaunchOutcome, Step
from contract.jobs import Job, LaunchShape, Rung
from contract.roles import find_place


def list_shapes(job: Job, rung: Rung) -> tuple[LaunchShape, ...]:
    """Returns the shapes of a rung in the order in which they are asked for; all nodes are of one where the job has no roles."""
    return rung.shapes or (LaunchShape(rung=rung, first_rank=0, nodes=job.nodes),)


def find_rung(job: Job, rung: Rung, rank: int) -> Rung:
    """Returns type, market and image of one rank's machine on the rung; the rung itself for a rank that it does not have."""
    shapes = list_shapes(job, rung)
    return next((one.rung for one in shapes if one.first_rank <= rank < one.first_rank + one.nodes), rung)


def list_types(job: Job) -> tuple[str, ...]:
    """Returns every instance type of the job's ladder, each once."""
    shapes = (shape for rung in job.ladder for shape in list_shapes(job, rung))
    return tuple(dict.fromkeys(shape.rung.instance_type for shape in shapes))


def list_containers(job: Job) -> tuple[Container, ...]:
    """Returns the containers that the job's nodes run."""
    every = (job.container, *(role.container for role in job.roles))
    return tuple(one for one in every if one is not None)


def find_missing(step: Step) -> Rung | None:
    """Returns the type of which a rung of several had none; None where the answer is about the whole rung, or came without a call for it:
    what closes a rung beside another one, as a quota, does not say by which of its types."""
    answer, kinds = step.answer, step.rung.shapes
    if answer is None or not kinds:
        return None
    is_own = (
        answer.outcome is LaunchOutcome.NO_CAPACITY and not answer.refused and not answer.code.startswith("NotAsked")
    )
    return kinds[answer.shape].rung if answer.shape or is_own else None


def name_markets(rung: Rung) -> str:
    """Returns every market in which the rung's machines are bought, each once."""
    return " + ".join(dict.fromkeys(one.rung.market.value for one in rung.shapes)) or rung.market.value


def seen_by(job: Job, rank: int) -> Job:
    """Returns the job as one node runs it: with the command and the image of its role."""
    place = find_place(job.roles, rank)
    return replace(job, command=place.role.command, container=place.role.container) if place else job

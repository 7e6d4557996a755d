"""Who this child is: the environment that the job definition, the array and Batch itself give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from contract.environments import ChildEnvironment
from grid_child.trouble import Unfit

INDEX = "AWS_BATCH_JOB_ARRAY_INDEX"
ATTEMPT = "AWS_BATCH_JOB_ATTEMPT"
JOB = "AWS_BATCH_JOB_ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildIdentity:
    """A child."""

    environment: ChildEnvironment
    place: int
    """In its round: the index of its line in the first one, the place in the list of work in a later one."""
    attempt: int
    """Of Batch, from 1."""
    job: str
    """Of Batch; empty where that is unknown."""

    @property
    def first_look(self) -> bool:
        """Whether this is the first attempt of the first round, before which no child can have submitted the line."""
        return self.attempt == 1 and self.environment.round == 1


def identify(variables: Mapping[str, str]) -> ChildIdentity:
    """Raises Unfit that names the variable."""
    try:
        environment = ChildEnvironment.read(variables)
    except KeyError as missing:
        raise Unfit(f"The variable {missing.args[0]} is missing in the environment") from None
    except ValueError as problem:
        raise Unfit(f"The environment does not fit: {problem}") from None
    if environment.round < 1:
        raise Unfit(f"The round is {environment.round}; rounds are counted from 1")
    place = environment.first + _number(variables, INDEX, 0)
    if place < 0:
        raise Unfit(f"The place of this child is {place}; places are counted from 0")
    return ChildIdentity(
        environment=environment, place=place, attempt=_number(variables, ATTEMPT, 1), job=variables.get(JOB, "")
    )


def _number(variables: Mapping[str, str], name: str, otherwise: int) -> int:
    text = variables.get(name, "")
    if not text:
        return otherwise
    if not text.isascii() or not text.isdecimal():
        raise Unfit(f"{name} is {text!r}; it is a whole number, written by Batch")
    return int(text)

"""Reads what an earlier search contributes: all of it to one that resumes it, its trials to one that it warms."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aws import executions
from contract.environments import GridEnvironment
from contract.grid import GridPrefix, LineOutcome
from contract.search import Search, Trial, name_round
from refusals.wording import plain
from searches.policy import SearchState, read_standing
from searches.request import SearchRequest, read
from searches.store import SearchStore
from searches.study import fits

UNFINISHED = frozenset({"", LineOutcome.STOPPED.value})
"""How trials of a round end that was ended before them."""


class UnusableSearch(Exception):
    """The earlier search cannot be used; the message is a line of the refusal."""


@dataclass(frozen=True, slots=True)
class EarlierSearch:
    """A search that has ended, or was stopped."""

    search: Search
    wanted: SearchRequest
    standing: SearchState
    rounds: int


def read_earlier(store: SearchStore, field: str, name: str) -> EarlierSearch:
    """Raises UnusableSearch where there is no such search."""
    search = store.search(name)
    if search is None:
        raise UnusableSearch(
            f"{field}: {plain(name)} is no search of this deployment; allowed: the name of one that has begun"
        )
    wanted = read(search.given)[0]
    count = store.count_rounds(name)
    return EarlierSearch(search, wanted, read_standing(search, wanted, store.rounds(name, count)), count)


def address_grid(env: GridEnvironment, search: str, round_: int) -> str:
    """Returns the ARN of the execution of a round's grid."""
    return f"{env.machine.replace(':stateMachine:', ':execution:')}:{name_round(search, round_)}"


def resume(store: SearchStore, env: GridEnvironment, old: EarlierSearch) -> Search:
    """Returns the search with the trials that have ended, and with those first that have not. Raises UnusableSearch while something
    runs."""
    name = old.search.id
    if executions.status(old.search.execution).runs:
        raise UnusableSearch(f"resume: {name} still runs; allowed: a search that has ended, or was stopped")
    unfinished: list[Trial] = []
    if old.rounds:
        status = executions.status(address_grid(env, name, old.rounds))
        if status.runs or not is_settled(store, name_round(name, old.rounds)):
            raise UnusableSearch(
                f"resume: the last round of {name} is still being ended; allowed: the same, some minutes later"
            )
        if status.name != "SUCCEEDED":
            unfinished = [one for one in old.standing.last if one.outcome in UNFINISHED]
    asked_before = sum(old.standing.rounds)
    gone = {one.number for one in unfinished}
    return replace(
        old.search,
        earlier=tuple(one for one in old.standing.trials if one.number not in gone),
        first=(*(one.parameters for one in unfinished), *old.search.first[asked_before:]),
        spent_usd=old.standing.spent_usd,
    )


def is_settled(store: SearchStore, grid: str) -> bool:
    """Whether a grid whose execution is over has been counted, if it was planned."""
    prefix = GridPrefix(grid)
    return store.head(prefix.description) is None or store.head(prefix.report) is not None


def warm(wanted: SearchRequest, old: EarlierSearch) -> tuple[tuple[Trial, ...], list[str]]:
    """Returns the trials that the sampler may know, and a warning where some do not fit. Raises UnusableSearch where none can."""
    name, theirs = old.search.id, old.wanted.objective
    if theirs != wanted.objective:
        what = f"{theirs.direction.value} {theirs.metric}"
        raise UnusableSearch(f"warm_start: {name} had the objective {what}; allowed: a search with the same objective")
    told = [replace(one, number=-1) for one in old.standing.trials if one.value is not None]
    fitting = tuple(one for one in told if fits(wanted, one))
    if not fitting:
        raise UnusableSearch(
            f"warm_start: none of the {len(told)} trials of {name} with a value has the parameters of this search; allowed: one with "
            "the same names of parameters, and values that this one has too"
        )
    left = len(told) - len(fitting)
    return fitting, [f"warm_start: {left} trials of {name} have values that this search has not"] if left else []

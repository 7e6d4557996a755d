"""Decides what a round's records say of its trials, and whether a search goes on: facts in, a verdict with its reason out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contract.errors import InvalidRequest, SearchFailed
from contract.grid import LineOutcome, Record
from contract.metric_values import describe_value
from contract.search import Direction, Search, Trial
from contract.text import one_line
from searches.request import SearchRequest

SHOWN = 10
"""The most reasons that a message names."""
LEAST_LOST = 4
"""Rounds that failed as a whole end a search once they have so many trials: a round of one or two may fail by chance."""
MOST_REASON = 300
"""The most characters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRound:
    """A round as S3 has it."""

    number: int
    """From 1."""
    grid: str
    questions: list[dict[str, Any]]
    """The line of each trial."""
    records: list[Record | None]
    """Of each line; None for one that has none."""
    most_usd: list[float | None]
    """The most that each line costs; empty where the grid was not planned, so that nothing ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """What is known of a search."""

    trials: tuple[Trial, ...]
    """Those of its rounds, of the search that it resumes and of its warm start, in the order in which they were asked."""
    rounds: tuple[int, ...]
    """How many trials each of its own rounds has."""
    spent_usd: float
    most_usd: tuple[float, ...]
    """The most that a trial of each place could cost, by the newest plan; empty without a cap."""

    @property
    def own(self) -> tuple[Trial, ...]:
        """The trials that count."""
        return tuple(one for one in self.trials if one.number >= 0)

    @property
    def number(self) -> int:
        """The number of the next trial."""
        return max((one.number for one in self.trials), default=-1) + 1

    @property
    def last(self) -> tuple[Trial, ...]:
        """The trials of the last round."""
        return self.own[-self.rounds[-1] :] if self.rounds else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchVerdict:
    """Whether the search goes on."""

    count: int
    """Trials of the next round; 0 ends the search."""
    why: str = ""
    """Why it ends."""
    failures: tuple[str, ...] = field(default=())
    """Reasons of a round all of whose trials failed, the most frequent first."""

    @property
    def error(self) -> dict[str, str] | None:
        """Error and cause of a search that failed; None for one that ends well, or goes on."""
        if not self.failures:
            return None
        return {"error": SearchFailed.__name__, "cause": "\n".join([self.why, *self.failures])}


def read_standing(search: Search, wanted: SearchRequest, rounds: Sequence[SearchRound]) -> SearchState:
    """Returns what rounds that have ended come to."""
    trials, sizes = list(search.earlier), list[int]()
    number = max((one.number for one in trials), default=-1) + 1
    spent, most = search.spent_usd, list(search.most_usd)
    for one in rounds:
        found = [read_trial(wanted, one, index, number + index) for index in range(len(one.questions))]
        trials += found
        number += len(found)
        sizes.append(len(found))
        spent += math.fsum(trial.cost_usd or 0.0 for trial in found)
        for trial, usd in zip(found, one.most_usd, strict=False):  # a grid that was not planned has none
            if most and usd is not None:
                most[trial.number % len(most)] = usd
    return SearchState(trials=tuple(trials), rounds=tuple(sizes), spent_usd=spent, most_usd=tuple(most))


def read_trial(wanted: SearchRequest, round_: SearchRound, index: int, number: int) -> Trial:
    """Returns what became of one line of a round whose grid has ended."""
    record, own = round_.records[index], round_.questions[index]["hyperparameters"]
    value, reason = _read_value(record, wanted.objective.metric)
    return Trial(
        number=number,
        parameters={name: own[name] for name in sorted(wanted.search)},
        value=value,
        outcome=record.outcome.value if record else "",
        reason=reason,
        grid=round_.grid,
        index=index,
        region=record.region if record else "",
        training=record.training if record else "",
        seconds=record.seconds if record else None,
        cost_usd=_read_cost(record, round_, index),
        artifact=record.artifact if record else "",
        log=record.log if record else "",
        own_failure=record.own_failure if record else None,
    )


def _read_cost(record: Record | None, round_: SearchRound, index: int) -> float | None:
    """What is not known counts as the most that was planned; a grid that was not planned costs nothing."""
    if record is not None and record.cost_usd is not None:
        return record.cost_usd
    return round_.most_usd[index] if index < len(round_.most_usd) else 0.0


def _read_value(record: Record | None, metric: str) -> tuple[float | None, str]:
    if record is None:
        return None, "its grid ended before it had a record"
    if record.outcome is not LineOutcome.COMPLETED:
        return None, record.reason or f"it is {record.outcome.value}"
    value = record.metrics.get(metric)
    if value is None or not math.isfinite(value):
        has = f"it reported {', '.join(sorted(record.metrics))}" if record.metrics else "it reported none"
        why = has if value is None else describe_value(value)
        why = record.metric_problems.get(metric) or why
        return None, f"it completed without the metric {metric} ({why}); its log is {record.log or 'not known'}"
    return value, ""


def find_best(trials: Sequence[Trial], direction: Direction) -> Trial | None:
    """Returns the best trial, of equal ones the first; None where none has a value."""
    best: Trial | None = None
    for one in trials:
        if one.value is None:
            continue
        if best is None or best.value is None or direction.is_better(one.value, best.value):
            best = one
    return best


def decide(wanted: SearchRequest, state: SearchState, combinations: float = math.inf) -> SearchVerdict:
    """Decides how many trials the next round has. `combinations` is how many there can be at all."""
    verdict = _decide_size(wanted, state, combinations)
    if verdict.count:
        return _describe_lost_rounds(state) or verdict
    if find_best(state.own, wanted.objective.direction) is None:
        return replace(verdict, failures=group_reasons(state.own))
    return verdict


def _describe_lost_rounds(state: SearchState) -> SearchVerdict | None:
    """Ends a search whose last rounds failed as a whole, once these are so many trials that it is not chance; None for all others."""
    lost, first = list[Trial](), len(state.rounds)
    for size in reversed(state.rounds):
        end = len(state.own) - len(lost)
        some = state.own[end - size : end]
        if any(one.value is not None for one in some):
            break
        lost[:0], first = some, first - 1
    if len(lost) < LEAST_LOST:
        return None
    last = len(state.rounds)
    which = f"round {last}" if first + 1 == last else f"rounds {first + 1} to {last}"
    return SearchVerdict(count=0, why=f"All {len(lost)} trials of {which} failed.", failures=group_reasons(lost))


def _decide_size(wanted: SearchRequest, state: SearchState, combinations: float) -> SearchVerdict:
    own = state.own
    left = min(float(wanted.trials), combinations) - len(own)
    if left < 1:
        of = "" if wanted.trials <= combinations else f", every combination of the {wanted.trials} that were allowed"
        return SearchVerdict(count=0, why=f"All {len(own)} trials are told{of}.")
    if _is_out_of_patience(wanted, state):
        return SearchVerdict(count=0, why=f"{wanted.patience} rounds brought nothing better (patience).")
    count = int(min(wanted.parallel, left))
    rest = rest_usd(wanted, state)
    if rest is None or not state.most_usd:
        return SearchVerdict(count=count)
    payable, needed = 0, list[float]()
    while payable < count:
        needed.append(state.most_usd[(state.number + payable) % len(state.most_usd)])
        if math.fsum(needed) > rest:
            break
        payable += 1
    if not payable:
        why = f"${rest:,.2f} of max_cost_usd are left, and one more trial could cost ${needed[-1]:,.2f}."
        return SearchVerdict(count=0, why=why)
    return SearchVerdict(count=payable)


def _is_out_of_patience(wanted: SearchRequest, standing: SearchState) -> bool:
    if wanted.patience is None or len(standing.rounds) <= wanted.patience:
        return False
    direction, late = wanted.objective.direction, sum(standing.rounds[-wanted.patience :])
    before, after = find_best(standing.own[:-late], direction), find_best(standing.own[-late:], direction)
    if after is None or after.value is None:
        return True
    return before is not None and before.value is not None and not direction.is_better(after.value, before.value)


def group_reasons(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Returns the reasons of failed trials, equal ones as one, the most frequent first."""
    found = Counter[str]()
    for one in trials:
        if one.value is None:
            text = one.reason
            for own, word in ((one.training, "<training>"), (one.region, "<region>")):
                text = text.replace(own, word) if own else text
            found[one_line(" ".join(text.split()), MOST_REASON)] += 1
    return tuple(
        f"- {count} {'trial' if count == 1 else 'trials'}: {reason}" for reason, count in found.most_common(SHOWN)
    )


def is_unaffordable(error: str, cause: str) -> bool:
    """Whether Plan refused a round for its cost alone: prices rise, and places differ."""
    reasons = [one for one in cause.splitlines() if one.startswith("- ")]
    return (
        error == InvalidRequest.__name__
        and bool(reasons)
        and all(one.startswith("- max_cost_usd: ") for one in reasons)
    )


def rest_usd(wanted: SearchRequest, standing: SearchState) -> float | None:
    """Returns what the next round's grid may cost, rounded down to cents; None without a cap."""
    if wanted.max_cost_usd is None:
        return None
    return floor_cents(wanted.max_cost_usd - standing.spent_usd)


def floor_cents(usd: float) -> float:
    """Rounds down to cents."""
    return math.floor(usd * 100 + 1e-6) / 100

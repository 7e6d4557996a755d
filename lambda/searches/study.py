"""The study: rebuilt from trials that have ended, and asked for the parameters of the next ones. The same trials and the same seed make
the same questions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial

from contract.search import MOST_TRIALS, Direction, Trial
from refusals.wording import plain, shown
from searches.request import Parameter, Sampler, SearchRequest

optuna.logging.set_verbosity(optuna.logging.WARNING)
LEAST_FOR_IMPORTANCE = 10
"""With fewer trials an importance says nothing."""
GOOD_SHARE, MOST_GOOD = 0.2, 25
"""Of a search with failures, TPE takes this share of its trials as the good ones, twice its default. Where an edge (of memory, of time)
bounds what works, the best trials lie at the edge, and half of what is drawn near them alone lies beyond it."""


def ask(
    wanted: SearchRequest, trials: Sequence[Trial], first: Sequence[Mapping[str, Any]], *, number: int, count: int
) -> list[dict[str, Any]]:
    """Returns the parameters of the next `count` trials, fewer where the sampler grid has no more. `trials` have ended; `first` are
    parameters that come before those of the sampler; `number` counts the trials that were asked before."""
    space = read_space(wanted)
    if wanted.sampler is Sampler.GRID:
        return _fill(space, trials, first[:count], count)
    judged = judge_failures(trials, wanted.objective.direction)
    study = _rebuild(wanted, space, judged, _sampler(wanted, number, _count_good(trials, judged)))
    for one in map(dict, first[:count]):
        study.enqueue_trial(one)
    return [dict(study.ask(space).params) for _ in range(count)]


def judge_failures(trials: Sequence[Trial], direction: Direction) -> list[Trial]:
    """Returns the trials as the sampler learns from them, and as no person sees them: a trial that failed by itself has a value right
    behind the worst that was seen. Until a trial has a value, no failure has one: some of equal trials would be the good ones."""
    values = [one.value for one in trials if one.value is not None]
    if not values:
        return list(trials)
    minimizes = direction is Direction.MINIMIZE
    behind = math.nextafter(max(values) if minimizes else min(values), math.inf if minimizes else -math.inf)
    return [replace(one, value=behind) if one.failed_by_itself else one for one in trials]


def count_combinations(wanted: SearchRequest) -> float:
    """Returns how many trials the sampler grid has; infinity for the others."""
    if wanted.sampler is not Sampler.GRID:
        return math.inf
    return math.prod(_count(one) for one in read_space(wanted).values())


def rank_importance(wanted: SearchRequest, trials: Sequence[Trial]) -> dict[str, float]:
    """Returns each parameter's share of the objective's differences (PED-ANOVA), the largest first; empty where that is not known."""
    if sum(one.value is not None for one in trials) < LEAST_FOR_IMPORTANCE:
        return {}
    study = _rebuild(wanted, read_space(wanted), trials, RandomSampler(seed=wanted.seed))
    try:
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    except (ValueError, RuntimeError):  # all values are equal, or all parameters are
        return {}
    return {name: round(float(share), 4) for name, share in found.items() if math.isfinite(share)}


def read_space(wanted: SearchRequest) -> dict[str, BaseDistribution]:
    """Returns the parameters as Optuna has them, in the order of their names."""
    return {name: _distribution(one) for name, one in sorted(wanted.search.items())}


def list_misfits(wanted: SearchRequest, parameters: Mapping[str, Any]) -> list[str]:
    """Names what is wrong with parameters that a person gave, a line for each."""
    problems, space = list[str](), read_space(wanted)
    for name, value in parameters.items():
        if name not in space:
            problems.append(f"{plain(name)}: is no parameter of search; allowed: {', '.join(map(plain, space))}")
        elif not _holds(space[name], value):
            problems.append(
                f"{plain(name)}: {shown(value)} is not one of its values; allowed: a value that search.{plain(name)} has"
            )
    return problems


def write_values(wanted: SearchRequest, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters that a person gave as the sampler writes them: 2 for a whole number that is given as 2.0."""
    space = read_space(wanted)
    return {name: _write_value(space[name], value) for name, value in parameters.items()}


def _write_value(one: BaseDistribution, value: Any) -> Any:
    if isinstance(one, IntDistribution):
        return int(value)
    if not isinstance(one, FloatDistribution):
        return value
    return float(value) if one.step is None else _step(one.low, one.step, round((value - one.low) / one.step))


def fits(wanted: SearchRequest, trial: Trial) -> bool:
    """Whether a trial of another search has all parameters of this one and no others, with values that they may have."""
    return trial.parameters.keys() == wanted.search.keys() and not list_misfits(wanted, trial.parameters)


def _holds(distribution: BaseDistribution, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return any(type(one) is type(value) and one == value for one in distribution.choices)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(distribution, IntDistribution) and not float(value).is_integer():
        return False
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except ValueError:  # not a number, or 0 where there are powers of ten alone
        return False


def _distribution(one: Parameter) -> BaseDistribution:
    if one.choice is not None:
        return CategoricalDistribution(one.choice)
    if one.int_ is not None:
        low, high = one.int_
        return IntDistribution(int(low), _last(low, high, one.step or 1), log=one.log, step=int(one.step or 1))
    assert one.float_ is not None
    low, high = map(float, one.float_)
    return (
        FloatDistribution(low, high, log=one.log, step=one.step) if one.step is None else _stepped(low, high, one.step)
    )


def _stepped(low: float, high: float, step: float) -> FloatDistribution:
    steps = (Decimal(repr(high)) - Decimal(repr(low))) // Decimal(repr(step))
    return FloatDistribution(low, _step(low, step, int(steps)), step=step)


def _step(low: float, step: float, number: int) -> float:
    """Returns the value that a person would write: 0.3, where floats have three steps of 0.1 as 0.30000000000000004."""
    return float(Decimal(repr(low)) + number * Decimal(repr(step)))


def _last(low: float, high: float, step: float) -> int:
    """Returns the highest value that whole steps reach: Optuna warns of others."""
    return int(low + (high - low) // step * step)


def _count_good(trials: Sequence[Trial], judged: Sequence[Trial]) -> int | None:
    """Returns how many trials TPE takes as good ones, none that failed among them; None, for its default, where none failed by itself."""
    known, learnt = (sum(one.value is not None for one in some) for some in (trials, judged))
    return min(math.ceil(GOOD_SHARE * learnt), MOST_GOOD, known) if learnt > known else None


def _sampler(wanted: SearchRequest, number: int, good: int | None = None) -> BaseSampler:
    """Makes a sampler whose random numbers depend on the seed and on where the round begins: a repeat draws the same. `good` is how many
    trials TPE takes as good ones."""
    seed = int.from_bytes(hashlib.sha256(f"{wanted.seed} {number}".encode()).digest()[:4])
    if wanted.sampler is Sampler.TPE:
        sampler = TPESampler(seed=seed, constant_liar=True)  # so that trials of one round keep away from each other
        if good is not None:
            sampler._gamma = lambda _: good  # as an argument it works too, and warns that a later version has none
        return sampler
    return RandomSampler(seed=seed)


def _rebuild(
    wanted: SearchRequest, space: dict[str, BaseDistribution], trials: Sequence[Trial], sampler: BaseSampler
) -> optuna.Study:
    study = optuna.create_study(direction=wanted.objective.direction.value, sampler=sampler)
    for one in trials:
        state = TrialState.FAIL if one.value is None else TrialState.COMPLETE
        study.add_trial(create_trial(state=state, value=one.value, params=one.parameters, distributions=space))
    return study


def _fill(
    space: Mapping[str, BaseDistribution],
    trials: Sequence[Trial],
    queue: Sequence[Mapping[str, Any]],
    count: int,
) -> list[dict[str, Any]]:
    """Returns the queue, its entries completed, and behind it the next combinations that were not tried; the last name's values change
    fastest."""
    tried, found = {_key(one.parameters) for one in trials if one.number >= 0}, list[dict[str, Any]]()
    tried |= {_key(one) for one in queue if one.keys() == space.keys()}
    left: dict[tuple[tuple[str, Any], ...], Iterator[dict[str, Any]]] = {}
    for one in ({}, *queue):
        left.setdefault(_key(one), _untried(space, tried, one))
    for one in [*queue, *[{}] * (count - len(queue))]:
        whole = one if one.keys() == space.keys() else next(left[_key(one)], None)
        if whole is None and one:  # all that agree with it were tried
            whole = next(left[()], None)
        if whole is None:
            break
        tried.add(_key(whole))
        found.append(dict(whole))
    return found


def _untried(
    space: Mapping[str, BaseDistribution], tried: Set[tuple[tuple[str, Any], ...]], given: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    every = product(*([given[name]] if name in given else _values(one) for name, one in space.items()))
    whole = (dict(zip(space, values, strict=True)) for values in every)
    return (one for one in whole if _key(one) not in tried)


def _key(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Equal for equal values: of a range 1 is 1.0; of choices true is not 1, and they have no two that are equal."""
    return tuple(sorted(parameters.items()))


def _count(one: BaseDistribution) -> int:
    if isinstance(one, CategoricalDistribution):
        return len(one.choices)
    if isinstance(one, IntDistribution):
        return (one.high - one.low) // one.step + 1
    assert isinstance(one, FloatDistribution)
    assert one.step is not None
    return round((one.high - one.low) / one.step) + 1


def _values(one: BaseDistribution) -> Sequence[Any]:
    """Returns the first values, as many as there can be trials: no combination of later ones is among the first of all."""
    most = min(_count(one), MOST_TRIALS)
    if isinstance(one, CategoricalDistribution):
        return one.choices
    if isinstance(one, IntDistribution):
        return [one.low + place * one.step for place in range(most)]
    assert isinstance(one, FloatDistribution)
    assert one.step is not None
    return [_step(one.low, one.step, place) for place in range(most)]

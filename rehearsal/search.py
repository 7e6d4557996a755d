"""A search in the rehearsed account: its execution, its rounds and trials, and Optuna alone beside it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contract import names
from contract.search import SearchPrefix, name_round
from rehearsal.deployment import ACCOUNT
from rehearsal.grid import GridJob
from rehearsal.yard import StartedJob, Yard


class SearchJob(GridJob):
    """One execution of the Search machine, as the console and the bucket show it."""

    @property
    def files(self) -> SearchPrefix:
        return SearchPrefix(self.name)

    def report(self) -> dict[str, Any]:
        """Returns report.json; empty before it is written."""
        found: dict[str, Any] = json.loads(self.read(self.files.report) or b"{}")
        return found

    def rows(self) -> list[dict[str, str]]:
        """Returns the rows of trials.csv."""
        return list(csv.DictReader(io.StringIO((self.read(self.files.trials) or b"").decode())))

    def rounds(self) -> list[GridJob]:
        """Returns the grids of its rounds that have begun."""
        arn, found = machine(self.yard, names.grid_machine).replace(":stateMachine:", ":execution:"), list[GridJob]()
        while self.read(self.files.questions(len(found) + 1)) is not None:
            name = name_round(self.name, len(found) + 1)
            found.append(GridJob(self.yard, name, f"{arn}:{name}"))
        return found

    def questions(self) -> list[dict[str, Any]]:
        """Returns the parameters of every trial that was asked, in order."""
        lines = [
            line
            for one in range(1, len(self.rounds()) + 1)
            for line in (self.read(self.files.questions(one)) or b"").splitlines()
        ]
        return [json.loads(line)["hyperparameters"] for line in lines]


def machine(yard: Yard, named: Callable[[str], str] = names.search_machine) -> str:
    """Returns the ARN of the Search machine, or of the machine that `named` names."""
    return f"arn:aws:states:{yard.region}:{ACCOUNT}:stateMachine:{named(yard.context['trainyard']['deployment'])}"


def start(yard: Yard, request: Mapping[str, Any], name: str) -> SearchJob:
    """Starts an execution with the request as its input."""
    return SearchJob(yard, name, yard.execute(machine(yard), request, name))


def ask_optuna(request: Mapping[str, Any], score: Callable[..., float], trials: int) -> list[dict[str, Any]]:
    """Returns what Optuna alone asks: one study in this process, which is told every round at once. Nothing of the product's is used but
    how its README says that a round's seed is made, and the names of the values."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {name: _distribution(one) for name, one in sorted(request["search"].items())}
    study = optuna.create_study(direction=request["objective"]["direction"])
    asked = list[dict[str, Any]]()
    while len(asked) < trials:
        digest = hashlib.sha256(f"{request.get('seed', 0)} {len(asked)}".encode()).digest()
        study.sampler = optuna.samplers.TPESampler(seed=int.from_bytes(digest[:4]), constant_liar=True)
        some = [study.ask(space) for _ in range(min(request["parallel"], trials - len(asked)))]
        for one in some:
            study.tell(one, score(**one.params))
        asked += [dict(one.params) for one in some]
    return asked


def ask_in_sequence(request: Mapping[str, Any], score: Callable[..., float], trials: int) -> list[dict[str, Any]]:
    """Returns what Optuna asks that is told each trial before the next, with its own defaults."""
    import optuna

    space = {name: _distribution(one) for name, one in sorted(request["search"].items())}
    sampler = optuna.samplers.TPESampler(seed=request.get("seed", 0))
    study = optuna.create_study(direction=request["objective"]["direction"], sampler=sampler)
    for _ in range(trials):
        one = study.ask(space)
        study.tell(one, score(**one.params))
    return [dict(one.params) for one in study.trials]


def _distribution(given: Mapping[str, Any]) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if "choice" in given:
        return CategoricalDistribution(given["choice"])
    kind = FloatDistribution if "float" in given else IntDistribution
    return kind(*given["float" if "float" in given else "int"], log=given.get("log", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSummary:
    """What one search came to, beside Optuna alone."""

    search: str
    seed: int
    status: str
    trials: int
    rounds: int
    found_after: int | None
    """Trials until the objective was good enough; None where it never was."""
    alone_after: int | None
    """The same for Optuna alone, with the same seeds of rounds ..."""
    in_sequence_after: int | None
    """... and for Optuna that is told every trial before the next."""
    same_questions: bool
    """Whether the search asked what Optuna alone asks."""
    best: float | None
    cost_usd: float
    why: str
    trainings: int
    """Trainings that SageMaker ever had for its rounds."""
    regions: dict[str, int] = field(default_factory=dict)
    execution_s: float = 0.0


def first_found(values: Sequence[float | None], at: float) -> int | None:
    """Returns how many trials it took until one was good enough."""
    return next((place for place, one in enumerate(values, 1) if one is not None and one >= at), None)


def summarise(
    job: SearchJob, request: Mapping[str, Any], score: Callable[..., float], found_at: float
) -> SearchSummary:
    """Reads everything back from the places that the product's documentation names."""
    execution, report, rows, asked = job.describe(), job.report(), job.rows(), job.questions()
    alone = ask_optuna(request, score, request["trials"])
    sequence = ask_in_sequence(request, score, 3 * request["trials"])
    regions: dict[str, int] = {}
    for row in rows:
        regions[row["region"]] = regions.get(row["region"], 0) + 1
    ended = execution.get("stopDate", execution["startDate"]).timestamp()
    return SearchSummary(
        search=job.name,
        seed=request.get("seed", 0),
        status=execution["status"],
        trials=len(rows),
        rounds=len(job.rounds()),
        found_after=first_found([float(row["value"]) if row["value"] else None for row in rows], found_at),
        alone_after=first_found([score(**one) for one in alone], found_at),
        in_sequence_after=first_found([score(**one) for one in sequence], found_at),
        same_questions=[{name: one[name] for name in request["search"]} for one in asked] == alone[: len(asked)],
        best=next(iter(report["best"]["metric"].values())) if report.get("best") else None,
        cost_usd=report.get("cost_usd", 0.0),
        why=report.get("why", "") or execution.get("cause", ""),
        trainings=sum(len(one.trainings()) for one in job.rounds()),
        regions=regions,
        execution_s=round(ended - execution["startDate"].timestamp(), 1),
    )


def shortcomings(summary: SearchSummary) -> list[str]:
    """Returns why a rehearsed search is not a success, a line per reason; empty if all is as promised."""
    lines, name = [], summary.search
    if summary.status != "SUCCEEDED":
        lines.append(f"{name} ended as {summary.status}: {summary.why}")
    if summary.trainings != summary.trials:
        lines.append(f"{name} has {summary.trials} trials, and there were {summary.trainings} trainings")
    if not summary.same_questions:
        lines.append(f"{name} asked other questions than Optuna alone")
    if summary.found_after is None or (summary.alone_after is not None and summary.found_after > summary.alone_after):
        lines.append(f"{name} found it after {summary.found_after} trials, Optuna alone after {summary.alone_after}")
    return lines


def left(jobs: Sequence[StartedJob]) -> list[str]:
    """Returns what of all searches still runs, a line for each kind."""
    lines = []
    for job in jobs:
        if isinstance(job, SearchJob) and (running := [one.name for one in job.rounds() if one.runs()]):
            lines.append(f"grids of {job.name} are left: {', '.join(running)}")
    one = next((job for job in jobs if isinstance(job, SearchJob)), None)
    if one and (trainings := one.trainings_left()):
        lines.append(f"trainings are left: {', '.join(trainings)}")
    if one and (children := one.children_left()):
        lines.append(f"children are left: {', '.join(children)}")
    if one and one.processes_left():
        lines.append(f"{one.processes_left()} processes are left")
    return lines

"""Writes what came of a search for people: trials.csv, best.json, report.json, and a message."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.s3 import as_json
from aws.topic import publish
from contract import links
from contract.environments import GridCollectEnvironment
from contract.search import Search, SearchPrefix, Trial
from searches import study
from searches.policy import SearchState, find_best, group_reasons, read_standing
from searches.request import SearchRequest, read, write_line
from searches.store import SearchStore
from searches.table import write_table

logger = Logger(service="search")
WHEN = "reported_at"


def report(
    env: GridCollectEnvironment, store: SearchStore, search: Search, why: str, problem: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Writes the files, and publishes a message unless the report there says the same already. Returns its short form."""
    wanted, prefix = read(search.given)[0], SearchPrefix(search.id)
    standing = read_standing(search, wanted, store.rounds(search.id, store.count_rounds(search.id)))
    best = find_best(standing.own, wanted.objective.direction)
    store.put(prefix.trials, write_table(wanted, standing.own).encode())
    if best is not None:
        store.put(prefix.best, as_json(describe_best(wanted, search, best)))
    whole = {
        "search": search.id,
        "execution": search.execution,
        "started_at": search.started_at,
        "owner": wanted.owner,
        "why": why,
        "problem": dict(problem) if problem else None,
        **sum_up(wanted, search, standing),
        "best": describe_best(wanted, search, best) if best else None,
        "page": links.of_page(search.execution, store.name, prefix.page),
        "results": {
            "trials": f"s3://{store.name}/{prefix.trials}",
            "best": f"s3://{store.name}/{prefix.best}" if best else "",
        },
    }
    before = _read(store.get(prefix.report))
    if before is not None and _without_words(before) == _without_words(json.loads(as_json(whole))):
        return shorten(whole)
    # In this order: the written report keeps people from being told twice, and twice is better than not at all.
    try:
        publish(env.topic, write_subject(env.deployment, whole), write_message(env.deployment, whole))
    except (ClientError, BotoCoreError):
        logger.exception("the message could not be sent", search=search.id)
    store.put(prefix.report, as_json({**whole, WHEN: time.time()}))
    return shorten(whole)


def shorten(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a report for the machine's output, which may have 256 KB: a template may be as large as that, and there may be a thousand
    rounds."""
    best = whole["best"]
    found = {name: one for name, one in whole.items() if name != "history"}
    return found | {"best": {name: one for name, one in best.items() if name != "line"} if best else None}


def sum_up(wanted: SearchRequest, search: Search, standing: SearchState) -> dict[str, Any]:
    """Returns counts, costs, the best value after each round, and the parameters' importance."""
    own, direction = standing.own, wanted.objective.direction
    history, end = list[dict[str, Any]](), len(own) - sum(standing.rounds)
    for number, size in enumerate(standing.rounds, 1):
        end += size
        best = find_best(own[:end], direction)
        history.append({"round": number, "trials": end, "best": best.value if best else None})
    return {
        "objective": wanted.objective.model_dump(mode="json"),
        "sampler": wanted.sampler.value,
        "seed": wanted.seed,
        "trials": len(own),
        "with_value": sum(one.value is not None for one in own),
        "rounds": len(standing.rounds),
        "cost_usd": round(standing.spent_usd, 6),
        "max_cost_usd": wanted.max_cost_usd,
        "history": history,
        "importance": study.rank_importance(wanted, own),
        "failures": list(group_reasons(own)),
        "warnings": list(search.warnings),
    }


def describe_best(wanted: SearchRequest, search: Search, best: Trial) -> dict[str, Any]:
    """Returns the best trial, and the line of a manifest that trains it again."""
    return {
        "search": search.id,
        "trial": best.number,
        "parameters": best.parameters,
        "metric": {wanted.objective.metric: best.value},
        "artifact": best.artifact,
        "region": best.region,
        "job": best.training,
        "log": best.log,
        "line": write_line(wanted, best.number, best.parameters),
    }


def write_subject(deployment: str, whole: Mapping[str, Any]) -> str:
    best = whole["best"]
    how = "failed: " if whole["problem"] else ""
    value = (
        ", ".join(f"{name} {value:.6g}" for name, value in best["metric"].items()) if best else "no trial has a value"
    )
    return f"Trainyard {deployment}: search {whole['search']} {how}{whole['trials']} trials, best {value}"


def write_message(deployment: str, whole: Mapping[str, Any]) -> str:
    """Words a report."""
    best, results = whole["best"], whole["results"]
    owner = f", owner {whole['owner']}" if whole["owner"] else ""
    cap = f" of at most ${whole['max_cost_usd']:,.2f}" if whole["max_cost_usd"] is not None else ""
    parts = [
        f"Search {whole['search']} of the deployment {deployment}{owner}.",
        f"It did not end by itself: {whole['problem']['error']}: {whole['problem']['cause']}"
        if whole["problem"]
        else whole["why"],
        f"{whole['trials']} trials in {whole['rounds']} rounds, {whole['with_value']} with a value, about ${whole['cost_usd']:,.2f}{cap}.",
        _word_best(best) if best else "No trial has a value.",
        "\n".join(["Why trials failed:", *whole["failures"]]) if whole["failures"] else "",
        f"Page: {whole['page']}\nAll trials: {results['trials']}"
        + (f"\nThe best one, with the line that trains it again: {results['best']}" if best else ""),
    ]
    return "\n\n".join(part for part in parts if part)


def _word_best(best: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name} {value:.6g}" for name, value in best["metric"].items())
    parameters = ", ".join(f"{name}={value}" for name, value in best["parameters"].items())
    return f"Best: {values} in trial {best['trial']} ({parameters}), {best['artifact'] or 'without an artifact'}."


def _without_words(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what two reports of one end have in common: the machine and the cleanup say in different words why it failed."""
    return {**whole, WHEN: None, "why": None, "problem": bool(whole.get("problem"))}


def _read(body: bytes | None) -> dict[str, Any] | None:
    try:
        found = json.loads(body) if body else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

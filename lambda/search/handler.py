"""The actions of the Search machine's function: ask a round, tell what its grid's records say, report. Each may come twice."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws import executions
from contract.environments import GridCollectEnvironment
from contract.errors import SearchFailed, StillTraining
from contract.search import STARTED_BY, Search, SearchPrefix, name_round, read_search_of
from contract.text import one_line
from grid_plan.line_jobs import load_checks
from job_requests.presets import load_rules
from refusals.wording import refusal
from searches import study
from searches.checking import check
from searches.earlier import address_grid, is_settled
from searches.policy import SearchState, SearchVerdict, decide, is_unaffordable, read_standing, rest_usd
from searches.reporting import report
from searches.request import SearchRequest, read, write_line
from searches.store import SearchStore

logger = Logger(service="search")
MOST_CAUSE = 20_000
"""The most characters of a grid's cause in that of its search: Step Functions takes 32,768 in all."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Does the event's action. Raises InvalidRequest before anything is written, StillTraining while the round's grid runs, and
    SearchFailed where the search cannot go on."""
    env = GridCollectEnvironment.read()
    store = SearchStore(env.bucket)
    execution = event["execution"]
    logger.append_keys(execution=execution["arn"])
    match event["action"]:
        case "ask":
            return _ask(store, _begin(env, store, event["request"], execution), int(event["round"]))
        case "tell":
            search = _known(store, execution)
            return _tell(env, store, search, int(event["round"]), event.get("problem"))
        case "report":
            return report(env, store, _known(store, execution), event.get("why") or "", event.get("problem"))
    raise ValueError(f"unknown action {event['action']!r}")


def _begin(env: GridCollectEnvironment, store: SearchStore, raw: object, execution: Mapping[str, str]) -> Search:
    """Returns the search as it was settled; settles it where this is the first step."""
    name = execution["name"]
    search = store.search(name)
    if search is None:
        checked = check(raw, execution, env, store, load_rules(env.rules), load_checks(env))
        if checked.problems:
            for problem in checked.problems:
                logger.warning("refused", reason=problem)
            raise refusal(checked.problems)
        search = store.settle(checked.search)
    if not _is_ours(search, execution):
        raise refusal(
            [
                f"name: {name} is the name of a search of another execution ({search.execution}, started {search.started_at}); allowed: "
                "a name that no search has had"
            ]
        )
    return search


def _known(store: SearchStore, execution: Mapping[str, str]) -> Search:
    search = store.search(execution["name"])
    if search is None or not _is_ours(search, execution):
        where = f"s3://{store.name}/{SearchPrefix(execution['name']).description}"
        raise SearchFailed(f"search {execution['name']} of {execution['arn']} is not there: {where}")
    return search


def _is_ours(search: Search, execution: Mapping[str, str]) -> bool:
    return (search.execution, search.started_at) == (execution["arn"], execution["started_at"])


def _stand(store: SearchStore, search: Search, rounds: int) -> tuple[SearchRequest, SearchState, SearchVerdict]:
    """Reads the first rounds, which have ended, and decides what follows."""
    wanted = read(search.given)[0]
    standing = read_standing(search, wanted, store.rounds(search.id, rounds))
    return wanted, standing, decide(wanted, standing, study.count_combinations(wanted))


def _ask(store: SearchStore, search: Search, round_: int) -> dict[str, Any]:
    """Writes the questions of the round once, and returns the input of its grid."""
    wanted, standing, verdict = _stand(store, search, round_ - 1)
    if store.questions(search.id, round_) is None:
        first = search.first[sum(standing.rounds) :]
        questions = (
            study.ask(wanted, standing.trials, first, number=standing.number, count=verdict.count)
            if verdict.count
            else []
        )
        if not questions:
            return _end(verdict, round_)
        lines = [write_line(wanted, standing.number + place, one) for place, one in enumerate(questions)]
        store.ensure_questions(search.id, round_, lines)
        logger.info("asked", search=search.id, round=round_, trials=len(lines))
    given = {
        "manifest": f"s3://{store.name}/{SearchPrefix(search.id).questions(round_)}",
        "owner": wanted.owner,
        "allow_duplicates": True,
        STARTED_BY: search.execution,
    }
    rest = rest_usd(wanted, standing)
    given |= {} if rest is None else {"max_cost_usd": rest}
    grid = name_round(search.id, round_)
    return {"next": "train", "round": round_, "why": "", "problem": None, "grid": grid, "input": given}


def _tell(
    env: GridCollectEnvironment, store: SearchStore, search: Search, round_: int, problem: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns what follows a round whose grid has ended. `problem` is why the machine's own wait for it ended."""
    arn = address_grid(env, search.id, round_)
    found = executions.described(arn)
    if found is None:
        cause = problem.get("cause") if problem else "Step Functions does not know it"
        raise SearchFailed(f"the grid of round {round_} ({arn}) was not started: {cause}")
    if read_search_of(name_round(search.id, round_), found.get("input")) != search.execution:
        raise SearchFailed(
            f"the grid {arn} was started by something else than this search, so round {round_} has no name; start a search of another name"
        )
    status = executions.status(arn)
    ended_at = status.ended_at or time.time()
    if status.runs or (
        status.name != "SUCCEEDED"
        and not is_settled(store, name_round(search.id, round_))
        and time.time() < ended_at + 2 * env.timing.grid_stop_patience_s
    ):
        raise StillTraining(f"the grid of round {round_} ({arn}) has not ended yet")
    _, standing, verdict = _stand(store, search, round_)
    logger.info("told", search=search.id, round=round_, trials=len(standing.own), spent_usd=standing.spent_usd)
    if is_unaffordable(status.error, status.cause) and round_ > 1:
        why = "What is left of max_cost_usd pays no further round."
        return {"next": "report", "round": round_, "why": why, "problem": None}
    if status.name != "SUCCEEDED":
        cause = one_line(status.cause, MOST_CAUSE) or "no reason was given"
        error = {
            "error": SearchFailed.__name__,
            "cause": f"The grid of round {round_} ({arn}) is {status.name}: {status.error} {cause}",
        }
        return {"next": "report", "round": round_, "why": error["cause"], "problem": error}
    if verdict.count:
        return {"next": "ask", "round": round_ + 1, "why": "", "problem": None}
    return _end(verdict, round_)


def _end(verdict: SearchVerdict, round_: int) -> dict[str, Any]:
    why = verdict.why or "Every combination is told."
    return {"next": "report", "round": round_, "why": why, "problem": verdict.error}

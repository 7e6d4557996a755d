"""Judges a request by what AWS said of it: where it could run, at which price, and what stands against it.

A line of steps, each called once: each takes what the one before it returns, so that none can run before what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from contract import names
from contract.environments import JobChecksEnvironment
from contract.jobs import Job
from job_checks.facts import Execution, RequestFacts
from job_checks.ladder import PlacedRequest, build_ladder
from job_checks.money import PricedRequest, add_prices
from job_checks.reservations import build_reserved_ladder
from job_checks.resolve import ResolvedRequest, resolve
from job_checks.role_ladder import build_role_ladder
from job_checks.volumes import add_disk
from job_requests.grid_line import list_mark_problems
from job_requests.request import JobRequest
from refusals.wording import plain


def price_request(
    request: JobRequest, execution: Execution, facts: RequestFacts, env: JobChecksEnvironment
) -> PricedRequest:
    """Returns the request with the places where it could run and their prices."""
    return add_prices(add_disk(_place(resolve(request, execution, facts, env))))


def _place(resolved: ResolvedRequest) -> PlacedRequest:
    if resolved.parts:
        return build_role_ladder(resolved)
    return build_ladder(resolved) if resolved.request.reservation is None else build_reserved_ladder(resolved)


def list_problems(priced: PricedRequest, reading: Iterable[str] = ()) -> list[str]:
    """Puts everything that stands against the request in the order in which a person reads it; `reading` was found before AWS was asked."""
    resolved = priced.resolved
    return [
        *_check_name(resolved.execution, resolved.facts),
        *list_mark_problems(resolved.request.grid_line, resolved.execution.arn, resolved.env.deployment),
        *reading,
        *resolved.accelerator_problems,
        *_rename_field(priced.ladder.problems, "accelerators" if resolved.request.accelerators else "instance_types"),
        *priced.money_problems,
        *resolved.network.problems,
        *resolved.process_problems,
        *priced.disk_problems,
        *resolved.code.problems,
        *resolved.image.problems,
        *resolved.name_problems,
    ]


def _rename_field(lines: Iterable[str], field: str) -> list[str]:
    """Returns problems of instance types as problems of the `field` that the request has in their place."""
    types = "instance_types: "
    return [f"{field}: {line.removeprefix(types)}" if line.startswith(types) else line for line in lines]


def _check_name(execution: Execution, facts: RequestFacts) -> list[str]:
    if not names.JOB_PATTERN.fullmatch(execution.name):
        return [f"name: the execution is called {plain(execution.name)}; allowed: {names.JOB_WORDS}"]
    if facts.held_by:
        return [describe_holder(execution, facts.held_by)]
    return []


def describe_holder(execution: Execution, job: Job | None) -> str:
    """Says why the execution cannot have the name; `job` is the one that has it, None if it was written a moment ago."""
    held = f"({job.execution})" if job else "(just now)"
    if job and job.execution == execution.arn:
        began = datetime.fromtimestamp(job.admitted_at, UTC)
        held = f"of the same name, of {began:%Y-%m-%d %H:%M} UTC, whose files are kept"
    return (
        f"name: {execution.name} is the name of a job of another execution {held}; allowed: a name that no job has had"
    )

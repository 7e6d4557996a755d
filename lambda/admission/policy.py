"""Decides whether a request becomes a job: facts and limits in, a job or every reason against it out."""

from __future__ import annotations

from collections.abc import Iterable

from admission.job import build_job
from contract.environments import AdmissionEnvironment
from contract.jobs import Job
from job_checks.facts import Execution, RequestFacts
from job_checks.judge import list_problems, price_request
from job_requests.request import JobRequest
from refusals.wording import refusal


def admit(
    request: JobRequest,
    execution: Execution,
    facts: RequestFacts,
    env: AdmissionEnvironment,
    problems: Iterable[str] = (),
) -> Job:
    """Returns the job. Raises InvalidRequest with every reason against it, those in `problems` (found while reading) first."""
    priced = price_request(request, execution, facts, env)
    if against := list_problems(priced, problems):
        raise refusal(against)
    return build_job(priced, env)

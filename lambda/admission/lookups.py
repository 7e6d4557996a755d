"""Looks up in AWS, and for a commit at its git host, what a request names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from admission.fetching import fetch_commit
from aws.s3 import HomeBucket
from contract.environments import AdmissionEnvironment
from contract.jobs import Job
from job_checks.facts import Execution, RequestFacts
from job_checks.lookups import FactsReader, list_archive
from job_checks.questions import list_questions
from job_requests.request import JobRequest


def look_up_facts(
    request: JobRequest, execution: Execution, env: AdmissionEnvironment, folder: Path, *, held_by: Job | None
) -> RequestFacts:
    """Returns the answers; a commit's archive lies in `folder` afterwards. `held_by`: the job of another execution that has the name,
    whose commit is not fetched."""
    questions = list_questions(request, execution, env)
    facts = replace(FactsReader(env).look_up(request, questions), held_by=held_by)
    if questions.commit is None or held_by:
        return facts
    secret = env.git_hosts[questions.commit.host]
    fetched = fetch_commit(
        questions.commit, execution.name, HomeBucket(env.bucket), secret, folder, questions.files, list_archive
    )
    return replace(facts, code=fetched.code, archive=fetched.archive, not_fetched=fetched.problem)

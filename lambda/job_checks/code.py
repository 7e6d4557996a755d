"""Resolves the code of a request: an archive in S3, or a commit of a git repository."""

from __future__ import annotations

from dataclasses import dataclass

from aws.facts import Object
from contract import keys
from contract.environments import JobChecksEnvironment
from contract.jobs import Code
from git_code.commit import GitCommit, list_fetch_problems, list_host_problems
from job_checks.access import check_code_place
from job_checks.facts import RequestFacts
from job_requests.request import JobRequest
from refusals.archive import absent, object_problems
from refusals.fields import ARCHIVE_SUFFIXES
from refusals.requirements import requirements_problems
from refusals.script import archive_problems
from refusals.wording import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCode:
    """The code of a job, and what stands against it."""

    record: Code | None
    """What job.json says of it; None for a job without code beside its image."""
    problems: list[str]
    """Of the object or the commit, then of what is in the archive."""


def resolve_code(request: JobRequest, job: str, facts: RequestFacts, env: JobChecksEnvironment) -> ResolvedCode:
    """Finds the code among the facts; `job` is the job's name, under whose prefix the code is kept.

    Requirements are installed, and so judged, only where no image brings the libraries.
    """
    source, text = request.code, str(request.code)
    if isinstance(source, GitCommit):
        not_fetched = list_fetch_problems(source, facts.not_fetched, env.git_hosts) if facts.not_fetched else []
        problems = list_host_problems(source, env.git_hosts) or not_fetched
    else:
        problems = _list_object_problems(source, facts, env) if source else []
    problems = [
        *problems,
        *archive_problems(text, request.launched_words, facts.archive),
        *(requirements_problems(text, facts.archive) if request.image is None else []),
    ]
    return ResolvedCode(record=_describe_code(source, job, facts.code), problems=problems)


def _list_object_problems(address: str, facts: RequestFacts, env: JobChecksEnvironment) -> list[str]:
    if against := check_code_place("code", address, facts.denied, env):
        return against
    where, found = f"code: {plain(address)}", facts.code
    return object_problems(where, size=found.size, archived=found.archived) if found else [absent(where)]


def is_readable(found: Object) -> bool:
    """Whether an archive can be listed: one that is too large, or lies in Glacier, cannot."""
    return not object_problems("", size=found.size, archived=found.archived)


def _describe_code(source: str | GitCommit, job: str, found: Object | None) -> Code | None:
    """Returns what job.json says of the code."""
    if found is None or not source:
        return None
    if isinstance(source, GitCommit):
        return Code(key=found.key, source=source.url, source_version=source.commit, size=found.size)
    ending = next(ending for ending in ARCHIVE_SUFFIXES if source.endswith(ending))
    key = keys.JobPrefix(job).code(f"code{ending}")
    return Code(key=key, source=source, source_version=found.version, size=found.size)

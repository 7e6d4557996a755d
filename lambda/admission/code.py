"""Decides about the code of a request: an archive in S3, or a commit of a git repository; and whether S3 may be read at a place."""

from __future__ import annotations

from collections.abc import Mapping

from admission.git import GitCommit, NotFetched, fetch_problems, host_problems
from aws.facts import Object
from contract import keys, names
from contract.environments import AdmissionEnvironment
from contract.jobs import Code
from refusals.addresses import Address
from refusals.archive import absent, object_problems
from refusals.fields import ARCHIVE_SUFFIXES
from refusals.places import is_offered
from refusals.wording import denial, plain


def foreign(location: str, env: AdmissionEnvironment) -> bool:
    """Whether jobs may not read there."""
    return not is_offered(Address.parse(location), env.bucket, env.data_buckets)


def address(code: str | GitCommit, env: AdmissionEnvironment) -> str:
    """Returns the S3 address to look at; empty where there is none, or jobs may not read there."""
    return code if isinstance(code, str) and code and not foreign(code, env) else ""


def commit(code: str | GitCommit, job: str, env: AdmissionEnvironment) -> GitCommit | None:
    """Returns the commit to fetch; None where there is none, or its host is not to be asked, or the job cannot be called so."""
    wanted = isinstance(code, GitCommit) and not host_problems(code, env.git_hosts) and names.JOB_PATTERN.fullmatch(job)
    return code if isinstance(code, GitCommit) and wanted else None


def s3_problem(field: str, location: str, denied: Mapping[str, str], env: AdmissionEnvironment) -> list[str]:
    """Rejects a place where jobs may not read, or S3 does not let us look; `denied`: S3's error code by address."""
    if foreign(location, env):
        ours = [f"s3://{env.bucket}/{keys.UPLOADS}...", *(f"s3://{bucket}/..." for bucket in env.data_buckets)]
        return [
            f"{field}: {plain(location)} is in no bucket that jobs may read; allowed: {', '.join(ours)} (data_buckets in cdk.json)"
        ]
    if code := denied.get(location):
        return [f"{field}: {plain(location)} cannot be read: {denial(code)}; allowed: what the deployment may read"]
    return []


def problems(
    code: str | GitCommit,
    found: Object | None,
    not_fetched: NotFetched | None,
    denied: Mapping[str, str],
    env: AdmissionEnvironment,
) -> list[str]:
    """Rejects code that cannot be had."""
    if isinstance(code, GitCommit):
        told = fetch_problems(code, not_fetched, env.git_hosts) if not_fetched else []
        return host_problems(code, env.git_hosts) or told
    if not code:
        return []
    if against := s3_problem("code", code, denied, env):
        return against
    where = f"code: {plain(code)}"
    return object_problems(where, size=found.size, archived=found.archived) if found else [absent(where)]


def readable(found: Object) -> bool:
    """Whether an archive is worth a look."""
    return not object_problems("", size=found.size, archived=found.archived)


def record(code: str | GitCommit, job: str, found: Object | None) -> Code | None:
    """Returns what job.json says of the code; None for a job without code beside its image."""
    if found is None:
        return None
    if isinstance(code, GitCommit):
        return Code(key=found.key, source=code.url, source_version=code.commit, size=found.size)
    ending = next(ending for ending in ARCHIVE_SUFFIXES if code.endswith(ending))
    return Code(
        key=keys.JobPrefix(job).code(f"code{ending}"), source=code, source_version=found.version, size=found.size
    )

"""Decides whether a job may use what its request names elsewhere: places in S3, secrets, images and roles of the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contract import keys, names, sessions, training
from contract.environments import JobChecksEnvironment
from contract.mounts import JobMount
from job_checks.facts import Execution, RequestFacts
from job_requests.request import JobRequest
from refusals.addresses import Address
from refusals.places import is_offered
from refusals.wording import denial, plain


def is_foreign_code(location: str, env: JobChecksEnvironment) -> bool:
    """Whether code may not come from this S3 address. Admit copies it for the job, so uploads are offered."""
    return not is_offered(Address.parse(location), env.bucket, env.data_buckets)


def is_foreign_data(location: str, env: JobChecksEnvironment) -> bool:
    """Whether the nodes of a job may not read at this S3 address. They read it with their own role, which has the data buckets alone."""
    return Address.parse(location).bucket not in env.data_buckets


def check_code_place(field: str, location: str, denied: Mapping[str, str], env: JobChecksEnvironment) -> list[str]:
    """Rejects an S3 address from which code may not come, or that S3 denies; `denied`: S3's error code by address."""
    if is_foreign_code(location, env):
        return [_explain_foreign(field, location, [f"s3://{env.bucket}/{keys.UPLOADS}...", *_data_places(env)])]
    return _check_denied(field, location, denied)


def _check_data_place(field: str, location: str, denied: Mapping[str, str], env: JobChecksEnvironment) -> list[str]:
    if is_foreign_data(location, env):
        return [_explain_foreign(field, location, _data_places(env) or ["no place, because there are no data buckets"])]
    return _check_denied(field, location, denied)


def _data_places(env: JobChecksEnvironment) -> list[str]:
    return [f"s3://{bucket}/..." for bucket in env.data_buckets]


def _explain_foreign(field: str, location: str, places: Iterable[str]) -> str:
    return f"{field}: {plain(location)} is not in a bucket that jobs may read; allowed: {', '.join(places)} (data_buckets in cdk.json)"


def _check_denied(field: str, location: str, denied: Mapping[str, str]) -> list[str]:
    if code := denied.get(location):
        return [f"{field}: {plain(location)} cannot be read: {denial(code)}; allowed: what the deployment may read"]
    return []


def check_data(request: JobRequest, facts: RequestFacts, env: JobChecksEnvironment) -> list[str]:
    """Rejects data that jobs may not read, and locations that hold nothing."""
    problems = []
    for number, location in enumerate(request.data):
        where = f"data.{number}"
        problems += _check_data_place(where, location, facts.denied, env)
        if location in facts.nothing_at:
            problems.append(f"{where}: there is nothing at {plain(location)}; allowed: objects and folders that exist")
    return problems


def is_foreign_secret(arn: str, execution: Execution, env: JobChecksEnvironment) -> bool:
    """Whether nodes may not read the secret."""
    return not arn.startswith(tuple(_secret_paths(execution, env)))


def _secret_paths(execution: Execution, env: JobChecksEnvironment) -> list[str]:
    """Prefixes of the ARNs that nodes may read, by region."""
    prefix = names.secret_prefix(env.deployment)
    return [
        f"arn:{execution.partition}:secretsmanager:{region}:{execution.account}:secret:{prefix}"
        for region in dict.fromkeys((env.home_region, *env.regions))
    ]


def check_secrets(
    request: JobRequest,
    execution: Execution,
    facts: RequestFacts,
    env: JobChecksEnvironment,
    *,
    repositories: Iterable[str],
    mounted: Iterable[JobMount],
) -> list[str]:
    """Rejects secrets of other paths, secrets that do not exist, and more than a session's policy can name beside `repositories` (ARNs)
    and `mounted`."""
    paths = " or ".join(f"{path}..." for path in _secret_paths(execution, env))
    length = len(
        sessions.policy(
            request.secrets.values(), repositories, mounted, partition=execution.partition, account=execution.account
        )
    )
    too_long = [
        f"secrets: their ARNs make the policy of the job's credentials {length - sessions.MOST_POLICY} characters too long; "
        "allowed: about fifteen secrets, or eight beside an image and mounts (one secret may hold several values as JSON)"
    ]
    foreign = [
        f"secrets.{name}: {plain(arn)} is not a secret that jobs may read; allowed: {paths}"
        for name, arn in request.secrets.items()
        if is_foreign_secret(arn, execution, env)
    ]
    missing = [
        f"secrets.{name}: {plain(request.secrets[name])} does not exist or is being deleted; allowed: a secret that can be read"
        for name in facts.secrets_missing
    ]
    return [*(too_long if length > sessions.MOST_POLICY else []), *foreign, *missing]


def check_settings(request: JobRequest, env: JobChecksEnvironment) -> list[str]:
    """Rejects a machine image and a role that the settings do not have, and variables that would replace the role's credentials. Whether
    the role can be assumed the attendant is asked afterwards, which the role trusts."""
    problems, image, role = list[str](), request.machine_image, request.job_role
    if image is not None and image not in env.machine_images:
        may_be = ", ".join(sorted(env.machine_images)) or "none, because there are no machine_images"
        problems.append(
            f"machine_image: {plain(image)} is not an image of this deployment; allowed: {may_be} (machine_images in cdk.json)"
        )
    if role is not None and role not in env.job_roles:
        may_be = ", ".join(sorted(env.job_roles)) or "none, because there are no job_roles"
        problems.append(
            f"job_role: {plain(role)} is not a role of this deployment; allowed: {may_be} (job_roles in cdk.json)"
        )
    elif role is not None:
        problems += [
            f"{where}.{variable}: replaces the credentials of job_role; allowed: the variable or job_role, not both"
            for where, given in (("environment", request.environment), ("secrets", request.secrets))
            for variable in sorted(given.keys() & training.OTHER_CREDENTIALS)
        ]
    return problems

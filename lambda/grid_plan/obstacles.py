"""Finds what keeps every line of a deployment from starting, whatever the manifest says."""

from __future__ import annotations

from aws import registry
from aws.state import State
from contract import names
from contract.environments import GridEnvironment
from refusals.wording import shut


def list_closed(env: GridEnvironment) -> list[str]:
    """Says why nothing is admitted; empty where something is."""
    reason = State(env.table).admission_closed()
    return [] if reason is None else [shut(reason, env.table)]


def list_missing(env: GridEnvironment) -> list[str]:
    """Checks that the child's own image exists: without it no child starts, and the queue would wait for ever."""
    repository = names.repository(env.deployment, names.PLATFORM)
    try:
        standing = registry.standing(repository, env.child_image, env.home_region)
    except registry.NoRepository:
        standing = None
    if standing:
        return []
    where = f"{repository}:{env.child_image} does not exist in {env.home_region}"
    return [
        f"deployment: {where}, so no line could start; allowed: deploy again, which builds it (docs/guides/images.md)"
    ]

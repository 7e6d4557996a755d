"""Writes the report of a grid, and tells people."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.grids import GridStore
from aws.s3 import as_json
from aws.topic import publish
from contract import links
from contract.environments import GridCollectEnvironment
from contract.grid import Grid, GridPrefix
from grids.message import message, subject

logger = Logger(service="grid_collect")
WHEN = "reported_at"


def report(
    env: GridCollectEnvironment,
    store: GridStore,
    grid: Grid,
    totals: Mapping[str, Any],
    problem: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Publishes a message and writes report.json, unless the report there says the same already."""
    prefix = GridPrefix(grid.id)
    whole = {
        "grid": grid.id,
        "execution": grid.execution,
        "owner": grid.owner,
        "started_at": grid.started_at,
        "manifest": f"s3://{grid.manifest.bucket}/{grid.manifest.key}",
        "manifest_version": grid.manifest.version,
        "problem": dict(problem) if problem else None,
        **totals,
        "page": links.of_page(grid.execution, store.name, prefix.page),
        "results": {
            "csv": f"s3://{store.name}/{prefix.results_csv}",
            "jsonl": f"s3://{store.name}/{prefix.results_jsonl}",
            "failed": f"s3://{store.name}/{prefix.failed}",
        },
    }
    before = standing(store, grid.id)
    if before is not None and {**before, WHEN: None} == {**whole, WHEN: None}:
        return whole
    # In this order: the written report keeps people from being told twice, and twice is better than not at all.
    _tell(env, whole)
    store.put(prefix.report, as_json({**whole, WHEN: time.time()}))
    return whole


def standing(store: GridStore, grid: str) -> dict[str, Any] | None:
    """The report that was written before; None where there is none that can be read."""
    body = store.get(GridPrefix(grid).report)
    try:
        found = json.loads(body) if body else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _tell(env: GridCollectEnvironment, whole: Mapping[str, Any]) -> None:
    """Publishes the message. A failure is only logged, because the report holds the same."""
    try:
        publish(env.topic, subject(env.deployment, whole), message(env.deployment, whole))
    except (ClientError, BotoCoreError):
        logger.exception("the message could not be sent", grid=whole["grid"])

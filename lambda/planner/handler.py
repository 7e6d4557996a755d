"""Plan's function: checks every line of a manifest before anything starts, and writes the plan for the children."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from aws import pinned
from aws.data_api import DataApi
from aws.errors import CHANGED, S3_DENIED, Raced
from aws.s3 import Bucket
from aws.state import State
from contract import names
from contract.aws_errors import code_of
from contract.codec import decode, encode
from contract.environments import GridEnvironment
from contract.grid import Grid, GridPrefix, Manifest, arrays
from grid_plan import query
from grid_plan import request as input_
from grid_plan.answers import CheckedManifest
from grid_plan.line_jobs import load_checks
from grid_plan.obstacles import list_closed, list_missing
from grid_plan.place import MOST_MANIFEST, is_readable, places, taken
from grid_plan.planning import MOST_WARNINGS, Planner, write
from grid_plan.problems import Report
from grid_plan.request import NO_CATALOGUE, GridRequest
from grid_plan.training_arguments import GridRun
from job_requests.presets import load_rules
from refusals.addresses import Address
from refusals.wording import plain

logger = Logger(service="grid-plan")
CHANGED_PROBLEM = (
    "manifest: changed while it was read; allowed: an object that does not change meanwhile (start a new execution)"
)


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    env = GridEnvironment.read()
    execution = event["execution"]
    logger.append_keys(execution=execution["arn"])
    asked, given, problems = input_.read(event["request"], env.limits)
    run = GridRun(
        grid=execution["name"], execution=execution["arn"], started_at=execution["started_at"], owner=asked.owner
    )
    store, prefix = Bucket(env.bucket), GridPrefix(run.grid)
    planner = Planner(asked, run, env, given, load_rules(env.rules), load_checks(env))
    grid = findings = None
    if names.GRID_PATTERN.fullmatch(run.grid):
        grid, findings = _known(store, prefix, run)
    if grid is None:
        findings = findings or _found(planner, asked, run, env, problems)
        grid = _write(planner, _once(store, prefix, findings, run), run, env, store)
    logger.info("planned", grid=grid.id, lines=grid.lines, regions=grid.regions, cost_at_most_usd=grid.cost_at_most_usd)
    return {
        "grid": grid.id,
        "lines": grid.lines,
        "regions": grid.regions,
        "arrays": [{"first": first, "size": size} for first, size in arrays(grid.lines)],
        "cost_at_most_usd": grid.cost_at_most_usd,
        "warnings": list(grid.warnings),
    }


def _known(store: Bucket, prefix: GridPrefix, run: GridRun) -> tuple[Grid | None, CheckedManifest | None]:
    """Reads what an earlier run of this step wrote. Raises InvalidRequest where another execution has the name."""
    body, facts = store.get(prefix.description), store.get(prefix.facts)
    grid = decode(Grid, body) if body else None
    findings = decode(CheckedManifest, facts) if facts else None
    for one in (grid, findings):
        if one and (one.execution, one.started_at) != (run.execution, run.started_at):
            raise _refused([taken(run.grid, one.execution, one.started_at)])
    return grid, findings


def _found(
    planner: Planner, request: GridRequest, run: GridRun, env: GridEnvironment, problems: list[str]
) -> CheckedManifest:
    """Makes the first pass, and checks everything beside the lines. Raises InvalidRequest."""
    before = [*list_closed(env), *_name(run)]
    if request.query:
        manifest, found = (None, []) if before else _fill(request.query, run, env)
    else:
        manifest, found = _manifest(request, env)
    problems = [*before, *problems, *found, *list_missing(env)]
    if manifest is None:
        raise _refused(problems)
    try:
        with pinned.opened(manifest) as file:
            checked = planner.check(file)
    except ClientError as problem:
        if code_of(problem) not in CHANGED:
            raise
        raise _refused([*problems, CHANGED_PROBLEM]) from None
    checked.report.general[:0] = problems
    if checked.report:
        raise _log_refusal(checked.report)
    return CheckedManifest(
        execution=run.execution,
        started_at=run.started_at,
        planned_at=time.time(),
        manifest=Manifest(bucket=manifest.bucket, key=manifest.key, version=manifest.version, etag=manifest.etag),
        manifest_size=manifest.size,
        lines=checked.lines,
        regions=dict(checked.regions),
        cost_at_most_usd=checked.cost_at_most_usd,
        warnings=tuple(checked.warnings.shortened(MOST_WARNINGS)),
        facts=checked.answers,
    )


def _refused(problems: list[str]) -> Exception:
    return _log_refusal(Report(general=list(dict.fromkeys(problems))))


def _log_refusal(report: Report) -> Exception:
    """Logs every reason, and returns an error with the first of them."""
    for reason in report.reasons():
        logger.warning("refused", reason=reason)
    return report.refusal()


def _name(run: GridRun) -> list[str]:
    if names.GRID_PATTERN.fullmatch(run.grid):
        return []
    return [f"name: the execution is called {plain(run.grid)}; allowed: {names.GRID_WORDS}"]


def _manifest(request: GridRequest, env: GridEnvironment) -> tuple[pinned.Pinned | None, list[str]]:
    """Returns the version to plan, and what is wrong with it; reads nothing in a place where manifests are not allowed."""
    if not request.manifest:
        return None, []
    address, where = Address.parse(request.manifest), f"manifest: {request.manifest}"
    if not is_readable(address, env):
        return None, [f"{where} is not in a place for manifests; allowed: {places(env)}"]
    try:
        found = pinned.head(address.bucket, address.key)
    except ClientError as problem:
        if (code := code_of(problem)) not in S3_DENIED:
            raise
        return None, [f"{where} cannot be checked (S3 answers {code}); allowed: an object that the deployment may read"]
    if found is None:
        return None, [f"{where} does not exist; allowed: a manifest that was uploaded before the start"]
    if found.archived:
        return None, [
            f"{where} is in an archive class of S3 and not restored; allowed: an object that can be read at once"
        ]
    if found.size > MOST_MANIFEST:
        size = f"{found.size / 1024**3:.1f} GB"
        return None, [f"{where} has {size}; allowed: up to {MOST_MANIFEST / 1024**3:.0f} GB"]
    return found, []


def _fill(sql: str, run: GridRun, env: GridEnvironment) -> tuple[pinned.Pinned | None, list[str]]:
    """Writes the query's rows as the grid's own manifest, and returns the version to plan, or why there is none."""
    if env.catalogue is None:
        return None, [NO_CATALOGUE]
    try:
        body = query.read_lines(DataApi(env.catalogue), sql, most=env.limits.max_lines, clock=time.monotonic)
    except query.QueryRefused as refused:
        return None, list(refused.problems)
    return pinned.write(env.bucket, GridPrefix(run.grid).manifest, body), []


def _once(store: Bucket, prefix: GridPrefix, findings: CheckedManifest, run: GridRun) -> CheckedManifest:
    """Writes the findings once: when this step runs twice at the same time, both runs continue with the first run's findings."""
    try:
        store.create(prefix.facts, encode(findings))
    except Raced:
        _, written = _known(store, prefix, run)
        assert written is not None
        return written
    return findings


def _copy_codes(planner: Planner) -> None:
    """Copies the code of the lines to where their trainings read it, so that all of them run the bytes that were checked."""
    for place, (region, source) in planner.codes.items():
        bucket = Bucket(place.bucket, region)
        try:
            if bucket.head(place.key) is None:
                bucket.copy(source, place.key)
        except ClientError as problem:
            if code_of(problem) not in CHANGED | S3_DENIED:
                raise
            where = f"code: {plain(f's3://{source.bucket}/{source.key}')} could not be copied to {region} ({code_of(problem)})"
            raise _refused([f"{where}; allowed: an object that does not change while the plan is made"]) from None


def _again(findings: CheckedManifest) -> pinned.Pinned:
    """Returns the version that was checked."""
    one = findings.manifest
    return pinned.Pinned(
        bucket=one.bucket, key=one.key, size=findings.manifest_size, version=one.version, etag=one.etag, archived=False
    )


def _write(planner: Planner, findings: CheckedManifest, run: GridRun, env: GridEnvironment, store: Bucket) -> Grid:
    """Writes the lines, and last the document that says that they are complete."""
    prefix, where = GridPrefix(run.grid), findings.manifest
    grid = Grid(
        id=run.grid,
        deployment=env.deployment,
        execution=findings.execution,
        started_at=findings.started_at,
        owner=run.owner,
        planned_at=findings.planned_at,
        manifest=where,
        lines=findings.lines,
        regions=findings.regions,
        pace=env.limits.submissions_per_second,
        cost_at_most_usd=findings.cost_at_most_usd,
        warnings=findings.warnings,
    )
    try:
        with pinned.opened(_again(findings)) as file:
            written = write(planner.lines(file, findings.facts), prefix, store.put)
    except ClientError as problem:
        if code_of(problem) not in CHANGED:
            raise
        raise _refused([CHANGED_PROBLEM]) from None
    _copy_codes(planner)
    if written != grid.lines:
        raise RuntimeError(f"{grid.lines} lines were checked, and {written} written")
    for region in sorted(grid.regions):
        # Trainings outlive the settings of their region: the reaper and the drain read every region in which anything was launched.
        State(env.table).note_region(region)
    try:
        store.create(prefix.description, encode(grid))
    except Raced:
        standing, _ = _known(store, prefix, run)
        assert standing is not None
        return standing
    return grid

"""Writes down the job that an accepted request becomes."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from contract.environments import AdmissionEnvironment
from contract.health import HealthCheck
from contract.jobs import Job
from contract.roles import Role
from job_checks.money import PricedRequest
from job_checks.resolve import ResolvedRequest
from job_requests.grid_line import GridLineField
from job_requests.request import JobRequest
from job_requests.values import StallField
from job_requests.workbench_field import WorkbenchField

DECIDED = frozenset({"code", "max_hours", "roles", "volume_gb"})
"""Fields of a request that the job has too, as a step has decided them."""
KEPT = tuple(one.name for one in fields(Job) if one.name in JobRequest.model_fields.keys() - DECIDED)
"""Fields that the job has as the request gives them."""


def build_job(priced: PricedRequest, env: AdmissionEnvironment) -> Job:
    """Returns the job of a request against which nothing stands."""
    resolved, ladder, disk = priced.resolved, priced.ladder, priced.disk
    execution, hours = resolved.execution, resolved.hours
    regions = dict.fromkeys(rung.region for rung in ladder.rungs)
    return Job(
        id=execution.name,
        deployment=env.deployment,
        execution=execution.arn,
        admitted_at=execution.started_at,
        deadline=math.ceil(execution.started_at + hours * 3600),
        code=resolved.code.record,
        volume_gb=disk.gb,
        volume_iops=disk.iops,
        volume_throughput=disk.throughput,
        max_hours=hours,
        recoveries=env.limits.recoveries,
        home_bucket=env.bucket,
        home_region=env.home_region,
        log_group=env.log_group,
        ladder=ladder.rungs,
        # No other region has to answer for the job to end.
        places={one: place for one in regions if (place := resolved.facts.regions[one].place) is not None},
        timing=env.timing,
        master_port=env.master_port,
        agent=env.agent,
        resume=resolved.checkpoint,
        leave_on_rebalance=env.limits.leave_on_rebalance,
        mounted=resolved.mounted,
        left_out=ladder.left_out,
        container=None if resolved.parts else resolved.image.in_regions(regions, resolved.request.arguments),
        roles=_build_roles(resolved, regions),
        network_share=env.limits.network_share,
        **_describe_machines(priced),
        **_keep_fields(resolved.request),
    )


def _build_roles(resolved: ResolvedRequest, regions: Collection[str]) -> tuple[Role, ...]:
    """Returns the roles of the request, each with the command and the image that its nodes run."""
    return tuple(
        Role(
            name=role.name,
            count=role.count,
            ends=role.ends,
            command=tuple(part.request.command),
            container=part.image.in_regions(regions, part.request.arguments),
            checkpoints=role.checkpoints,
        )
        for role, part in zip(resolved.request.roles, resolved.parts, strict=True)
    )


def _keep_fields(request: JobRequest) -> dict[str, Any]:
    """Returns what the job has as the request gives it; a field that is None has the job's default."""
    values = {name: getattr(request, name) for name in KEPT}
    return {name: _freeze(value) for name, value in values.items() if value is not None}


def _freeze(value: Any) -> Any:
    if isinstance(value, StallField | GridLineField | WorkbenchField):
        return value.meant
    return tuple(value) if isinstance(value, list) else value


def _describe_machines(priced: PricedRequest) -> dict[str, Any]:
    """Returns the job's fields about the machines of its ladder."""
    resolved = priced.resolved
    single = (shape.rung for rung in priced.ladder.rungs for shape in rung.shapes)
    rungs = [*single] if resolved.parts else priced.ladder.rungs
    types = {rung.instance_type: resolved.facts.types[rung.instance_type] for rung in rungs}
    interfaces, rates = resolved.network.interfaces, resolved.network.rates
    deep = resolved.request.health is HealthCheck.DEEP
    return {
        "interfaces": {name: interfaces[name] for name in types if name in interfaces},
        "network": {name: rates[name] for name in types if deep and name in rates},
        "uplinks": {name: kind.cards[0].gbps for name, kind in types.items() if kind.cards and kind.cards[0].gbps},
        "gpus": {name: kind.gpus for name, kind in types.items() if kind.gpus},
        "neurons": {name: kind.neurons for name, kind in types.items() if kind.neurons},
    }

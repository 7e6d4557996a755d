"""Decides what stands against a workbench: fields that no bench can have, and what it needs beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contract.health import HealthCheck
from contract.jobs import Launcher
from contract.request_rules import RequestRules
from contract.workbench import FOLDER
from job_requests.mount_fields import MountField, is_below
from job_requests.request import JobRequest

OWN_PROGRAM = "which runs JupyterLab"
AGAIN = "which a person starts and ends"
AS_THEY_ARE = "whose files are the checkpoint as they are"
REFUSED = {
    "command": OWN_PROGRAM,
    "arguments": OWN_PROGRAM,
    "stall": AGAIN,
    "retries": AGAIN,
    "checkpoint_scope": AS_THEY_ARE,
    "checkpoint_layout": AS_THEY_ARE,
}
"""Fields that no bench can have, with what speaks against each."""


def list_workbench_problems(given: object, request: JobRequest, rules: RequestRules) -> list[str]:
    """Rejects a bench without an owner, and what a part of its request could say too. `given` is the request as a person wrote it: a field
    that is wrong is there, and is rejected as such."""
    problems = list_bench_conflicts(given, request, rules)
    if request.workbench is not None and isinstance(given, Mapping) and not request.owner and not given.get("owner"):
        problems.append(
            "owner: is missing, and only its owner may open a workbench; allowed: your user name, or the value of your role's tag owner"
        )
    return problems


def list_bench_conflicts(given: object, request: JobRequest, rules: RequestRules) -> list[str]:
    """Rejects a bench that the deployment does not allow, and fields that no bench can have, in a request or in a part of one."""
    if request.workbench is None or not isinstance(given, Mapping):
        return []
    problems = list[str]()
    if not rules.workbench:
        problems.append(
            "workbench: the deployment has no workbenches; allowed: a request without it, or the setting workbench in cdk.json"
        )
    if request.nodes != 1:
        problems.append(f"nodes: {request.nodes} are too many for a workbench; allowed: 1")
    if request.owner != request.owner.strip():
        problems.append(
            f'owner: "{request.owner}" is no name, and only its owner may open a workbench; allowed: without spaces around it'
        )
    problems += [
        f"{name}: the request has a workbench, {why}; allowed: workbench without {name}"
        for name, why in REFUSED.items()
        if given.get(name) is not None
    ]
    if request.launcher is not Launcher.NONE:
        problems.append(f"launcher: the request has a workbench, {OWN_PROGRAM}; allowed: {Launcher.NONE.value}")
    if request.health is HealthCheck.DEEP:
        problems.append(
            f"health: a workbench has one node, and {HealthCheck.DEEP.value} measures the network between several; "
            f"allowed: {HealthCheck.QUICK.value} or {HealthCheck.OFF.value}"
        )
    return [*problems, *_list_mount_problems(request.mounts)]


def _list_mount_problems(mounts: Iterable[MountField]) -> list[str]:
    """Rejects a folder of the bench in which nothing could be saved, and mounts within the folder, which would become a checkpoint."""
    found = list[str]()
    for number, one in enumerate(mounts):
        if one.at == FOLDER and one.read_only:
            found.append(f"mounts.{number}.read_only: nothing could be saved in {FOLDER}; allowed: false")
        elif is_below(one.at, FOLDER):
            found.append(
                f"mounts.{number}.at: {one.at} lies in the folder of the workbench; allowed: {FOLDER} itself, or a folder beside it"
            )
    return found

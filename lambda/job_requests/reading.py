"""Reads a request, and says for each wrong field what it may be. Checks that need AWS come later."""

from __future__ import annotations

from collections.abc import Mapping, Set

from contract.execution_facts import MARK
from contract.jobs import CheckpointLayout, Scope
from contract.limits import Limits
from contract.request_rules import NO_RULES, RequestRules
from contract.workbench import build_command
from job_requests.launchers import list_launcher_problems, list_lone_problems
from job_requests.presets import PRESET, fill_from_preset
from job_requests.request import JobRequest
from job_requests.roles import count_nodes, list_argument_problems, list_role_conflicts, list_role_problems
from job_requests.tag_fields import (
    list_required_problems,
    list_spelling_problems,
    list_tag_problems,
    list_value_problems,
)
from job_requests.values import MayBe
from job_requests.workbench import list_bench_conflicts, list_workbench_problems
from refusals.placeholders import find_placeholders
from refusals.texts import list_errors, validate
from refusals.wording import line, lines, plain

RANK0_OF_SHARDS = Scope.RANK0, CheckpointLayout.DCP
"""A scope and a layout that has shards on every node: no checkpoint of several would ever be whole."""

MAY_BE = {
    name: next(one for one in field.metadata if isinstance(one, MayBe))
    for name, field in JobRequest.model_fields.items()
}
"""What each field may be. Fails at import for a field that does not say it."""
ENTRIES = {name: one.entry for name, one in MAY_BE.items() if one.entry}
"""Says what the entries of a list or an object may be."""
JUDGED_LATER = frozenset({"volume_gb"})
"""Fields whose limit another step holds: the one for disks knows what else needs room."""
NEVER_PRESET = {
    PRESET: "presets do not nest",
    "dry_run": "no job that names the preset would start",
    MARK: "a grid alone writes it",
}
"""Fields that no preset has, and why."""
NEEDED = ("code", "command")
"""Fields that a request without one of OWN_PROGRAM has to have."""
OWN_PROGRAM = ("image", "workbench", "roles")


def list_allowed(limits: Limits) -> dict[str, str]:
    """Says for each field what it may be in this deployment."""
    return {name: one.in_words(limits) for name, one in MAY_BE.items()}


def read(raw: object, limits: Limits, rules: RequestRules = NO_RULES) -> tuple[JobRequest, list[str]]:
    """Returns the request, filled from its preset, and a line for every problem; a wrong field has its default.

    So the right fields are still judged, and a person sees every problem at once. What a preset without a name would have brought along
    is not missing too.
    """
    filled, unnamed = fill_from_preset(raw, rules) if isinstance(raw, Mapping) else (raw, list[str]())
    left = find_placeholders(filled)
    request, problems, given = _validate(filled, limits, left.keys())
    is_judged = isinstance(given, Mapping) and not ("tags" in given and "tags" not in request.model_fields_set)
    return _count_roles(_serve_bench(request)), [
        *unnamed,
        *([] if unnamed else _list_missing(given, limits)),
        *left.values(),
        *problems,
        *_list_problems_without_image(given, request),
        *list_launcher_problems(given, request),
        *list_workbench_problems(given, request, rules),
        *list_role_problems(given, request, limits),
        *([] if unnamed else _list_missing_types(given, limits)),
        *_list_doubles(request),
        *_list_limit_problems(request, limits),
        *list_tag_problems(request.tags, rules),
        *(list_required_problems(request.tags, rules) if is_judged and not unnamed else []),
    ]


def _serve_bench(request: JobRequest) -> JobRequest:
    """Writes the command of a workbench, and that its files are the checkpoint as they are: notebooks are no framework's."""
    if request.workbench is None:
        return request
    command = list(build_command(request.workbench.meant))
    checkpoint = {"checkpoint_scope": Scope.RANK0, "checkpoint_layout": CheckpointLayout.NONE}
    return request.model_copy(update={"command": command, **checkpoint})


def _count_roles(request: JobRequest) -> JobRequest:
    """Writes how many nodes the roles have together."""
    return request.model_copy(update={"nodes": count_nodes(request)}) if request.roles else request


def list_unwritable(name: str, given: Mapping[str, object]) -> list[str]:
    """Lists the texts and names in an object, called `name`, that UTF-8 or a process cannot hold."""
    may_be = {name: "texts without NUL characters and without halves of surrogate pairs"}
    return [line(one, may_be) for one in list_errors({name: given}, may_be)]


def list_preset_problems(preset: Mapping[str, object], limits: Limits, rules: RequestRules) -> list[str]:
    """Lists what is wrong with a preset, as far as a part of a request can be."""
    never = [f"{name}: {why}; allowed: left out" for name, why in NEVER_PRESET.items() if name in preset]
    fields = {name: value for name, value in preset.items() if name not in NEVER_PRESET}
    left = find_placeholders(fields)
    request, problems, given = _validate(fields, limits, left.keys())
    list_own = list_launcher_problems if {"launcher", "command"} <= fields.keys() else list_lone_problems
    return [
        *never,
        *left.values(),
        *problems,
        *list_own(given, request),
        *list_bench_conflicts(given, request, rules),
        *list_role_conflicts(fields, request, limits),
        *_list_doubles(request),
        *_list_limit_problems(request, limits),
        *list_tag_problems(request.tags, rules),
        *list_value_problems(request.tags, rules),
        *list_spelling_problems(request.tags, rules),
    ]


def _validate(given: object, limits: Limits, left: Set[str]) -> tuple[JobRequest, list[str], object]:
    """Returns the fields that are right, a line for each that is not, and what was given; None of what is no request at all. `left` are
    fields that still have the placeholder of an example, of which another line speaks."""
    judged = {name: one for name, one in given.items() if name not in left} if isinstance(given, Mapping) else given
    request, errors = validate(JobRequest, judged)
    if request is not None:
        return request, [], given
    problems = lines(errors, list_allowed(limits), ENTRIES)
    wrong = {str(error["loc"][0]) for error in errors if error["loc"]} | left
    given = given if wrong else None  # without a wrong field it is no request at all
    return _read_rest(given, wrong), problems, given


def _list_missing(given: object, limits: Limits) -> list[str]:
    if not isinstance(given, Mapping) or any(given.get(name) is not None for name in OWN_PROGRAM):
        return []
    return [f"{name}: is missing; allowed: {list_allowed(limits)[name]}" for name in NEEDED if name not in given]


def _list_problems_without_image(given: object, request: JobRequest) -> list[str]:
    """Rejects arguments that no image would take. An image that is named wrongly is there, and is rejected as such, and so are roles."""
    if not isinstance(given, Mapping) or given.get("image") is not None or not request.arguments:
        return []
    if given.get("roles") is not None:
        return list_argument_problems(request)
    return ["arguments: the request has no image; allowed: arguments beside an image, or words of command"]


def _list_missing_types(given: object, limits: Limits) -> list[str]:
    if (
        isinstance(given, Mapping)
        and not {"instance_types", "roles"} & given.keys()
        and given.get("accelerators") is None
    ):
        return [
            f"instance_types: is missing; allowed: {list_allowed(limits)['instance_types']}, or accelerators in its place, as in H100:8"
        ]
    return []


def _list_doubles(request: JobRequest) -> list[str]:
    """Rejects two fields of which a request has one, or that say the opposite."""
    problems = [
        f"secrets.{name}: environment has it too; allowed: one value for each variable"
        for name in sorted(request.environment.keys() & request.secrets.keys())
    ]
    if request.region is not None and request.regions is not None:
        problems.append("regions: the request has region too; allowed: one of the two")
    if request.instance_types and request.accelerators:
        problems.append("accelerators: the request has instance_types too; allowed: one of the two")
    if (nodes := count_nodes(request)) > 1 and (request.checkpoint_scope, request.checkpoint_layout) == RANK0_OF_SHARDS:
        problems.append(
            f"checkpoint_scope: rank0 leaves out the shards of {nodes - 1} of {nodes} nodes, and checkpoint_layout is dcp, in which each "
            "node has some; allowed: shards, auto"
        )
    return problems


def _list_limit_problems(request: JobRequest, limits: Limits) -> list[str]:
    """Rejects values above the deployment's limits."""
    return [
        f"{name}: {_show_number(value)} is too large; allowed: {one.in_words(limits)}"
        for name, one in MAY_BE.items()
        if name not in JUDGED_LATER and one.is_above(value := getattr(request, name), limits)
    ]


def _show_number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else plain(str(value))


def _read_rest(given: object, wrong: set[str]) -> JobRequest:
    """Reads the fields that are right."""
    fields = given if isinstance(given, Mapping) else {}
    right = {name: fields[name] for name in JobRequest.model_fields if name in fields and name not in wrong}
    return JobRequest.model_validate(right)

"""Lines with the backend ec2: each is a request of the Train machine, in its own words or in those of a line of SageMaker."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from contract.environments import GridDefaults, GridEnvironment
from contract.execution_facts import MARK
from contract.grid import Backend, training_name
from contract.request_rules import NO_RULES, RequestRules
from grid_plan.columns import AUTO, sent
from grid_plan.spellings import trim
from grid_plan.training_arguments import GridRun
from job_requests import reading
from job_requests.presets import PRESET, fill_from_preset, fill_missing, find_preset
from job_requests.request import JobRequest
from refusals.commands import find_shell_text

OWN = ("backend", "hyperparameters", "sweep")
"""Fields of a line that no request has."""
TYPED = (*OWN, "program", "channel", "mode", "metrics")
"""Fields whose form is that of a line of SageMaker."""
MOST_INPUT = 256 * 1024
"""The most bytes of an execution's input (Step Functions' quotas)."""
UNKNOWN = "not known before it starts: Admit chooses the place and the type, among those that have capacity, when its turn comes"
"""Why a line runs where it does, and its price."""


def _without_ml(value: Any) -> Any:
    return [value.removeprefix("ml.")] if isinstance(value, str) else value


def _as_list(value: Any) -> Any:
    """Splits a text with several addresses as a line of SageMaker is read."""
    return re.split(r"\s+(?=s3://)", value.strip()) if isinstance(value, str) else value


def as_command(value: Any) -> Any:
    """As AWS's toolkit runs a program: by Python, or by itself."""
    if not isinstance(value, str):
        return value
    return ["python", value] if value.endswith(".py") else [f"./{value}"]


def _as_it_is(value: Any) -> Any:
    return value


SAME: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "entrypoint": ("command", _as_it_is),
    "program": ("command", as_command),
    "instance_type": ("instance_types", _without_ml),
    "instance_count": ("nodes", _as_it_is),
    "distribution": ("launcher", _as_it_is),
    "processes_per_host": ("processes_per_node", _as_it_is),
    "data": ("data", _as_list),
}
"""Fields of a line of SageMaker that mean the same as a field of a request, and how their value is written there."""
LEFT_OUT = ("channel", "mode", "metrics")
"""Fields of a line of SageMaker without which a job is the same: it has no channels, and its metric is what PROGRESS_FILE says."""
INSTEAD = {
    "channels": "mounts, or data that the program reads itself",
    "checkpoint": "resume_from with the name of a job",
    "mpi_options": "variables of mpirun in environment",
    "kms_key": "nothing; the region's settings name keys",
    "volume_kms_key": "nothing; the region's settings name keys",
    "network_isolation": "false",
    "encrypt_traffic": "false",
    "subnets": "nothing; the region's settings name networks",
    "security_groups": "nothing; each job has one of its own",
}
"""Fields of a line of SageMaker that a job cannot have, and what it has in their place."""
OF_THE_INPUT = {
    "owner": "owner in the input",
    "dry_run": "nothing; Plan checks the line, and starts nothing if it is wrong",
    MARK: "nothing; the grid writes it",
    "workbench": "nothing; a person starts each workbench",
}


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """One job: the fields of its request, and its hyperparameters."""

    fields: Mapping[str, Any]
    hyperparameters: Mapping[str, Any]

    @property
    def source(self) -> dict[str, Any]:
        """The job as a line of JSON that needs no defaults."""
        found = {"backend": Backend.EC2.value, **self.fields}
        return found | {"hyperparameters": dict(self.hyperparameters)}

    @property
    def most_usd(self) -> float | None:
        """The most that it may cost, US dollars; None where it names no cap. For a job with whose form nothing is wrong."""
        cap = self.fields.get("max_cost_usd")
        return None if cap is None else float(cap)


def is_cluster_line(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Whether the line, or else the defaults, name clusters of our own."""
    given = fields.get("backend")
    named = defaults.get("backend") if given is None else given
    return isinstance(named, str) and trim(named) == Backend.EC2.value


def read_cluster_line(
    fields: Mapping[str, Any],
    defaults: Mapping[str, Any],
    settings: GridDefaults,
    rules: RequestRules = NO_RULES,
) -> tuple[ClusterSpec, list[str]]:
    """Returns the job of a line without its hyperparameters, and a line for every problem. `fields` and `defaults` are as they were
    given, under the fields' own names. The preset that a line names has filled it: the plan says what it runs."""
    own, problems = _translate(fields)
    base, found = _translate(defaults)
    given, unnamed = fill_from_preset(fill_missing(base, own), rules)
    misplaced = _list_preset_conflicts(find_preset(given, rules) or {})
    whole = _add_settings(given, settings)
    return ClusterSpec(whole, {}), [*problems, *(one for one in found if one not in problems), *unnamed, *misplaced]


def _list_preset_conflicts(preset: Mapping[str, Any]) -> list[str]:
    """Rejects a preset with a field that no line may have. Its owner is that of a job where the input names none."""
    return [
        f"{PRESET}: has {name}, which means nothing with the backend {Backend.EC2.value}; allowed: a preset without it"
        for name in OF_THE_INPUT
        if name != "owner" and preset.get(name) is not None
    ]


def vary(spec: ClusterSpec, hyperparameters: Mapping[str, Any] | None) -> ClusterSpec:
    """Returns the job with these hyperparameters, one combination of a sweep."""
    return replace(spec, hyperparameters=dict(hyperparameters or {}))


def read_job(
    spec: ClusterSpec, run: GridRun, env: GridEnvironment, rules: RequestRules = NO_RULES
) -> tuple[JobRequest, list[str]]:
    """Returns what is right of the job's request, and lists what is wrong with its form, as Admit would."""
    given = build_request(spec, 0, run)
    request, problems = reading.read(given, env.job_limits, rules)
    if spec.hyperparameters:
        bare = build_request(
            replace(spec, hyperparameters={}), 0, run
        )  # words behind a wrong command may make it look right
        found = reading.read(bare, env.job_limits, rules)[1]
        problems = [*problems, *(problem for problem in found if problem not in problems)]
    if PRESET in spec.fields and find_preset(spec.fields, rules) is None:
        # What a preset without a name would have brought along is not missing too.
        problems = [one for one in problems if not one.partition(": ")[2].startswith("is missing;")]
    if problems:
        return request, problems
    size = len(json.dumps(given, ensure_ascii=False).encode())
    return request, [f"request: has {size:,} bytes; allowed: up to {MOST_INPUT:,} bytes"] if size > MOST_INPUT else []


def _may_hide_mistakes(spec: ClusterSpec) -> bool:
    """Whether words behind a command may make it look right: behind none, and behind a text whose quotes they close."""
    roles = spec.fields.get("roles")
    programs = [spec.fields, *(one for one in (roles if isinstance(roles, list) else []) if isinstance(one, Mapping))]
    given = [program[name] for program in programs for name in ("command", "arguments") if name in program]
    return any(not isinstance(one, list) or not one for one in given)


def list_warnings(spec: ClusterSpec, given: Mapping[str, Any], *, has_words: bool) -> Iterator[str]:
    """Yields what a person may not expect of a line that could run in SageMaker too. `has_words`: it has hyperparameters."""
    roles = spec.fields.get("roles")
    own = {f"roles.{number}.": one for number, one in enumerate(roles if isinstance(roles, list) else [])}
    for where, program in {"": spec.fields, **own}.items():
        if has_words and isinstance(program, Mapping) and _ends_in_shell_text(program.get("command")):
            yield (
                f"{where}command: a shell runs its last word, and hyperparameters become its $0, $1 ...; "
                'exec program "$0" "$@" passes them on'
            )
    if spec.fields.get("data"):
        yield "data: is checked, and not brought to the nodes as a channel is; the program reads it from S3, or from mounts"
    idle = [one for one in ("channel", "mode") if given.get(one) is not None]
    if idle:
        yield f"{idle[0]}: says how a channel brings data, and a job has no channels; the program reads data from S3, or from mounts"
    if given.get("metrics"):
        yield "metrics: are read from the log by SageMaker alone; the metric of a job is the one in its PROGRESS_FILE"


def _ends_in_shell_text(command: object) -> bool:
    """Whether words behind the command become positional parameters of a shell."""
    if not isinstance(command, list) or not command or not all(isinstance(one, str) for one in command):
        return False
    return bool(command[-1] == find_shell_text(command))


def build_request(spec: ClusterSpec, index: int, run: GridRun) -> dict[str, Any]:
    """Returns the request of the Train machine."""
    words = write_arguments(spec.hyperparameters)
    found = dict(spec.fields) | ({"owner": run.owner} if run.owner else {})
    found[MARK] = {"execution": run.execution, "index": index}
    if not words:
        return found
    has_image = found.get("image") is not None or _has_arguments_alone(found)
    if isinstance(roles := found.get("roles"), list):
        has_command = found.get("command") is not None
        found["roles"] = [_add_to_role(one, words, has_image=has_image, has_command=has_command) for one in roles]
    return _add_words(found, words, has_image=has_image)


def _has_arguments_alone(program: Mapping[str, Any]) -> bool:
    return program.get("arguments") is not None and program.get("command") is None


def _add_to_role(role: Any, words: list[str], *, has_image: bool, has_command: bool) -> Any:
    """Adds the words to a role that has a command of its own, or arguments of its own for the request's image, or whose own image runs as
    it is; any other takes the request's command or arguments, and has the words that are added there."""
    if not isinstance(role, dict):
        return role
    runs_image = not has_image and not has_command and role.get("image") is not None
    has_own = "command" in role or ("arguments" in role and has_image)
    if not has_own and not runs_image:
        return role
    return _add_words(role, words, has_image=has_image or role.get("image") is not None or "arguments" in role)


def _add_words(program: dict[str, Any], words: list[str], *, has_image: bool) -> dict[str, Any]:
    if has_image:
        given = program.get("arguments") or []
        return program | {"arguments": [*given, *words]} if isinstance(given, list) else program
    command = program.get("command")
    if isinstance(command, str):
        return program | {"command": f"{command} {shlex.join(words)}"}
    return program | {"command": [*command, *words]} if isinstance(command, list) else program


def build_start(spec: ClusterSpec, index: int, run: GridRun, env: GridEnvironment) -> dict[str, Any]:
    """Returns the arguments of StartExecution, which do not depend on when they are made."""
    return {
        "stateMachineArn": env.train_machine,
        "name": training_name(env.deployment, run.execution, run.started_at, index),
        "input": json.dumps(build_request(spec, index, run), sort_keys=True, ensure_ascii=False),
    }


def write_arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """Writes hyperparameters as AWS's toolkit does: sorted by name, one hyphen before a letter."""
    words = list[str]()
    for name, value in sorted(hyperparameters.items()):
        words += [f"-{name}" if len(name) == 1 else f"--{name}", write_value(value)]
    return words


def write_value(value: Any) -> str:
    """Returns the argument that a program gets: texts unchanged, `True` and `False` as the toolkit writes them, everything else as JSON."""
    return str(value) if isinstance(value, bool) else sent(value)


def _translate(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns fields of a request, and what is wrong with those that it cannot have."""
    found, problems = dict[str, Any](), list[str]()
    for name, value in fields.items():
        if value is None or name in OWN or name in LEFT_OUT:
            continue
        if name in INSTEAD or name in OF_THE_INPUT:
            may_be = INSTEAD.get(name) or OF_THE_INPUT[name]
            if value is not False:
                problems.append(f"{name}: means nothing with the backend {Backend.EC2.value}; allowed: {may_be}")
            continue
        other, write = SAME.get(name, (name, _as_it_is))
        if name == "region" and value == AUTO:
            other, write = "regions", _as_it_is
        if (other in fields and other != name) or other in found:
            problems.append(f"{name}: is another name of {other}, and the line has both; allowed: one of them")
        found[other] = write(value)
    return found, problems


def _add_settings(given: Mapping[str, Any], settings: GridDefaults) -> dict[str, Any]:
    """Adds the deployment's own choices where a job would lack something without them."""
    found = dict(given)
    if settings.image and not {"image", "roles"} & given.keys() and not {"code", "command"} <= given.keys():
        found["image"] = settings.image
    if settings.instance_type and not {"instance_types", "accelerators"} & given.keys():
        found["instance_types"] = _without_ml(settings.instance_type)
    return found

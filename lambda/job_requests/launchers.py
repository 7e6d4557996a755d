"""Decides whether a request's launcher can start its command: what it needs beside it, and how many processes a node takes; and whether a
command that starts processes on its own joins the nodes that run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aws.facts import InstanceType
from contract import training
from contract.jobs import Launcher
from contract.roles import RoleEnd
from job_requests.request import JobRequest
from job_requests.roles import count_nodes, split_request
from job_requests.values import AUTO
from refusals.launch_words import JOB, JOB_WITH_ROLES, Gang, word_command, word_lone_launch
from refusals.launching import find_fault, find_launches
from refusals.wording import plain

LAUNCHED = " or ".join(one.value for one in Launcher if one is not Launcher.NONE)

NEXT_PROGRAM = ":"
"""The word at which every mpirun ends one program and its arguments, and begins the next."""
JUDGED_WITH = ("launcher", "nodes", "roles", "environment", "secrets")
"""Fields without which it is not known whether a command joins its nodes."""


def list_launcher_problems(given: object, request: JobRequest) -> list[str]:
    """Rejects what a launcher cannot start, what only a launcher reads, and a launcher of the command's own that leaves each node alone.
    `given` is the request as a person wrote it: a field that is wrong is there, and is rejected as such."""
    if not isinstance(given, Mapping):
        return []
    if request.launcher is Launcher.NONE:
        return [*list_lone_problems(given, request), *_list_needless(given, request)]
    name = request.launcher.value
    if "command" not in given and given.get("image") is not None:
        return [
            f"launcher: {name} starts a command, and the request has none; what the image's entry point starts is not known; "
            f"allowed: {Launcher.NONE.value}, or {name} beside command"
        ]
    return _list_word_problems(request)


def _is_wrong(name: str, given: Mapping[str, object], request: JobRequest) -> bool:
    return name in given and name not in request.model_fields_set


def _list_needless(given: Mapping[str, object], request: JobRequest) -> list[str]:
    if _is_wrong("launcher", given, request) or "processes_per_node" not in request.model_fields_set:
        return []
    return [
        "processes_per_node: the request has no launcher, so each node starts the command once; "
        f"allowed: processes_per_node beside launcher {LAUNCHED}"
    ]


def list_lone_problems(given: object, request: JobRequest) -> list[str]:
    """Rejects commands that start processes of their own on several nodes, each for itself."""
    if not isinstance(given, Mapping) or any(_is_wrong(name, given, request) for name in JUDGED_WITH):
        return []
    variables = {**dict.fromkeys(request.secrets, "$"), **request.environment}
    total, fields = count_nodes(request), JOB_WITH_ROLES if request.roles else JOB
    problems = [
        f"{where}: {word_lone_launch(launch, fault, gang, fields)}"
        for where, part, gang in _list_gangs(request)
        if gang.count > 1
        for launch in find_launches(part.program_words)
        if (fault := find_fault(launch, range(gang.count, total + 1), variables))
    ]
    return list(dict.fromkeys(problems))


def _list_gangs(request: JobRequest) -> Iterator[tuple[str, JobRequest, Gang]]:
    """Yields the nodes that run the same command, with the field that has it: those of neighbouring roles from rank 0 together, those of
    any other role by themselves. Nodes of a role that is served need not be one training."""
    parts = split_request(request)
    if not request.roles:
        yield "command", parts[0], Gang(count=request.nodes, who=f"the {request.nodes} nodes")
        return
    first = parts[0].program_words
    together = next((place for place, part in enumerate(parts) if part.program_words != first), len(parts))
    for number, (role, part) in enumerate(zip(request.roles, parts, strict=True)):
        where = f"roles.{number}.command" if role.command else "command"
        count = sum(one.count for one in request.roles[:together]) if number < together else role.count
        if role.ends is RoleEnd.SERVED:
            continue
        if number >= together or (together == 1 and len(parts) > 1):
            names = f"${{{training.ROLE_ADDRESSES}{role.name.upper()}%%,*}}"
            who = f"the {role.count} nodes of role {role.name}"
            yield (
                where,
                part,
                Gang(count=count, who=who, nodes=str(count), rank=f"${training.ROLE_RANK}", address=names),
            )
        elif together == len(parts):
            yield where, part, Gang(count=count, who=f"the {count} nodes")
        else:
            yield where, part, Gang(count=count, who=f"the {count} nodes that run it", nodes=str(count))


def _list_word_problems(request: JobRequest) -> list[str]:
    """Rejects words of the command that the launcher would read as its own, and a second launcher."""
    name, none, words = request.launcher.value, Launcher.NONE.value, request.program_words
    if launches := find_launches(words):
        own = launches[0]
        joins = not (request.nodes > 1 and find_fault(own, {request.nodes}, request.environment))
        allowed = [*([none] if joins else []), word_command(own, request.launcher, JOB)]
        return [
            f"launcher: {name} starts the command on its own, and the command runs {plain(own.words)}, which starts processes too; "
            f"allowed: {', or '.join(allowed)}"
        ]
    if words and words[0].startswith("-"):
        return [
            f"launcher: {name} would read the first word of command, {plain(words[0])}, as an option of its own; allowed: {none}, or a "
            "command that begins with a program"
        ]
    if request.launcher is Launcher.MPI and NEXT_PROGRAM in words:
        return [
            f"launcher: {name} would read the word {NEXT_PROGRAM} of command as the begin of another program; allowed: {none}, "
            f"{Launcher.TORCHRUN.value}, or a command without the word {NEXT_PROGRAM}"
        ]
    return []


def list_process_problems(request: JobRequest, types: Mapping[str, InstanceType]) -> list[str]:
    """Rejects more processes than a machine of a type has GPUs, Neuron cores or vCPUs for. Where EC2 names none, any number will do."""
    number = request.processes_per_node
    if request.launcher is Launcher.NONE:
        return []
    lines = []
    for name in request.instance_types:
        most, what = _count_places(types[name]) if name in types else (0, "")
        if most and number > most:
            lines.append(
                f"processes_per_node: {number} is too large for {name}, which has {most} {what}{'' if most == 1 else 's'}; "
                f"allowed: {AUTO}, or a whole number from 1 to {most}"
            )
    return lines


def _count_places(kind: InstanceType) -> tuple[int, str]:
    """Returns how many processes a machine has room for, and of what each takes one; 0 where EC2 does not say."""
    if kind.gpus:
        return kind.gpus, "GPU"
    return (kind.neuron_cores, "Neuron core") if kind.neuron_cores else (kind.vcpus, "vCPU")

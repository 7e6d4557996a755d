"""Decides whether a request's launcher can start its command: what it needs beside it, and how many processes a node takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws.facts import InstanceType
from contract.jobs import Launcher
from job_requests.request import JobRequest
from job_requests.shell import read_first_words
from job_requests.values import AUTO
from refusals.commands import find_launcher, find_shell_text
from refusals.wording import plain

LAUNCHED = " or ".join(one.value for one in Launcher if one is not Launcher.NONE)

NEXT_PROGRAM = ":"
"""The word at which every mpirun ends one program and its arguments, and begins the next."""


def list_launcher_problems(given: object, request: JobRequest) -> list[str]:
    """Rejects what a launcher cannot start, and what only a launcher reads. `given` is the request as a person wrote it: a field that is
    wrong is there, and is rejected as such."""
    if not isinstance(given, Mapping):
        return []
    if request.launcher is Launcher.NONE:
        is_wrong = "launcher" in given and "launcher" not in request.model_fields_set
        if is_wrong or "processes_per_node" not in request.model_fields_set:
            return []
        return [
            "processes_per_node: the request has no launcher, so each node starts the command once; "
            f"allowed: processes_per_node beside launcher {LAUNCHED}"
        ]
    name = request.launcher.value
    if "command" not in given and given.get("image") is not None:
        return [
            f"launcher: {name} starts a command, and the request has none; what the image's entry point starts is not known; "
            f"allowed: {Launcher.NONE.value}, or {name} beside command"
        ]
    return _list_word_problems(request)


def _list_word_problems(request: JobRequest) -> list[str]:
    """Rejects words of the command that the launcher would read as its own, and a second launcher."""
    name, none, words = request.launcher.value, Launcher.NONE.value, request.program_words
    if begins := _find_own_launcher(words):
        return [
            f"launcher: {name} starts the command on its own, and the command begins with {plain(begins)}, which starts processes too; "
            f"allowed: {none}, or the command without it"
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


def _find_own_launcher(words: Sequence[str]) -> str:
    """Returns the words with which the command starts processes itself, also as the text of a shell; empty where that is not certain."""
    text = find_shell_text(words)
    return find_launcher(words if text is None else read_first_words(text))

"""Words refusals of launchers: what would go wrong, and the line that is right in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from contract import training
from contract.cluster import SCRIPT
from contract.jobs import Launcher
from refusals.launching import OwnLaunch, read_options
from refusals.wording import plain

REST = "..."
"""Stands for the words that stay as they are, if there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The machines that run a command together, and how a shell there reads who they are."""

    count: int
    who: str
    """Names them, as in `the 2 nodes`."""
    nodes: str = f"${training.NUM_NODES}"
    rank: str = f"${training.NODE_RANK}"
    address: str = f"${training.MASTER_ADDR}"
    port: str = f"${training.MASTER_PORT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFields:
    """The fields of a request or of a line in which a launcher is asked for."""

    launcher: str
    """Empty if there is none."""
    command: str
    processes: str = ""
    """The field for the processes of each machine; empty if there is none for every launcher."""
    takes_script_alone: bool = False
    """Whether `command` is the path of a script, and no list of words."""
    has_variables: bool = True
    """Whether a shell has the variables of a Gang."""


JOB = LaunchFields(launcher="launcher", command="command", processes="processes_per_node")
JOB_WITH_ROLES = LaunchFields(launcher="", command="command")
POD_LINE = LaunchFields(launcher="distribution", command="entrypoint")
SAGEMAKER_LINE = LaunchFields(launcher="distribution", command="program", takes_script_alone=True, has_variables=False)


def word_lone_launch(launch: OwnLaunch, fault: str, gang: Gang, fields: LaunchFields) -> str:
    """Returns the refusal, without its field, of a launch that several machines run and that would not join them because of the fault."""
    allowed = ", or ".join(_list_allowed(launch, gang, fields))
    return f"{plain(launch.words)} would not join {gang.who} into one training: {fault}; allowed: {allowed}"


def word_command(launch: OwnLaunch, launcher: Launcher, fields: LaunchFields) -> str:
    """Returns the field and its value without the command's own launcher, as the other one takes it; words if it is not known, and
    nothing if the field cannot have it."""
    program = read_options(launch).program
    is_script = bool(program) and program[0].endswith(SCRIPT)
    if fields.takes_script_alone:
        return f'"{fields.command}": {_quote(program[0])}' if is_script else ""
    if not program:
        return f"{fields.command} without it"
    first = program[:3] if program[1:2] == ("-m",) else program[:1]
    shown = [_quote(one) for one in (*(["python"] if is_script and launcher is Launcher.MPI else []), *first)]
    return f'"{fields.command}": [{", ".join([*shown, REST])}]'


def _quote(word: str) -> str:
    return f'"{plain(word)}"'


def _list_allowed(launch: OwnLaunch, gang: Gang, fields: LaunchFields) -> Iterator[str]:
    kind, has_any = launch.kind, False
    if (
        kind.instead is not Launcher.NONE
        and fields.launcher
        and (command := word_command(launch, kind.instead, fields))
    ):
        number = read_options(launch).given.get(kind.processes, "")
        processes = f', "{fields.processes}": {number}' if fields.processes and number.isdecimal() else ""
        yield f'"{fields.launcher}": "{kind.instead.value}"{processes} with {command}'
        has_any = True
    if kind.own and fields.has_variables:
        own = kind.own.format(nodes=gang.nodes, rank=gang.rank, address=gang.address, port=gang.port)
        yield own if launch.is_in_shell else f"bash -c with {own}"
        has_any = True
    if not has_any:
        yield f"options that tell it of {gang.who}, or one of them"

"""Finds what a command starts that starts processes of its own, and whether that is for one machine only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from contract import training
from contract.cluster import SCRIPT
from refusals.commands import PYTHON, find_shell_text, split_python
from refusals.launchers import LAUNCHERS, LauncherKind, Names
from refusals.shell_commands import ShellCommand, list_choices, list_commands
from refusals.wording import plain
from refusals.wrappers import unwrap

DEEPEST = 5
"""Shells within shells that are read."""
LOOPBACK = re.compile(r"(\w+://)?(localhost|127(\.\d+){3}|0\.0\.0\.0|\[?::1\]?)?(:\d*)?")
PLACES = (
    training.NODE_RANK,
    training.NUM_NODES,
    training.MASTER_ADDR,
    training.ROLE,
    training.CLUSTER_SPEC,
    training.TF_CONFIG,
    "SM_",
)
PLACE = re.compile(rf"\$\{{?({'|'.join(PLACES)})")
"""Variables that say which machine this is among the others, or where those are."""
MANY = re.compile(r"\$(\{?[@*]|\{?\w*(ARG|OPT|FLAG|PARAM|LAUNCH|EXTRA|DIST)|\{\w+\[)", re.IGNORECASE)
"""Variables that stand for options, also where the value of another may be."""
IDLE = frozenset(
    {
        "cd",
        "set",
        "source",
        ".",
        "mkdir",
        "echo",
        "pip",
        "ulimit",
        "umask",
        "unset",
        "sleep",
        "nvidia-smi",
        "ls",
        "pwd",
        "date",
    }
)
"""Commands that write no file of settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLaunch:
    """A part of a command that starts processes of its own."""

    kind: LauncherKind
    words: str
    """The launcher as it is written, as in `python -m torch.distributed.run`."""
    rest: tuple[str, ...]
    """Its options, what it starts and that one's words."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Set for it by the command."""
    is_in_shell: bool = False
    """Whether variables among its words mean something."""
    is_prepared: bool = False
    """Whether something runs before it that may write its settings."""


@dataclass(slots=True)
class LaunchOptions:
    """What the words of a launcher say."""

    given: dict[str, str] = field(default_factory=dict)
    """Its options, as its kind spells them; those that say nothing of machines or processes are left out."""
    program: tuple[str, ...] = ()
    """What it starts, with that one's words, as a command; empty if that is not certain."""
    is_vague: bool = False
    """Whether a variable among them may stand for any option."""


def find_launches(words: Sequence[str]) -> list[OwnLaunch]:
    """Returns every part of a command that certainly starts processes of its own, in order."""
    return list(_find(words, is_in_shell=False, depth=0))


def _find(words: Sequence[str], *, is_in_shell: bool, depth: int) -> Iterator[OwnLaunch]:
    run, variables = unwrap(words)
    text = " ".join(run[1:]) if run[:1] == ["eval"] else find_shell_text(run)
    if text is None:
        if (found := _match(run)) is not None:
            yield replace(found, variables=variables, is_in_shell=is_in_shell)
    elif depth < DEEPEST:
        for command in list_commands(text):
            yield from _find_in(command, variables, depth)
        for branches in list_choices(text):
            every = [[one for each in commands for one in _find_in(each, variables, depth)] for commands in branches]
            if all(every) and all(_is_alike(every[0][0], one[0]) for one in every):
                yield every[0][0]


def _find_in(command: ShellCommand, variables: Mapping[str, str], depth: int) -> Iterator[OwnLaunch]:
    for one in _find(command.words, is_in_shell=True, depth=depth + 1):
        together = {**variables, **command.variables, **one.variables}
        is_prepared = one.is_prepared or not IDLE.issuperset(command.follows)
        yield replace(one, variables=together, is_prepared=is_prepared)


def _is_alike(one: OwnLaunch, other: OwnLaunch) -> bool:
    """Whether two launches say the same of machines, so that it does not matter which of them runs."""
    if one.kind is not other.kind or one.variables != other.variables:
        return False
    options, others = read_options(one), read_options(other)
    return options.given == others.given and not options.is_vague and not others.is_vague


def _match(words: Sequence[str]) -> OwnLaunch | None:
    """Returns the launcher with which the words begin; None if they begin with none."""
    if not words:
        return None
    program, rest = words[0], list(words[1:])
    is_variable = program.startswith("$") and rest[:1] == ["-m"]
    if not is_variable and not PYTHON.fullmatch(program.rsplit("/", 1)[-1]):
        return _match_names(program, [_name(program), *rest])
    option, word, behind = split_python(rest)
    if option == "-m":
        return _match_names(f"{program} -m {word}", [word, *behind], is_module=True)
    return None if option or not word else _match_names(f"{program} {word}", [_name(word), *behind])


def _name(program: str) -> str:
    """A program beside the code may be called as a launcher is."""
    folder, _, name = program.rpartition("/")
    return program if folder == "." else name


def _match_names(begin: str, words: Sequence[str], *, is_module: bool = False) -> OwnLaunch | None:
    for kind in LAUNCHERS:
        for name in kind.modules if is_module else kind.programs:
            rest = tuple(words[len(name) :])
            is_meant = not kind.needs or any(one.startswith(kind.needs) or one.endswith(kind.needs) for one in rest)
            if tuple(words[: len(name)]) == name and is_meant:
                return OwnLaunch(kind=kind, words=" ".join((begin, *name[1:])), rest=rest)
    return None


def find_fault(launch: OwnLaunch, numbers: Collection[int], environment: Mapping[str, str]) -> str:
    """Returns why a launch that several machines run would not join them, as a sentence; empty if it may. `numbers` are those of machines
    that it may name; `environment` has the variables that are set for it."""
    kind, options, variables = launch.kind, read_options(launch), {**environment, **launch.variables}
    if not kind.joins or options.is_vague or _names_hosts(launch, options, variables):
        return ""
    if launch.is_in_shell and any(PLACE.search(one) for one in options.program[1:]):
        return ""  # its program may join the others by itself
    if alone := _find_name(kind.alone, options.given, variables):
        return f"{alone[0]} is for one node"
    count, master = (_find_name(names, options.given, variables) for names in (kind.counts, kind.masters))
    if kind.counts and count is None:
        return f"it names no number of nodes ({kind.counts[0]})"
    if not kind.counts:
        return f"it names no other nodes ({kind.hosts[0]})"
    if not launch.is_in_shell and (literal := [one for one in options.given.values() if "$" in one]):
        return f"no shell replaces {plain(literal[0])}"
    if count and kind.counts_nodes and not _is_number_of(count[1], numbers):
        return f"{count[0]} {plain(count[1])} is not the number of nodes"
    if kind.masters and (master is None or LOOPBACK.fullmatch(master[1])):
        return f"it names no address of rank 0 ({' or '.join(one for one in kind.masters if one.startswith('-'))})"
    return ""


def _names_hosts(launch: OwnLaunch, options: LaunchOptions, variables: Mapping[str, str]) -> bool:
    """Whether it is told of the machines in a way that cannot be judged before they are there."""
    files = any("hostfile" in one.lower() for one in (*launch.rest, *variables))
    is_set = _find_name(launch.kind.settings, options.given, {}) is not None and launch.is_prepared
    hosts = _find_name(launch.kind.hosts, options.given, variables)
    return files or is_set or (hosts is not None and not all(map(LOOPBACK.fullmatch, hosts[1].split(","))))


def _find_name(names: Names, given: Mapping[str, str], variables: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the first of the options and variables that is there, and its value; an option comes before a variable."""
    found = (
        (one, given[one]) if one in given else (one, variables[one])
        for one in names
        if one in given or one in variables
    )
    return next(found, None)


def _is_number_of(value: str, numbers: Collection[int]) -> bool:
    """Whether a number, or a range of them (`1:2`), has one of these; yes for what is no number."""
    least, _, most = value.partition(":")
    if not (least.isdecimal() and (most or least).isdecimal()):
        return True
    return any(int(least[:9]) <= one <= int((most or least)[:9]) for one in numbers)


def read_options(launch: OwnLaunch) -> LaunchOptions:
    """Reads a launcher's own words. What stands behind a word that it may not be its own is left out."""
    kind, found, left = launch.kind, LaunchOptions(), list(launch.rest)
    named = {_spell(one): one for one in (*kind.counts, *kind.masters, *kind.hosts, *kind.settings, kind.processes)}
    alone = {_spell(one): one for one in kind.alone}
    known, is_certain, module = {*named, *alone, *kind.flags, *kind.values}, kind.is_whole, False
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            if word.startswith(("$", "`")):
                found.is_vague = True
            elif is_certain or word.endswith(SCRIPT):
                found.program = ("python", "-m", word, *left) if module else (word, *left)
            else:
                continue
            break
        option, equals, value = word.partition("=")
        option = _resolve(option, known) if kind.is_whole else _spell(option)
        if option in alone or option in kind.flags:
            module = module or option in ("-m", "--module")
            found.given |= {alone[option]: ""} if option in alone else {}
            continue
        is_certain = is_certain and option in known
        if not equals and left and (option in known or (left[0].startswith(("$", "`")) and not MANY.match(left[0]))):
            value = left.pop(0)
        if option in named:
            found.given[named[option]] = value
    return found


def _spell(option: str) -> str:
    return option.replace("_", "-")


def _resolve(option: str, known: Collection[str]) -> str:
    """Returns the option that is meant: the launcher takes the beginning of one as well, if there is no other such one."""
    spelt = _spell(option)
    meant = [one for one in known if one.startswith(spelt)] if spelt.startswith("--") and spelt not in known else []
    return meant[0] if len(meant) == 1 else spelt

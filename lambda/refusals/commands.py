"""Finds what a command runs: a file, a module, the text of a shell. What is not certain is not found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from refusals.launchers import TORCHRUN, TORCHRUN_FLAGS

PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
PYTHON_FLAGS = frozenset("bBdEIOPqRsSuvx")
PYTHON_VALUES = frozenset("WX")
SHELL_FLAGS = frozenset("abefhiklmnptuvxBCEHPT")
SHELL_WORDS = frozenset({"--login", "--noprofile", "--norc", "--posix"})
"""Options of bash that change nothing of what it runs."""


def script(command: Sequence[str]) -> str | None:
    """Returns the file that the first program opens, relative to the folder of the code; None where this cannot be known."""
    program, arguments = command[0], list(command[1:])
    if _is_python(program):
        found = _of_python(arguments)
    elif _is_shell(program):
        found = _of_shell(arguments)
    elif (program,) in TORCHRUN.programs:
        found = _of_launcher(arguments)
    else:
        found = program if "/" in program else None
    return found if found and not found.startswith(("/", "~", "-")) else None


def find_shell_text(command: Sequence[str]) -> str | None:
    """Returns the text that a shell is given to run (`bash -c TEXT`); None where the command gives none to a shell."""
    if not command or not _is_shell(command[0]):
        return None
    option, word = _split_shell(command[1:])
    return word if option == "-c" else None


def _name(program: str) -> str:
    return program.rsplit("/", 1)[-1]


def _is_python(program: str) -> bool:
    return PYTHON.fullmatch(_name(program)) is not None and ("/" not in program or program.startswith("/"))


def _is_shell(program: str) -> bool:
    return _name(program) in SHELLS and ("/" not in program or program.startswith("/"))


def _of_python(arguments: Sequence[str]) -> str | None:
    option, word, rest = split_python(arguments)
    if option == "-m" and (word,) in TORCHRUN.modules:
        return _of_launcher(rest)
    return word if not option and word else None


def split_python(arguments: Sequence[str]) -> tuple[str, str, list[str]]:
    """Returns `-m` and the module that Python runs, or nothing and the file, and in both cases the arguments of that; an option and nothing
    where Python runs neither, or where this is not known."""
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            return "", word, left
        flags, module, attached = word[1:].partition("m")
        if module and PYTHON_FLAGS.issuperset(flags):
            name = attached or (left.pop(0) if left else "")
            return "-m", name, left
        letters = word[1:]
        if letters[:1] and letters[0] in PYTHON_VALUES:
            left = left if letters[1:] else left[1:]
        elif not letters or not PYTHON_FLAGS.issuperset(letters):
            return word, "", left  # -c, - and unknown options
    return "", "", left


def _of_shell(arguments: Sequence[str]) -> str | None:
    """A shell also looks for a name on PATH; a name that ends in .sh is taken for a file of the archive."""
    option, word = _split_shell(arguments)
    return word if not option and ("/" in word or word.endswith(".sh")) else None


def _split_shell(arguments: Sequence[str]) -> tuple[str, str]:
    """Returns `-c` and the text that a shell runs, or nothing and the file; an option and nothing where this is not known."""
    left, option = list(arguments), ""
    while left:
        word = left.pop(0)
        if not word.startswith(("-", "+")):
            return option, word
        if word in SHELL_WORDS:
            continue
        letters = word[1:]
        if word[0] == "-" and "c" in letters:
            option, letters = "-c", letters.replace("c", "")
            if not letters:
                continue
        if letters.endswith("o") and SHELL_FLAGS.issuperset(letters[:-1]):
            left = left[1:]  # -o pipefail, -euo pipefail
        elif not letters or not SHELL_FLAGS.issuperset(letters):
            return word, ""  # -s and unknown options
    return option, ""


def _of_launcher(arguments: Sequence[str]) -> str | None:
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            return word
        option, equals, _ = word.partition("=")
        option = option.replace("_", "-")
        if option in TORCHRUN.values:
            left = left if equals else left[1:]
        elif option not in TORCHRUN_FLAGS:
            return None  # --module, --no-python and unknown options
    return None

"""Finds the file that a command runs. Where this cannot be known for certain, the answer is None."""

from __future__ import annotations

import re
from collections.abc import Sequence

PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
PYTHON_FLAGS = frozenset("bBdEIOPqRsSuvx")
PYTHON_VALUES = frozenset("WX")
SHELL_FLAGS = frozenset("abefhiklmnptuvxBCEHPT")
LAUNCHERS = frozenset({"torch.distributed.run", "torch.distributed.launch"})
LAUNCHER_FLAGS = frozenset({"--standalone", "--virtual-local-rank", "--use-env"})
LAUNCHER_VALUES = frozenset(
    {
        "--nnodes", "--nproc-per-node", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf", "--max-restarts",
        "--monitor-interval", "--start-method", "--role", "--log-dir", "--redirects", "--tee", "--local-ranks-filter",
        "--node-rank", "--master-addr", "--master-port", "--local-addr", "--logs-specs", "--log-line-prefix-template", "-r", "-t",
    }
)  # fmt: skip
"""Options of torchrun. An option that is not here may take a value, so the script behind it is unknown."""


def script(command: Sequence[str]) -> str | None:
    """Returns the file that the first program opens, relative to the folder of the code; None where this cannot be known."""
    program, arguments = command[0], list(command[1:])
    name = program.rsplit("/", 1)[-1]
    if PYTHON.fullmatch(name) and ("/" not in program or program.startswith("/")):
        found = _of_python(arguments)
    elif name in SHELLS and ("/" not in program or program.startswith("/")):
        found = _of_shell(arguments)
    elif program == "torchrun":
        found = _of_launcher(arguments)
    else:
        found = program if "/" in program else None
    return found if found and not found.startswith(("/", "~", "-")) else None


def _of_python(arguments: Sequence[str]) -> str | None:
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "-m" and left and left[0] in LAUNCHERS:
            return _of_launcher(left[1:])
        if not word.startswith("-"):
            return word
        letters = word[1:]
        if letters[:1] and letters[0] in PYTHON_VALUES:
            left = left if letters[1:] else left[1:]
        elif not letters or not PYTHON_FLAGS.issuperset(letters):
            return None  # -c, -m, - and unknown options
    return None


def _of_shell(arguments: Sequence[str]) -> str | None:
    """A shell also looks for a name on PATH; a name that ends in .sh is taken for a file of the archive."""
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith(("-", "+")):
            return word if "/" in word or word.endswith(".sh") else None
        letters = word[1:]
        if letters.endswith("o") and SHELL_FLAGS.issuperset(letters[:-1]):
            left = left[1:]  # -o pipefail, -euo pipefail
        elif not letters or not SHELL_FLAGS.issuperset(letters):
            return None  # -c, -s and unknown options
    return None


def _of_launcher(arguments: Sequence[str]) -> str | None:
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            return word
        option, equals, _ = word.partition("=")
        option = option.replace("_", "-")
        if option in LAUNCHER_VALUES:
            left = left if equals else left[1:]
        elif option not in LAUNCHER_FLAGS:
            return None  # --module, --no-python and unknown options
    return None

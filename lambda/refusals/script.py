"""Decides whether an archive has the file that a command runs. Where this cannot be known for certain, the answer is yes."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Sequence

from refusals.archive import Listing
from refusals.fields import ARCHIVE_ENDINGS
from refusals.wording import plain

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


def archive_problems(code: str, command: Sequence[str], found: Listing | None) -> list[str]:
    """Lists what would end every node after minutes that cost money: an empty archive, or one without the file to run."""
    return code_problems(code, script(command) if command else None, found, "command")


def code_problems(
    code: str, wanted: str | None, found: Listing | None, field: str, endings: str = ARCHIVE_ENDINGS
) -> list[str]:
    """As archive_problems does, for the file that `field` says: None where nobody can know which it is. `endings`: names that may be."""
    where = plain(code)
    if found is None:
        return []
    if found.broken:
        return [f"code: {where} cannot be read ({plain(found.broken)}); allowed: a whole {endings}"]
    if found.refused:
        return [f"code: {where} {found.refused}; allowed: plain relative names, and links that stay in the archive"]
    if found.whole and not found.names:
        return [f"code: {where} is an empty archive; allowed: an archive of what the command runs"]
    if wanted is None or not found.lacks(wanted):
        return []
    return [
        f"{field}: runs {plain(wanted)}, which is not in {where}{_elsewhere(wanted, found)}; allowed: a file of the archive, "
        "by its path from the archive's root"
    ]


def _elsewhere(wanted: str, found: Listing) -> str:
    """Finds a file of that name in another folder, or one with a similar name."""
    path = posixpath.normpath(wanted)
    for one in sorted(found.names):
        folder = one.removesuffix(f"/{path}")
        if folder != one and all(other.startswith(f"{folder}/") for other in found.names):
            pack = f"pack the folder's contents, as `tar -C {plain(folder)} -czf code.tar.gz .` does"
            return f" (it is at {plain(one)}: {pack})"
    same = sorted(one for one in found.names if posixpath.basename(one) == posixpath.basename(path))
    close = same or difflib.get_close_matches(path, found.names, n=1)
    return f" (did you mean {plain(close[0])}?)" if close else ""


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

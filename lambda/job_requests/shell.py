"""Finds shell syntax in a command given as one text: no shell runs it, so the program would receive the syntax as plain arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator

_EXPANSION = r"\$(?:[A-Za-z_]\w*|\{[^}]*\}?|\([^)]*\)?|[0-9@*#?$!-])|`[^`]*`?"
_IN_QUOTES = re.compile(rf"\\.|({_EXPANSION})", re.DOTALL)
_WHOLE = re.compile(
    rf"""
      \\\n                                        # a line that goes on
    | \\.                                         # taken as it stands
    | '[^']*'                                     # so is everything here
    | "(?P<quoted>(?:[^"\\]|\\.)*)"               # variables mean something in here
    | (?P<expansion>{_EXPANSION}|\$['"])
    | (?P<operator>&&|\|\||;;|[0-9]?[<>]+&?|[&|;()]|\n)
    | (?P<glob>[^\s'"\\;&|<>()$`*?]*[*?][^\s'"\\;&|<>()$`]*)
    | (?P<start>(?<!\S)(?:~\S*|\#.*))
    | [^\s'"\\$`&|;<>()*?]+
    """,
    re.DOTALL | re.VERBOSE,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=\S*")
BUILT_IN = frozenset(
    (
        "cd",
        "export",
        "source",
        ".",
        "exec",
        "eval",
        "set",
        "unset",
        "alias",
        "ulimit",
        "umask",
        "if",
        "for",
        "while",
        "case",
        "{",
        "!",
    )
)
"""First words that only a shell understands; as programs, if they exist, they would change nothing that lasts."""
NAMES = {"\n": "a line break", "\\\n": "a line break"}


def shell_syntax(text: str) -> list[str]:
    """Returns the pieces that a shell would interpret, in order, each once; quoted text is not interpreted.

    `[`, `]`, `{` and `}` are not reported, because a shell passes them on where no file matches: `model.layers=[1,2]` is common.
    """
    return list(dict.fromkeys(NAMES.get(piece, piece) for piece in _pieces(text.strip())))


def _pieces(text: str) -> Iterator[str]:
    first = re.match(r"\S*", text)
    if first and (_ASSIGNMENT.match(text) or first.group() in BUILT_IN):
        yield (_ASSIGNMENT.match(text) or first).group()
    for found in _WHOLE.finditer(text):
        if found.group() == "\\\n":
            yield found.group()
        elif (quoted := found.group("quoted")) is not None:  # "" is an empty argument
            yield from (one.group() for one in _IN_QUOTES.finditer(quoted) if _acts(one))
        elif found.lastgroup:
            yield found.group()


def _acts(found: re.Match[str]) -> bool:
    r"""Whether a shell would interpret it: in double quotes it removes the backslash of `\$` and `` \` ``; splitting words does not."""
    return found.group(1) is not None or found.group() in (r"\$", r"\`")

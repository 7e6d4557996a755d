"""Reads the text of a shell: which commands it runs for certain, whatever its conditions say. What is not certain is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

OPERATORS = ("&&", "||", ";;", "((", "<(", ">(", ";", "&", "|", "(", ")", "\n")
"""Longer ones first."""
SPECIAL = frozenset("&|;()<>\n")
QUOTES = frozenset("'\"`")
OPENS = frozenset({"if", "while", "until", "for", "case", "select"})
"""Words with which a command begins that runs others, or does not."""
HEADED = frozenset({"for", "case", "select"})
"""Those whose own words are no command."""
CLOSES = frozenset({"fi", "done", "esac"})
BETWEEN = frozenset({"then", "else", "elif", "do", "{", "}", "!"})
TESTS = frozenset({"[", "[[", "test", "grep", "command", "which", "type", "hash", "cmp", "diff"})
"""Programs that are run for their exit code: what follows them behind && is a condition's."""
LEAVES = frozenset({"exit", "return"})
SKIPS = frozenset({"break", "continue"})
PATTERNS = frozenset("$`*?[{~")
"""What makes of a word of a loop none, or several."""
SETS = frozenset({"export", "declare", "readonly", "local", "typeset"})
"""Commands that set variables."""
GIVES_UP = frozenset({"function", "alias"})
"""Commands that give names of programs another meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """A command that a shell runs for certain."""

    words: tuple[str, ...]
    """Without quotes; variables stand as they are written."""
    variables: Mapping[str, str]
    """Those that the text sets before it."""
    follows: tuple[str, ...]
    """The programs that run before it."""
    branch: tuple[int, int] | None = None
    """For one that runs in a branch of an `if` alone: which `if`, and which of its branches."""


@dataclass(slots=True)
class _OpenBlock:
    """A condition or a loop that is open."""

    word: str
    is_certain: bool
    """Whether what stands there now runs for certain, if the whole does."""
    number: int
    branch: int = 0
    """Of an `if`: which branch is open, from 1 on; 0 in its conditions."""
    branches: int = 0
    has_else: bool = False
    is_doubtful: bool = False
    """Whether its branches are for different machines, or end the text."""


@dataclass(slots=True)
class _Context:
    """What is known where the next command begins."""

    opened: list[_OpenBlock] = field(default_factory=list)
    """Conditions and loops that are open, the outermost first."""
    count: int = 0
    """Of those that were opened so far."""
    choices: dict[int, int] = field(default_factory=dict)
    """Each `if` one of whose branches runs for certain, by its number, with how many it has."""
    is_conditional: bool = False
    """Whether the rest of its chain of && and || depends on an exit code."""
    variables: dict[str, str] = field(default_factory=dict)
    follows: tuple[str, ...] = ()


class _Unreadable(Exception):
    """The text has a quote or a substitution without an end, or gives names of programs another meaning."""


def list_commands(text: str) -> list[ShellCommand]:
    """Returns the commands that the text runs for certain, in order; none if it cannot be read."""
    try:
        return [one for one in _read_commands(text, _Context()) if one.branch is None]
    except _Unreadable:
        return []


def list_choices(text: str) -> list[list[list[ShellCommand]]]:
    """Returns each `if` that runs for certain and has an `else`, as the commands of each of its branches. Those whose conditions ask for
    a rank are left out."""
    context = _Context()
    try:
        commands = list(_read_commands(text, context))
    except _Unreadable:
        return []
    return [
        [[one for one in commands if one.branch == (number, branch)] for branch in range(1, branches + 1)]
        for number, branches in sorted(context.choices.items())
    ]


def read_assignment(word: str) -> tuple[str, str] | None:
    """Returns name and value of a word that sets a variable; None if it sets none."""
    name, equals, value = word.partition("=")
    name = name.removesuffix("+")
    return (name, value) if equals and name.isidentifier() and name.isascii() else None


def _read_commands(text: str, context: _Context) -> Iterator[ShellCommand]:
    words, array = list[str](), False
    for is_word, token in [*_split(text), (False, "\n")]:
        if array:  # ARGS=(--nnodes 2)
            array = is_word or token != ")"
        elif is_word:
            words.append(token)
        elif token == "(" and words:
            if not words[-1].endswith("="):
                raise _Unreadable  # the definition of a function
            array = True
        else:
            command = _take(words, context)
            if command is not None:
                yield command
                if command.branch is None and (command.words[0] in LEAVES or words[0] == "exec"):
                    return
            if token in (";", "&", "\n", ";;"):
                context.is_conditional = False
            elif token in ("||", "((") or (token == "&&" and _find_program(words) in TESTS):
                context.is_conditional = True
            words = []


def _find_program(words: list[str]) -> str:
    return next((one for one in words if one not in OPENS | CLOSES | BETWEEN), "")


def _take(words: list[str], context: _Context) -> ShellCommand | None:
    """Returns the command of the words, and notes what it means for those that follow; None if it is none for certain."""
    left = list(words)
    while left and left[0] in OPENS | CLOSES | BETWEEN:
        word = left.pop(0)
        _note_word(word, left, context)
        if word in HEADED:
            return None
    own = dict[str, str]()
    while left and (found := read_assignment(left[0])):
        own[found[0]] = found[1]
        left.pop(0)
    _note_doubt(left, context)
    inner = context.opened[-1] if context.opened else None
    branch = (inner.number, inner.branch) if inner and inner.branch else None
    outer = context.opened[:-1] if branch else context.opened
    is_certain = not context.is_conditional and all(one.is_certain for one in outer)
    if not left or left[0] in SETS:
        # Conditions too: what such a variable says may be said for a launcher that follows.
        context.variables |= own | dict(filter(None, map(read_assignment, left[1:])))
        return None
    if left[0] in GIVES_UP:
        raise _Unreadable
    follows, context.follows = context.follows, (*context.follows, left[0])
    variables = {**context.variables, **own}
    return ShellCommand(words=tuple(left), variables=variables, follows=follows, branch=branch) if is_certain else None


def _note_word(word: str, behind: list[str], context: _Context) -> None:
    """Notes what a word opens or closes. For certain run the first condition of an `if` or a loop, and a loop over words as they are."""
    opened = context.opened
    if word in OPENS:
        is_certain = not context.is_conditional and word not in ("case", "select")
        if word == "for":
            is_certain = (
                is_certain and behind[1:2] == ["in"] and len(behind) > 2 and not PATTERNS & set("".join(behind[2:]))
            )
        context.count += 1
        opened.append(_OpenBlock(word=word, is_certain=is_certain, number=context.count, is_doubtful=not is_certain))
    elif not opened:
        return
    elif word in CLOSES:
        ended = opened.pop()
        if ended.word == "if" and ended.has_else and not ended.is_doubtful and all(one.is_certain for one in opened):
            context.choices[ended.number] = ended.branches
    elif word == "do" and opened[-1].word in ("while", "until"):
        opened[-1].is_certain = False
    elif opened[-1].word == "if" and word in ("then", "elif", "else"):
        inner = opened[-1]
        inner.is_certain, inner.has_else = False, word == "else"
        inner.branches += word != "elif"
        inner.branch = inner.branches if word != "elif" else 0


def _note_doubt(words: list[str], context: _Context) -> None:
    """Notes a command by which others of the same loop or `if` may not run, or run on some machines alone."""
    if words[:1] and words[0] in SKIPS:
        for one in context.opened:
            one.is_certain = False
    for one in context.opened:
        ends = bool(words) and words[0] in LEAVES | SKIPS
        one.is_doubtful = one.is_doubtful or ends or (not one.branch and any("RANK" in word for word in words))


def _split(text: str) -> Iterator[tuple[bool, str]]:
    """Yields the text's words and operators, each with whether it is a word. Redirections and comments are left out."""
    at, word, is_target = 0, list[str](), False
    has_word, bodies = False, list[str]()
    while at <= len(text):
        letter = text[at : at + 1]
        if (letter and letter in QUOTES) or text.startswith(("$(", "${", "\\"), at):
            piece, at = _read_quoted(text, at)
            word.append(piece)
            has_word = has_word or bool(piece) or letter in QUOTES
            continue
        is_special = bool(letter) and letter in SPECIAL
        operator = next((one for one in OPERATORS if text.startswith(one, at)), "") if is_special else ""
        is_redirection = is_special and text.startswith(("<", ">", "&>"), at) and operator not in ("<(", ">(")
        if letter and not letter.isspace() and not operator and not is_redirection:
            if letter == "#" and not has_word:
                end = text.find("\n", at)
                at = end if end >= 0 else len(text)
                continue
            word.append(letter)
            at, has_word = at + 1, True
            continue
        if has_word and not is_target and not (is_redirection and "".join(word).isdigit()):
            yield True, "".join(word)
        is_target = is_target and not has_word and letter in (" ", "\t")
        word, has_word = [], False
        if is_redirection:
            at, mark = _read_redirection(text, at)
            bodies += [mark] if mark else []
            is_target = not mark
        elif operator in ("<(", ">("):
            piece, at = _read_group(text, at + 1)
            word, has_word = [f"{letter}{piece}"], True
        else:
            at += len(operator) or 1
            if operator == "\n":
                at, bodies = _skip_bodies(text, at, bodies), []
            if operator:
                yield False, operator


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    """Returns what a shell reads there as a part of a word, and where it ends: something in quotes or behind \\, or a substitution."""
    if text[at] == "\\":
        return ("" if text.startswith("\\\n", at) else text[at + 1 : at + 2]), at + 2
    if text[at] == "$":
        return _read_group(text, at + 1, "$")
    mark = text[at]
    if mark != '"':
        end = text.find(mark, at + 1)
        if end < 0:
            raise _Unreadable
        return text[at + 1 : end] if mark == "'" else text[at : end + 1], end + 1
    pieces, at = list[str](), at + 1
    while at < len(text) and text[at] != '"':
        if text.startswith(("$(", "${"), at):
            piece, at = _read_group(text, at + 1, "$")
        elif text[at] == "\\":
            piece, at = text[at + 1 : at + 2] if text[at + 1 : at + 2] in '$`"\\' else text[at : at + 2], at + 2
        else:
            piece, at = text[at], at + 1
        pieces.append(piece)
    if at >= len(text):
        raise _Unreadable
    return "".join(pieces), at + 1


def _read_group(text: str, at: int, before: str = "") -> tuple[str, int]:
    """Returns what is between a bracket and its end, with both and what stands `before` them, and where it ends."""
    begin, bracket = at, text[at]
    closing, depth = {"(": ")", "{": "}"}[bracket], 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            at += 1
        elif letter in "'\"":
            at = text.find(letter, at + 1)
            if at < 0:
                raise _Unreadable
        elif letter in (bracket, closing):
            depth += 1 if letter == bracket else -1
            if depth == 0:
                return f"{before}{text[begin : at + 1]}", at + 1
        at += 1
    raise _Unreadable


def _read_redirection(text: str, at: int) -> tuple[int, str]:
    """Returns where the redirection's operator ends, and the mark of a document that follows in the text; empty if none does."""
    begin = at
    while at < len(text) and text[at] in "<>&|":
        at += 1
    if text[begin:at] != "<<":
        return at, ""
    at += text.startswith("-", at)
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    begin = at
    while at < len(text) and not text[at].isspace() and text[at] not in ";&|()<>":
        at += 1
    return at, text[begin:at].strip("'\"\\")


def _skip_bodies(text: str, at: int, marks: list[str]) -> int:
    """Returns where the text goes on behind the documents that end with these marks."""
    for mark in marks:
        while at < len(text):
            end = text.find("\n", at)
            line, at = text[at : end if end >= 0 else len(text)], (end + 1 if end >= 0 else len(text))
            if line.strip("\t") == mark:
                break
    return at

"""Finds what cannot be one SQL statement that gives rows: names of files, other languages, other statements, placeholders.

Only words, quotations and separators are read here; PostgreSQL judges everything else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from contract.campaigns import DATA
from refusals.placeholders import PLACEHOLDER
from refusals.synonyms import ALIKE
from refusals.wording import plain

READING = ("select", "with", "values", "table")
"""Words with which every statement begins for which PostgreSQL opens a cursor, but for parentheses ahead of them."""
WRITING = re.compile(
    "alter|call|cluster|comment|create|delete|do|drop|grant|import|insert|merge|refresh|reindex|revoke|truncate|update|vacuum",
    re.IGNORECASE,
)
"""Words of statements that change a database, or may."""
EXAMPLE = "select region, address as data from data_sets where campaign = 'drive-eu'"
STATEMENT = f"one statement that reads, as in {EXAMPLE}"
FROM_A_FILE = f"the SQL that it holds, as in {EXAMPLE} (jq -Rs '{{query: .}}' FILE makes an input of a file)"
ALONE = f"the statement alone, as in {EXAMPLE}"
FILLED_IN = f"the value itself: only {DATA} is replaced, in the input of a campaign"
TABULAR = (".csv", ".jsonl", ".ndjson", ".tsv")
"""Endings of manifests."""
OF_SQL = (".sql", ".psql", ".pgsql", ".ddl", ".dml")
ENDINGS = (
    *(*OF_SQL, *TABULAR, ".txt", ".md", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".gz", ".zip", ".parquet"),
    *(".json", ".yaml", ".yml", ".toml", ".py", ".sh"),
)
"""Endings of what people name where SQL is expected."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_PATH = re.compile(r"[@<]?[\w.~:$%+-]*(?:/|(?<=[\w.:~])\\)[\w.~:/\\$%@+-]*")
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)?")
_OPERATOR = r"+\-*/<>=~!@#%^&|`?"
_TOKEN = re.compile(
    rf"""
      (?P<skipped>--[^\r\n]* | [ \t\r\n\f\v]+)
    | (?P<comment>/\*)
    | (?P<text>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
    | (?P<open>['"] | \$(?:[^\W\d]\w*)?\$)
    | (?P<place>\$\{{[^{{}}]*\}} | \{{\{{[^{{}}]*\}}\}} | \{{%[^{{}}]*%\}} | \{{\w+\}} | \$\w+
        | (?<![{_OPERATOR}])<[A-Za-z](?:[\w-]*\w)?>(?![{_OPERATOR}]))
    | (?P<word>[^\W\d][\w$]*)
    | (?P<sign>::|:=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_TEXT = re.compile(r"\$\{[^{}]*\}|\{\{\s*[A-Za-z_][\w.]*\s*\}\}|<[A-Za-z][\w -]*>")
_BRACES = re.compile(r"\{[A-Za-z_]\w*\}")
_QUOTES = re.compile(r"^(?:[eE]?'|\"|\$\w*\$)|(?:'|\"|\$\w*\$)$")
_AHEAD = re.compile(
    "[=(,<>]|all|and|any|between|by|case|else|in|like|limit|not|offset|on|or|select|then|values|when|where",
    re.IGNORECASE,
)
"""Behind these no operator stands: a percent or a question mark there is a library's place for a parameter."""
_TYPESET = "`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"
_UNSEEN = "\u00a0\u200b\u200c\u200d\u2060\ufeff\u2007\u202f"


class _Kind(Enum):
    WORD, TEXT, PLACE, SIGN, OPEN = "word", "text", "place", "sign", "open"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: _Kind
    text: str
    at: int
    """Its first character's place in the query, from 0."""


def find_mistake(query: str) -> str:
    """Says what is wrong with the text of a query, and what is allowed; empty where only PostgreSQL can tell."""
    tokens = list(_read_tokens(query))
    return (
        _find_nothing(query, tokens)
        or _find_name(query, tokens)
        or _find_other_beginning(tokens)
        or _find_second(tokens)
        or _find_strange_sign(tokens)
        or _find_place(tokens)
    )


def _read_tokens(query: str) -> Iterator[_Token]:
    """Yields all but spaces and comments, up to a quotation or a comment that does not end: that is the last one."""
    at = 0
    while found := _TOKEN.match(query, at):
        groups = found.groupdict()
        at = found.end() if groups["comment"] is None else _end_comment(query, at)
        if groups["open"] is not None or at < 0:
            yield _Token(_Kind.OPEN, found[0], found.start())
            return
        for kind in (_Kind.WORD, _Kind.TEXT, _Kind.PLACE, _Kind.SIGN):
            if groups[kind.value] is not None:
                yield _Token(kind, found[0], found.start())


def _end_comment(query: str, at: int) -> int:
    """Returns where the comment ends that begins there, with the comments in it; below 0 if it does not end."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(query, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1


def _find_nothing(query: str, tokens: Sequence[_Token]) -> str:
    if any(one.text != ";" for one in tokens):
        return ""
    what = "holds comments alone" if query.strip("; \t\r\n\f\v") else "is empty"
    return f"{what}; allowed: {STATEMENT}"


def _find_name(query: str, tokens: Sequence[_Token]) -> str:
    """Finds a file, an address or a table that is named in the place of a statement."""
    if tokens[-1].kind is _Kind.OPEN:
        return ""
    named = query.strip(";'\"` \t\r\n")
    ending = next((one for one in ENDINGS if named.lower().endswith(one)), "")
    is_path = bool(_PATH.fullmatch(named) or (ending and not re.search(r"[\s('\"*]", named)))
    if _ADDRESS.fullmatch(named):
        what = "is an address"
    elif is_path or (ending and "\n" not in named and not _begins_well(tokens)):
        what = "names a file"
    elif _NAME.fullmatch(named) and not (named.lower() in READING or WRITING.fullmatch(named) or _suggest(named)):
        return f"{plain(named)} is a single name; allowed: {STATEMENT}, or table {plain(named)} for all rows of a table"
    else:
        return ""
    of_a_manifest = "; the address of a manifest belongs in manifest" if ending in TABULAR else ""
    return f"{plain(named)} {what}; allowed: {FROM_A_FILE}{of_a_manifest}"


def _find_first(tokens: Sequence[_Token]) -> _Token | None:
    return next((one for one in tokens if one.text != "("), None)


def _begins_well(tokens: Sequence[_Token]) -> bool:
    first = _find_first(tokens)
    return first is not None and first.kind is _Kind.WORD and first.text.lower() in READING


def _suggest(word: str) -> str:
    near = difflib.get_close_matches(word.lower(), READING, n=1, cutoff=ALIKE)
    return f" (did you mean {near[0]}?)" if near else ""


def _find_other_beginning(tokens: Sequence[_Token]) -> str:
    first = _find_first(tokens)
    if first is None or first.kind is _Kind.OPEN or _begins_well(tokens):
        return ""
    behind = next((one.text for one in tokens if one.at > first.at), "")
    if first.kind is _Kind.PLACE:
        return f"begins with the placeholder {plain(first.text)}; allowed: {FILLED_IN}"
    if first.text in ("{", "["):
        return f"is JSON; allowed: {ALONE}, as a string"
    if first.kind is _Kind.TEXT or first.text == "`":
        return f"is in quotation marks; allowed: {ALONE}"
    if first.kind is _Kind.SIGN:
        return _find_strange_sign(tokens) or f"begins with {plain(first.text)}; allowed: {STATEMENT}"
    if behind in (":", "=", ":="):
        return f"begins with {plain(first.text + behind)}, as a field or a variable does; allowed: {ALONE}"
    if WRITING.fullmatch(first.text):
        return f"begins with {plain(first.text.upper())}, which writes; allowed: {STATEMENT}"
    return f"begins with {plain(first.text)}{_suggest(first.text)}; allowed: {STATEMENT}"


def _find_second(tokens: Sequence[_Token]) -> str:
    end = next((place for place, one in enumerate(tokens) if one.text == ";"), len(tokens))
    second = next((one for one in tokens[end:] if one.text != ";"), None)
    if second is None or second.text == "\\":
        return ""
    return f"has a second statement, which begins with {plain(second.text)}; allowed: {STATEMENT}"


def _find_strange_sign(tokens: Sequence[_Token]) -> str:
    """Finds a sign that SQL has nowhere outside of quotations: of psql, of word processors, of web pages."""
    for one in tokens:
        if one.kind is _Kind.SIGN and one.text == "\\":
            word = next((other.text for other in tokens if other.at == one.at + 1 and other.kind is _Kind.WORD), "")
            return f"has \\{plain(word) if word else ''}, which only psql knows; allowed: {STATEMENT}"
        if one.kind is _Kind.SIGN and one.text in _UNSEEN:
            return (
                f"has the character U+{ord(one.text):04X}, which is invisible; allowed: common spaces and line breaks"
            )
        if one.kind is _Kind.SIGN and one.text in _TYPESET:
            return f"has the quotation mark {one.text}; allowed: ' around a text, \" around a name"
    return ""


def _find_place(tokens: Sequence[_Token]) -> str:
    """Finds a place that a template, or a library for parameters, would have filled in."""
    depth = 0
    for number, one in enumerate(tokens):
        depth += {"[": 1, "]": -1}.get(one.text, 0)
        before = tokens[number - 1].text if number else ""
        after = next((other.text for other in tokens[number + 1 : number + 2] if other.at == one.at + 1), "")
        found = ""
        if one.kind is _Kind.TEXT:
            found = _find_place_in_text(_QUOTES.sub("", one.text))
        elif one.kind is _Kind.PLACE or one.text in ("{", "}"):
            found = one.text
        elif one.text == ":" and not depth and re.match(r"[^\W\d]|['\"]", after):
            found = f":{after}"
        elif one.text == "?" and _AHEAD.fullmatch(before) and after not in ("|", "&", "-", "#"):
            found = "?"
        elif one.text == "%" and _AHEAD.fullmatch(before) and after in ("s", "d", "("):
            found = f"%{after}"
        if found:
            return f"has the placeholder {plain(found)}; allowed: {FILLED_IN}"
    return ""


def _find_place_in_text(text: str) -> str:
    """Returns the place in a quotation. Braces around all of it are an array or JSON, and tags in pairs are markup."""
    if found := PLACEHOLDER.search(text):
        return found[0]
    if DATA in text:
        return DATA
    if (found := _IN_TEXT.search(text)) and not (found[0].startswith("<") and "</" in text):
        return found[0]
    if text.strip()[:1] + text.strip()[-1:] in ("{}", "[]"):
        return ""
    found = _BRACES.search(text)
    return found[0] if found else ""

"""Decides whether pip can read a requirements.txt. Where this cannot be known for certain, the answer is yes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from contract.training import REQUIREMENTS
from refusals.archive import MOST_KEPT, Listing
from refusals.wording import plain

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""As pip reads them."""
CODING = re.compile(rb"#.*?coding[:=]\s*([-\w.]+)")
COMMENT = re.compile(r"(^|\s+)#.*$")
REQUIREMENT = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\s*(\[[^\]]*\])?\s*(\(?\s*(===?|[<>~!]=|[<>])(?!=).*|[;@].*)?"
)
"""What pip takes for a requirement, or may take for one."""
OPTIONS = re.compile(r"\s+-.*$")
"""Of a requirement, as --hash."""
INCLUDED = re.compile(r"(?:-r|-c|--requirement|--constraint)[ =]?\s*([^\s:$]+)")
EDITABLE = re.compile(r"(?:-e|--editable)[ =]?\s*(\S+)")
LOCAL = re.compile(r"\.?[\w./+-]*(/[\w./+-]*|\.whl|\.tar\.gz|\.zip)")
"""A path, without what extras, markers and variables would add."""
OF_WINDOWS = re.compile(r"([A-Za-z]:)?[^\s]*\\.*|[A-Za-z]:/.*")
ELSEWHERE = re.compile(
    r".*?@\s*file:/*([A-Za-z]:[/\\]|Users/|croot/|home/conda/|feedstock_root/|tmp/build/|tmp/abs_|opt/concourse/|private/|var/folders/|"
    r"work/ci_|.*/conda-bld/).*"
)
"""Where conda builds its packages, and where macOS and Windows keep people's files."""
CONDA = re.compile(r"[A-Za-z0-9._-]+=[A-Za-z0-9*][^=\s]*(=\S*)?")
OF_CONDA = re.compile(r"(name|channels|dependencies|prefix):.*|@EXPLICIT|https?://\S+\.conda(#.*)?")
ALLOWED = "lines as `pip list --format=freeze` prints them, in UTF-8 or with a byte order mark"


def requirements_problems(code: str, found: Listing | None, field: str = "code") -> list[str]:
    """Rejects what would end every node after its start, with its first line that pip cannot read; `found` is the archive at `code`."""
    if found is None or (file := found.kept.get(REQUIREMENTS)) is None or len(file.content) == MOST_KEPT:
        return []
    where = f"{field}: {REQUIREMENTS} of {plain(code)}"
    try:
        text = _decoded(file.content)
    except UnicodeDecodeError as problem:
        number = problem.object[: problem.start].count(b"\n") + 1
        return [f"{where} is not in {problem.encoding.upper()} (line {number}: {problem.reason}); allowed: {ALLOWED}"]
    except LookupError as problem:
        return [f"{where} names an encoding that does not exist ({plain(str(problem))}); allowed: {ALLOWED}"]
    if "\0" in text:
        return [f"{where} has NUL characters, as UTF-16 without a byte order mark has; allowed: {ALLOWED}"]
    wrong = [(number, line, why) for number, line in _lines(text) if (why := _problem(line, found))]
    if not wrong:
        return []
    (number, line, why), more = wrong[0], len(wrong) - 1
    others = f", and {more} more such line{'s' if more > 1 else ''}" if more else ""
    return [f"{where} has line {number}, {plain(line)}, which {why}{others}; allowed: {ALLOWED}"]


def _decoded(content: bytes) -> str:
    """Decodes as pip does. Raises UnicodeDecodeError and LookupError."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding)
    for line in content.split(b"\n")[:2]:
        if named := CODING.match(line):
            return content.decode(named[1].decode())
    return content.decode()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields lines without comments, each with the number of its first line; a backslash joins a line to the next."""
    begun, joined = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun or number
        if line.endswith("\\") and not COMMENT.match(line):
            joined += line.rstrip("\\")
            continue
        if whole := COMMENT.sub("", f"{joined} {line}").strip():
            yield begun, whole
        begun, joined = 0, ""
    if joined.strip():
        yield begun, joined.strip()


def _problem(line: str, found: Listing) -> str:
    """Returns the second half of a sentence about a line that pip cannot read on a node; empty for any other."""
    if "${" in line:
        return ""
    if line.startswith("-"):
        return _option_problem(line, found)
    if ELSEWHERE.fullmatch(line):
        return "names a file of the machine on which it was written"
    if OF_CONDA.fullmatch(line) or CONDA.fullmatch(line):
        return "only conda reads"
    if OF_WINDOWS.fullmatch(line):
        return "is a path of Windows"
    wanted = OPTIONS.sub("", line)
    if LOCAL.fullmatch(wanted):
        return _absence(wanted, found)
    if "/" in wanted or wanted.startswith(".") or REQUIREMENT.fullmatch(wanted):
        return ""
    return "is not a requirement"


def _option_problem(line: str, found: Listing) -> str:
    if (named := EDITABLE.fullmatch(line)) and OF_WINDOWS.fullmatch(named[1]):
        return "is a path of Windows"
    named = INCLUDED.fullmatch(line) or (named if named and LOCAL.fullmatch(named[1]) else None)
    return _absence(named[1], found) if named else ""


def _absence(path: str, found: Listing) -> str:
    return "names a file that is not in the archive" if found.lacks(path) else ""

"""Decides whether pip can read a requirements.txt. Where this cannot be known for certain, the answer is yes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import islice

from contract.training import REQUIREMENTS
from refusals.archive import MOST_KEPT, Listing
from refusals.wording import plain

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""As pip reads them."""
SLOW = frozenset({"punycode", "idna"})
"""Encodings that take a time with the square of the length, and that no editor writes."""
CODING = re.compile(rb"#.*?coding[:=]\s*([-\w.]+)")
COMMENT = re.compile(r"(^| )#.*")
REQUIREMENT = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])? ?(\[[^\]]*\])? ?(\(? ?(===?|[<>~!]=|[<>])(?!=).*|[;@].*)?"
)
"""What pip takes for a requirement, or may take for one."""
INCLUDED = re.compile(r"(?:-r|-c|--requirement|--constraint)[ =]?([^ :$]+)")
EDITABLE = re.compile(r"(?:-e|--editable)[ =]?([^ ]+)")
PLAIN_PATH = re.compile(r"[\w./+-]+")
"""A path, without what extras, markers and variables would add."""
PACKED = (".whl", ".zip", ".tar.gz")
OF_WINDOWS = re.compile(r"([A-Za-z]:)?[^ ]*\\.*|[A-Za-z]:/.*")
ELSEWHERE = re.compile(
    r"file:/*([A-Za-z]:[/\\]|Users/|croot/|home/conda/|feedstock_root/|tmp/build/|tmp/abs_|opt/concourse/|private/|var/folders/|"
    r"work/ci_|[^ ]*/conda-bld/)"
)
"""Where conda builds its packages, and where macOS and Windows keep people's files."""
CONDA = re.compile(r"[A-Za-z0-9._-]+=[A-Za-z0-9*][^= ]*(=[^ ]*)?")
OF_CONDA = re.compile(r"(name|channels|dependencies|prefix):.*|@EXPLICIT|https?://[^ #]+\.conda(#.*)?")
MOST_LINES = 1_000
"""The most requirements that are read."""
MOST_LINE = 4_000
"""The most characters of a line that is read, without its options."""
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
    wrong = [(number, line, why) for number, line in islice(_lines(text), MOST_LINES) if (why := _problem(line, found))]
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
            encoding = codecs.lookup(named[1].decode()).name
            return "" if encoding in SLOW else content.decode(encoding)
    return content.decode()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields lines without comments and with single spaces, each with the number of its first line; a backslash joins it to the next."""
    begun, joined = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        begun, words = begun or number, " ".join(line.split())
        if words.endswith("\\") and not words.startswith("#"):
            joined.append(words.rstrip("\\"))
            continue
        if whole := COMMENT.sub("", " ".join([*joined, words])).strip():
            yield begun, whole
        begun, joined = 0, []


def _problem(line: str, found: Listing) -> str:
    """Returns the second half of a sentence about a line that pip cannot read on a node; empty for any other."""
    if "${" in line:
        return ""
    if line.startswith("-"):
        return _option_problem(line, found)
    wanted = line.partition(" -")[0].strip()
    if len(wanted) > MOST_LINE:
        return ""
    if ELSEWHERE.match(wanted.partition("@")[2].strip()):
        return "names a file of the machine on which it was written"
    if OF_CONDA.fullmatch(wanted) or CONDA.fullmatch(wanted):
        return "only conda reads"
    if OF_WINDOWS.fullmatch(wanted):
        return "is a path of Windows"
    if _is_plain_path(wanted):
        return _absence(wanted, found)
    if "/" in wanted or wanted.startswith(".") or REQUIREMENT.fullmatch(wanted):
        return ""
    return "is not a requirement"


def _option_problem(line: str, found: Listing) -> str:
    """The same of a line that begins with an option."""
    if named := EDITABLE.fullmatch(line):
        if OF_WINDOWS.fullmatch(named[1]):
            return "is a path of Windows"
        return _absence(named[1], found) if _is_plain_path(named[1]) else ""
    included = INCLUDED.fullmatch(line)
    return _absence(included[1], found) if included else ""


def _is_plain_path(text: str) -> bool:
    return PLAIN_PATH.fullmatch(text) is not None and ("/" in text or text.endswith(PACKED))


def _absence(path: str, found: Listing) -> str:
    return "names a file that is not in the archive" if found.lacks(path) else ""

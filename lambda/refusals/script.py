"""Decides whether an archive has the file that is to run, and whether that runs. Where this is not certain, the answer is yes."""

from __future__ import annotations

import codecs
import difflib
import posixpath
import unicodedata
from collections.abc import Sequence
from enum import Enum

from contract import executables
from contract.executables import CannotRun
from contract.training import REQUIREMENTS
from refusals.archive import Listing
from refusals.commands import script
from refusals.fields import ARCHIVE_ENDINGS
from refusals.folders import CommonFolder, is_of_system
from refusals.wording import plain


class Runner(Enum):
    """Who runs the file of an archive."""

    LINUX = "linux"
    """It is the program itself."""
    SHELL = "shell"
    """A shell, which reads it itself where Linux does not know how to run it."""
    TOOLKIT = "toolkit"
    """The same, once AWS's toolkit has made it executable."""
    READER = "reader"
    """Python or a shell reads it."""


ROOT_PATH = "a file of the archive, by its path from the archive's root"
FOLDER = CannotRun("is a folder", ROOT_PATH)
UTF_16 = CannotRun("is in UTF-16", "a file in UTF-8")


def wanted_files(command: Sequence[str]) -> list[str]:
    """Returns the paths of the files of an archive of which more than the name has to be known."""
    runs = script(command) if command else None
    return [REQUIREMENTS, *([runs] if runs else [])]


def archive_problems(code: str, command: Sequence[str], found: Listing | None) -> list[str]:
    """Lists what would end every node after minutes that cost money: an empty archive, one without the file to run, or with one that
    does not run."""
    wanted = script(command) if command else None
    by = Runner.LINUX if wanted and wanted == command[0] else Runner.READER
    return code_problems(code, wanted, found, "command", by=by)


def code_problems(
    code: str, wanted: str | None, found: Listing | None, field: str, *, endings: str = ARCHIVE_ENDINGS, by: Runner
) -> list[str]:
    """As archive_problems does, for the file that `field` says: None where that cannot be known. `endings`: names that may be."""
    where = plain(code)
    if found is None:
        return []
    if found.broken:
        return [f"code: {where} cannot be read ({plain(found.broken)}); allowed: a whole {endings}"]
    if found.refused:
        return [f"code: {where} {found.refused}; allowed: {found.allowed}"]
    if found.whole and not found.names:
        return [f"code: {where} is an empty archive; allowed: an archive of what the command runs"]
    if wanted is None:
        return []
    if found.lacks(wanted):
        missing = f"{field}: runs {plain(wanted)}, which is not in {where}{_elsewhere(wanted, found)}"
        return [f"{missing}; allowed: {ROOT_PATH}"]
    if why := _cannot_run(posixpath.normpath(wanted), found, by):
        return [f"{field}: runs {plain(wanted)} of {where}, which {why.problem}; allowed: {why.allowed}"]
    return []


def _cannot_run(path: str, found: Listing, by: Runner) -> CannotRun | None:
    """Returns why a file of the archive does not run; None where it may."""
    if by is Runner.LINUX and found.whole and path not in found.names and found.has_folder(path):
        return FOLDER
    if (file := found.kept.get(path)) is None:
        return None
    head = file.content[: executables.FIRST_BYTES]
    if by is Runner.READER:
        return UTF_16 if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None
    if by is not Runner.TOOLKIT and not file.mode & 0o111:
        return CannotRun("is not executable", executables.EXECUTABLE)
    if by is Runner.LINUX:
        return executables.cannot_run(head)
    return executables.CARRIAGE_RETURN if executables.has_carriage_return(head) else None


def _elsewhere(wanted: str, found: Listing) -> str:
    """Finds a file of that name in another folder or in other bytes, or one with a similar name."""
    path, names = posixpath.normpath(wanted), sorted(one for one in found.names if not is_of_system(one))
    common = CommonFolder(names)
    for one in names:
        if advice := common.advice(one, path, "code.tar.gz"):
            return f" ({advice})"
        if _composed(one) == _composed(path):
            return " (it has a file whose name looks the same and is of other characters, as macOS writes accents: rename one of them)"
        if one.replace("\\", "/") == path:
            return f" (it has {plain(one)}, whose name has a backslash: pack it with / between folders)"
    same = [one for one in names if posixpath.basename(one) == posixpath.basename(path)]
    close = same or difflib.get_close_matches(path, names, n=1)
    return f" (did you mean {plain(close[0])}?)" if close else ""


def _composed(name: str) -> str:
    """Accents are characters of their own, or a part of their letters."""
    return unicodedata.normalize("NFC", name)

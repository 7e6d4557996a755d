"""Refusals of archives by what is in them: what no node can unpack, run or install."""

from __future__ import annotations

from tools.refusals.jobs.table import Row

UPLOADS = "s3://yard-home/uploads"
PACK = "allowed: what `tar -C FOLDER -czf code.tar.gz .` makes"
LINES = "allowed: lines as `pip list --format=freeze` prints them, in UTF-8 or with a byte order mark"


def _of(what: str, name: str, says: str) -> tuple[str, str, str]:
    """A refusal of the archive with this name."""
    return what, f"{UPLOADS}/{name}", f"{UPLOADS}/{name} {says}"


def _listed(what: str, name: str, says: str) -> tuple[str, str, str]:
    """A refusal of the requirements in the archive with this name."""
    return what, f"{UPLOADS}/{name}", f"requirements.txt of {UPLOADS}/{name} {says}; {LINES}"


def _run(what: str, name: str, command: list[str], says: str) -> Row:
    """A refusal of what a command runs of the archive with this name."""
    given = {"code": f"{UPLOADS}/{name}", "command": command}
    return Row(what, given, f"command: runs {command[-1]} of {UPLOADS}/{name}, which {says}")


CODE_ROWS = (
    _of(
        "a zip packed as Windows packs large files",
        "deflate64.zip",
        f"has the entry 'train.py', packed with Deflate64, which Python 3.10 cannot read; {PACK}",
    ),
    _of("an archive packed with xz", "xz.tar.gz", f"is packed with xz, whatever its name says; {PACK}"),
    _of("a zip that is named like a tar", "zip.tar.gz", f"is a zip, whatever its name says; {PACK}"),
    _of(
        "a damaged archive",
        "damaged.zip",
        "cannot be read (Bad CRC-32 for file 'train.py'); allowed: a whole .tar.gz, .tgz, .tar or .zip",
    ),
    _of(
        "a name that is a file and a folder",
        "both.tar.gz",
        "has 'data' both as a file and as a folder; allowed: each name once",
    ),
    _of(
        "a zip of Windows with a path that climbs",
        "climbing.zip",
        "has the entry '../train.py', which points out of its folder; allowed: plain relative names, and links that stay in the archive",
    ),
    _listed(
        "an environment that conda exported",
        "conda.tar.gz",
        "has line 2, numpy=1.26.4=py311h64a7726_0, which only conda reads, and 1 more such line",
    ),
    _listed(
        "packages that conda built",
        "built.tar.gz",
        "has line 1, numpy @ file:///croot/numpy_1707/work, which names a file of the machine on which it was written",
    ),
    _listed("requirements in the code page of Windows", "latin.tar.gz", "is not in UTF-8 (line 2: invalid start byte)"),
    _listed(
        "requirements that include a file which is not there",
        "included.tar.gz",
        "has line 1, -r base.txt, which names a file that is not in the archive",
    ),
)
COMMAND_ROWS = (
    _run(
        "a script that was saved with the line ends of Windows",
        "windows.tar.gz",
        ["./run.sh"],
        "has a first line that ends with a carriage return; allowed: Unix line ends, as `dos2unix` makes them",
    ),
    _run(
        "a script of a zip of Windows, which keeps no executable bits",
        "bits.zip",
        ["./run.sh"],
        "is not executable; allowed: a file on which `chmod +x` was run before it was packed on Linux or macOS, or its interpreter in "
        "front of it",
    ),
    _run(
        "a script that does not say what runs it",
        "bare.tar.gz",
        ["./run.sh"],
        "does not begin with #! and what runs it; allowed: a first line such as #!/bin/bash, or its interpreter in front of it",
    ),
    _run(
        "a folder for a program",
        "windows.tar.gz",
        ["./data"],
        "is a folder; allowed: a file of the archive, by its path from the archive's root",
    ),
    _run(
        "a script in UTF-16",
        "utf16.tar.gz",
        ["python", "train.py"],
        "is in UTF-16; allowed: a file in UTF-8",
    ),
)

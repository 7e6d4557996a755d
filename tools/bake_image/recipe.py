"""What an image is made of, and the user data that makes it: decided before anything is started."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("user_data.sh")
MARK = "trainyard-bake:"
"""At the start of every line that the machine writes to its console for us."""
MOST_USER_DATA = 16_384
"""Bytes of user data that EC2 takes, before base64 (EC2 user guide)."""
DIGEST_LETTERS = 16
OTHER_FILES = re.compile(
    r"-[rcef]|(--requirement|--constraint|--editable|--find-links)(?=[\s=]|$)|\.{0,2}/|file:", re.IGNORECASE
)
CREDENTIALS = re.compile(r"://[^/\s]*@|\$\{")


class Rejected(Exception):
    """What was asked for cannot be done; the message names the option and what is allowed. Nothing was started."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A base image and the requirements that come on top of it."""

    base: str
    """Id of an image."""
    requirements: bytes

    @property
    def requirements_digest(self) -> str:
        """SHA-256 of the file, in hexadecimal digits."""
        return hashlib.sha256(self.requirements).hexdigest()

    @property
    def digest(self) -> str:
        """Of base, requirements and the script that installs them: another script may make another image."""
        whole = b"\0".join((self.base.encode(), self.requirements, SCRIPT.read_bytes()))
        return hashlib.sha256(whole).hexdigest()[:DIGEST_LETTERS]

    def name(self, deployment: str, family: str) -> str:
        """The image's name, which an account and region may have once."""
        return f"{deployment}-{family}-{self.digest}"

    def user_data(self, limit_min: int) -> bytes:
        """Returns the compressed script, which cloud-init unpacks. `limit_min` is when the machine's own timer powers it off, in minutes.

        Raises Rejected where EC2 would not take it: hashes do not get much smaller, so about 340 of them fit.
        """
        text = self.requirements.decode()
        end = f"END-OF-REQUIREMENTS-{self.requirements_digest}"  # no line of the file can have its own digest
        given = (
            "#!/bin/bash",
            f"BAKE_MARK={MARK}",
            f"BAKE_DIGEST={self.digest}",
            f"BAKE_HASHES={'yes' if '--hash=' in text else 'no'}",
            f"BAKE_LIMIT_MIN={limit_min}",
            f"IFS= read -r -d '' BAKE_REQUIREMENTS <<'{end}' || true",
            text.rstrip("\n"),
            end,
        )
        made = gzip.compress("\n".join((*given, SCRIPT.read_text())).encode(), mtime=0)
        if len(made) > MOST_USER_DATA:
            raise Rejected(
                f"--requirements: the file makes {len(made):,} bytes of user data, compressed; allowed: {MOST_USER_DATA:,}. "
                "Leave out hashes of platforms that no node has"
            )
        return made


def read_requirements(file: Path) -> bytes:
    """Reads a requirements file that stands for itself. Raises Rejected, with the line."""
    try:
        found = file.read_bytes()
        text = found.decode()
    except OSError as problem:
        raise Rejected(
            f"--requirements: {file} cannot be read ({problem.strerror}); allowed: a file of pip's"
        ) from None
    except UnicodeDecodeError:
        raise Rejected(f"--requirements: {file} is not UTF-8; allowed: a file of pip's, in UTF-8") from None
    if "\0" in text:
        raise Rejected(f"--requirements: {file} holds a NUL character; allowed: text")
    lines = [line.strip() for line in text.splitlines()]
    if not any(line and not line.startswith(("#", "-")) for line in lines):
        raise Rejected(f"--requirements: {file} names no package; allowed: at least one")
    for number, line in enumerate(lines, start=1):
        if OTHER_FILES.match(line):
            raise Rejected(
                f"--requirements: line {number} of {file} ({line}) names another file, which the machine has not; "
                "allowed: packages, with their versions and hashes, and options of an index"
            )
        if CREDENTIALS.search(line):
            raise Rejected(
                f"--requirements: line {number} of {file} has a user, a password or a variable in an address; allowed: addresses "
                "without, because whoever may describe instances can read user data"
            )
    return found

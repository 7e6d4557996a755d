"""Defines fields that several requests share: their forms, their limits, and what a refusal says they may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from contract import names
from refusals.addresses import Address
from refusals.texts import NUL
from refusals.wording import plain

REGION = f"^{names.REGION_PATTERN.pattern}$"
GZIPPED = (".tar.gz", ".tgz")
ARCHIVE_SUFFIXES = (*GZIPPED, ".tar", ".zip")
ARCHIVE_ENDINGS = f"{', '.join(ARCHIVE_SUFFIXES[:-1])} or {ARCHIVE_SUFFIXES[-1]}"
"""The endings of archives, in words for a person."""
ARCHIVE_MAY_BE = f"s3://bucket/key of an archive whose name ends in {ARCHIVE_ENDINGS}"
MOST_ADDRESS = 1100
"""The most characters of an S3 address: a bucket's name has up to 63, a key up to 1,024 bytes."""
MOST_OWNER = 128
OWNER_MAY_BE = f"up to {MOST_OWNER} letters, digits, spaces and _.:/=+@- (it becomes a tag), not beginning with aws:"


def _archive_address(value: str) -> str:
    """Accepts the address of an archive by its name. Raises ValueError."""
    if not Address.parse(value).key.endswith(ARCHIVE_SUFFIXES):
        raise ValueError(f"{plain(value)} is not named like an archive")
    return value


def read_whole(value: object) -> object:
    """Reads a whole number that is written as a fraction: 2.0 is 2, as JSON Schema has it. Anything else stays as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def without_nul(value: str) -> str:
    """Accepts a text that the environment or the arguments of a process can hold. Raises ValueError."""
    if "\0" in value:
        raise ValueError(NUL)
    return value


def _taggable(value: str) -> str:
    if value.lower().startswith("aws:"):
        raise ValueError(f"{plain(value)} begins with a prefix that AWS keeps for itself")
    return value


# The pattern is the one that AWS's services publish for the value of a tag; of its spaces it allows only the common one.
Owner = Annotated[str, Field(max_length=MOST_OWNER, pattern=r"^[\p{L}\p{N} _.:/=+@-]*$"), AfterValidator(_taggable)]
ArchiveAddress = Annotated[str, Field(max_length=MOST_ADDRESS), AfterValidator(_archive_address)]

"""Defines the field of a request that is an archive in S3 or a commit of a git repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from git_code.commit import COMMIT, GIT_MAY_BE, MOST_URL, PLAIN_URL, GitCommit, read_git
from refusals.fields import ARCHIVE_MAY_BE, MOST_ADDRESS, ArchiveAddress
from refusals.wording import plain

REMOTES = ("https://", "http://", "ssh://", "git://", "git@")
"""How addresses of git repositories begin."""


class OrCommit:
    """In the type of a field: an object there is a commit of a git repository, and everything else the address of an archive."""

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(_code, handler.generate_schema(ArchiveAddress))


def _code(value: object, address: Callable[[object], str]) -> str | GitCommit:
    if isinstance(value, Mapping):
        return read_git(value)
    if isinstance(value, str) and value.startswith(REMOTES):
        raise ValueError(f"{plain(value)} is not an S3 address; allowed: {ARCHIVE_MAY_BE}, or a commit: {GIT_MAY_BE}")
    return address(value)


CodeSource = Annotated[
    str | GitCommit,
    OrCommit(),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "maxLength": MOST_ADDRESS},
                {
                    "type": "object",
                    "properties": {
                        "git": {"type": "string", "maxLength": MOST_URL, "pattern": f"^{PLAIN_URL}$"},
                        "ref": {"type": "string", "pattern": f"^{COMMIT.pattern}$"},
                    },
                    "required": ["git", "ref"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]

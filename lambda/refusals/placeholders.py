"""Finds what a person has left of an example: the places where a name of their own deployment belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from refusals.wording import plain

PLACEHOLDER = re.compile(r"(?:s3://)?REPLACE-WITH-([A-Z][A-Za-z]*|[a-z]+(?:-[a-z]+)*)")
MEANT = MappingProxyType(
    {
        "UploadPrefix": "the output UploadPrefix of the stacks",
        "ACCOUNT": "the number of the account",
        "your-user-name": "your IAM user name, or the tag owner of your role or session",
    }
)
"""What belongs in the place of a placeholder, by what stands behind the hyphen: a name of an output, or words with hyphens between them. An
account is followed by the rest of a name."""


def find_placeholders(given: object) -> dict[str, str]:
    """Returns the refusal of each field whose value, or an entry of it, has a placeholder, by the field's name."""
    if not isinstance(given, Mapping):
        return {}
    found = {str(field): next(_list_texts(value), None) for field, value in given.items()}
    return {field: _refuse(field, text) for field, text in found.items() if text is not None}


def _list_texts(value: object) -> Iterator[str]:
    """Yields the texts with a placeholder in a value, which comes from JSON."""
    if isinstance(value, str) and PLACEHOLDER.search(value):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for one in value.values() for text in _list_texts(one))
    elif isinstance(value, list):
        yield from (text for one in value for text in _list_texts(one))


def _refuse(field: str, text: str) -> str:
    found = PLACEHOLDER.search(text)
    assert found is not None
    meant = MEANT.get(found[1], "a name of the deployment")
    return (
        f"{plain(field)}: {plain(text)} has the placeholder of the example; allowed: {meant} in the place of {found[0]}"
    )

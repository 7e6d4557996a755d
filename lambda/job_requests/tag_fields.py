"""The tags of a request: which keys and values there may be, and which the settings want or keep for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator

from contract.request_rules import RequestRules
from contract.tag_forms import (
    KEY_PATTERN,
    KEY_WORDS,
    MOST_OF_A_REQUEST,
    MOST_VALUE,
    VALUE_WORDS,
    find_twins,
    object_to_key,
    object_to_value,
)
from refusals.wording import plain

TAGS_MAY_BE = f"an object of up to {MOST_OF_A_REQUEST} keys and values"
TAG_MAY_BE = f"a key of {KEY_WORDS}, and a value of {VALUE_WORDS}"


def _key(text: str) -> str:
    if not KEY_PATTERN.fullmatch(text):
        raise ValueError("is not the key of a tag")
    if why := object_to_key(text):
        raise ValueError(f"is not a key for people ({why})")
    return text


def _value(text: str) -> str:
    if not text or len(text) > MOST_VALUE:
        raise ValueError(f"has {len(text):,} characters")
    if why := object_to_value(text):
        raise ValueError(f"{plain(text)} is not the value of a tag ({why})")
    return text


RequestTagKey = Annotated[str, AfterValidator(_key)]
RequestTagValue = Annotated[str, AfterValidator(_value)]


def list_tag_problems(tags: Mapping[str, str], rules: RequestRules) -> Iterator[str]:
    """Yields what is wrong with a request's own tags. IAM does not tell capitals apart in keys, so these rules do not either."""
    for one, other in find_twins(tags):
        yield f"tags.{one}: the request has {other} too; allowed: one of them"
    ours = {key.lower(): key for key in rules.tags}
    for key in tags:
        if (kept := ours.get(key.lower())) is not None:
            yield f"tags.{key}: every job has {kept} with the value {rules.tags[kept]}; allowed: keys that cdk.json does not set (tags)"


def list_required_problems(tags: Mapping[str, str], rules: RequestRules) -> Iterator[str]:
    """Yields what the settings require, and neither these tags nor those of the settings have."""
    spelt = {key.lower(): key for key in tags}
    for key, allowed in rules.required_tags.items():
        if key not in tags and key not in rules.tags:
            other = f" ({spelt[key.lower()]} is not it)" if key.lower() in spelt else ""
            yield f"tags.{key}: is missing{other}; allowed: {_list_values(allowed)}"
    yield from list_value_problems(tags, rules)


def list_value_problems(tags: Mapping[str, str], rules: RequestRules) -> Iterator[str]:
    """Yields tags whose value is none of those that the settings allow."""
    for key, allowed in rules.required_tags.items():
        if key in tags and allowed and tags[key] not in allowed:
            yield f"tags.{key}: {plain(tags[key])} is not one of them; allowed: {_list_values(allowed)}"


def list_spelling_problems(tags: Mapping[str, str], rules: RequestRules) -> Iterator[str]:
    """Yields keys that the settings require in other capitals: no request can have them beside the required ones."""
    required = {key.lower(): key for key in rules.required_tags}
    for key in tags:
        if (other := required.get(key.lower(), key)) != key:
            yield f"tags.{key}: the settings require {other}; allowed: {other} (required_tags in cdk.json)"


def _list_values(allowed: tuple[str, ...]) -> str:
    return f"{', '.join(allowed) or VALUE_WORDS} (required_tags in cdk.json)"

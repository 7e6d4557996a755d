"""Campaigns and watches: what uploaded data and pushed commits start, and under which name, which makes it once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from contract import names

NAME_PATTERN = re.compile(r"[a-z](-?[a-z0-9]){1,39}")
"""The form of a campaign's and of a watch's name, 40 characters at most: with what is behind it, it names an execution and a tag."""
HEX = 12
"""Characters of a hash behind the name."""
DATA = "{data}"
"""Stands in an input for the address of the folder in which the object lies that started it."""
KEY_PATTERN = re.compile(r"[A-Za-z0-9!_.*()/=+@:, -]{1,1024}")
"""Keys of objects that start a campaign: an input that quotes such a key means nothing else because of it."""
KEY_WORDS = "letters, digits, spaces and ! _ . * ( ) / = + @ : , -"
STARTS_FILE = "starts.json"
"""The file in the archives of the functions that has the settings: they have more characters than a function's variables may have."""


class Started(str, Enum):
    """What a campaign starts, by its input."""

    GRID = "grid"
    SEARCH = "search"
    JOB = "job"

    @classmethod
    def of_input(cls, given: Mapping[str, Any]) -> Started:
        """A grid alone has lines, a search alone has a template for them or resumes one; everything else is a job."""
        if "manifest" in given or "query" in given:
            return cls.GRID
        return cls.SEARCH if "template" in given or "resume" in given else cls.JOB

    def machine(self, deployment: str) -> str:
        """Name of the state machine."""
        return MACHINES[self](deployment)


MACHINES = {
    Started.GRID: names.grid_machine,
    Started.SEARCH: names.search_machine,
    Started.JOB: names.machine,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What an object under `prefix` that ends in `suffix` starts."""

    bucket: str
    """Empty for the home bucket, whose name only the account has."""
    prefix: str
    suffix: str
    given: dict[str, Any]
    """Input of the execution, in which DATA stands for the object's folder."""

    def covers(self, bucket: str, key: str) -> bool:
        """Whether the object is one that starts it. The pattern of a rule says the same; a message may be older than the settings."""
        return (
            bucket == self.bucket
            and key.startswith(self.prefix)
            and key.endswith(self.suffix)
            and len(key) >= len(self.prefix) + len(self.suffix)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Of which branch each new commit is built."""

    git: str
    """Address of the repository."""
    branch: str
    build: dict[str, Any] = field(default_factory=dict)
    """Fields of the request for the build, beside context and tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """The settings `campaigns` and `watch`, by name."""

    campaigns: dict[str, Campaign] = field(default_factory=dict)
    watches: dict[str, Watch] = field(default_factory=dict)

    def at(self, home_bucket: str) -> Starts:
        """Returns the same, with the home bucket's name where it is meant."""
        named = {name: replace(one, bucket=one.bucket or home_bucket) for name, one in self.campaigns.items()}
        return replace(self, campaigns=named)


def name_start(campaign: str, bucket: str, key: str, version: str) -> str:
    """Returns the name of the execution that this version of the object starts."""
    found = hashlib.sha256("\0".join((bucket, key, version)).encode()).hexdigest()
    return f"{campaign}-{found[:HEX]}"


def name_build(watch: str, commit: str) -> str:
    """Returns the name of the execution that builds this commit, which is the image's tag too."""
    return f"{watch}-{commit[:HEX]}"


def read_starter(execution: str) -> str:
    """Returns the campaign or the watch that gave an execution its name; empty where neither did."""
    found = re.fullmatch(rf"({NAME_PATTERN.pattern})-[0-9a-f]{{{HEX}}}", execution)
    return found[1] if found else ""


def folder_of(bucket: str, key: str) -> str:
    """Returns the address of the folder in which an object lies, without a slash at its end."""
    folder, slash, _ = key.rpartition("/")
    return f"s3://{bucket}/{folder}" if slash else f"s3://{bucket}"


def fill_in(given: Any, data: str) -> Any:
    """Returns the input with the folder's address in place of DATA, in every text of it."""
    if isinstance(given, str):
        return given.replace(DATA, data)
    if isinstance(given, Mapping):
        return {name: fill_in(one, data) for name, one in given.items()}
    return [fill_in(one, data) for one in given] if isinstance(given, list) else given

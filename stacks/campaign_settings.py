"""Settings of what starts by itself: campaigns by uploaded data, builds by pushed commits."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from contract.campaigns import NAME_PATTERN, Campaign, Starts, Watch
from contract.images import PLATFORMS
from contract.keys import UPLOADS
from stacks.blocks import Block
from stacks.forms import Bucket, Form, Region, Repository

MOST_CAMPAIGNS, MOST_WATCHES = 20, 10
MOST_INPUT = 100_000
"""Characters of an input as JSON; Step Functions takes 256 KB."""
StarterName = Annotated[
    str,
    Form(
        f"^{NAME_PATTERN.pattern}$", "2 to 40 lower-case letters, digits and single hyphens, a letter first", longest=40
    ),
]
KeyPart = Annotated[
    str, Form(r"^[A-Za-z0-9!_.()/=+@:, -]+$", "letters, digits, spaces and ! _ . ( ) / = + @ : , -", longest=500)
]
"""A part of a key that starts a campaign (contract.campaigns.KEY_PATTERN), without the star, which a rule reads as anything."""
GitAddress = Annotated[
    str,
    Form(
        r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+$",
        "https://HOST/OWNER/REPOSITORY.git, without a user, a port and a query",
        longest=300,
    ),
]
Branch = Annotated[
    str,
    Form(
        r"^[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_][A-Za-z0-9_-]*)*$",
        "the name of a branch, of letters, digits, _, -, and single . and /",
        longest=200,
    ),
]
Platform = Annotated[str, Form(f"^({'|'.join(PLATFORMS)})$", " or ".join(PLATFORMS))]


class CampaignSettings(Block):
    """What an uploaded object starts."""

    bucket: Bucket | None = None
    """One of `data_buckets` that sends its events to EventBridge; the home bucket where none is given, which sends them by itself."""
    region: Region | None = None
    """The region of the bucket, one of `regions`; the home region where none is given."""
    prefix: KeyPart
    """How the keys of objects begin that start it. In the home bucket below `uploads/`."""
    suffix: KeyPart
    """How these keys end, as in `_READY`: an object that is written last, when all of the data is there."""
    input: dict[str, Any] = Field(min_length=1)
    """Input of a grid, a search or a job. In its texts `{data}` is the address of the folder in which the object lies, without a slash at
    its end."""


class BuildSettings(Block):
    """The image that a new commit becomes, as in a request for a build."""

    repository: Repository
    """One of `repositories`."""
    build_arguments: dict[str, str] = Field(default={}, max_length=100)
    """The Dockerfile's ARGs."""
    base: str = Field(default="", max_length=400)
    """An AWS Deep Learning Container by its short name; empty for none."""
    platform: Platform = "linux/amd64"
    """The processors that the image is built for."""

    def write(self) -> dict[str, Any]:
        """Returns the fields of the request that say something."""
        return {name: value for name, value in self.model_dump().items() if value}


class WatchSettings(Block):
    """A branch of which every new commit is built."""

    git: GitAddress
    """The repository, at a host of `git_hosts`."""
    branch: Branch = "main"
    """The branch."""
    build: BuildSettings
    """The image that a new commit becomes. Its tag is `<name>-<first 12 characters of the commit>`."""


def find_problems(
    campaigns: Mapping[str, CampaignSettings],
    watches: Mapping[str, WatchSettings],
    *,
    home: str,
    regions: Collection[str],
    data_buckets: Collection[str],
    git_hosts: Collection[str],
    repositories: Collection[str],
) -> Iterator[str]:
    """Says what does not fit with the other settings."""
    for name in sorted(campaigns.keys() & watches.keys()):
        yield f"watch.{name} has the name of a campaign; allowed: different names, because messages name them"
    for name, one in campaigns.items():
        where = f"campaigns.{name}"
        if one.bucket is not None and one.bucket not in data_buckets:
            listed = ", ".join(data_buckets) or "none"
            yield f"{where}.bucket is {one.bucket}; allowed: one of data_buckets ({listed}), or none for the home bucket"
        if one.region is not None and one.region not in regions:
            yield f"{where}.region is {one.region}; allowed: {', '.join(regions)}"
        if one.bucket is None and one.region not in (None, home):
            yield f"{where}.region is {one.region}, and the home bucket lies in {home}; allowed: {home}, or a bucket of that region"
        if one.bucket is None and not one.prefix.startswith(UPLOADS):
            yield f"{where}.prefix is {one.prefix}; allowed: one below {UPLOADS}, because people write nowhere else in the home bucket"
        if (size := len(json.dumps(one.input))) > MOST_INPUT:
            yield f"{where}.input has {size:,} characters; allowed: up to {MOST_INPUT:,}"
    for name, two in watches.items():
        where = f"watch.{name}"
        if (host := urlsplit(two.git).netloc) not in git_hosts:
            yield f"{where}.git is at {host}; allowed: {', '.join(git_hosts) or 'none'} (git_hosts)"
        if two.build.repository not in repositories:
            yield f"{where}.build.repository is {two.build.repository}; allowed: {', '.join(repositories)} (repositories)"


def describe_starts(campaigns: Mapping[str, CampaignSettings], watches: Mapping[str, WatchSettings]) -> Starts:
    """Returns what the functions read of these settings."""
    return Starts(
        campaigns={
            name: Campaign(bucket=one.bucket or "", prefix=one.prefix, suffix=one.suffix, given=one.input)
            for name, one in campaigns.items()
        },
        watches={name: Watch(git=one.git, branch=one.branch, build=one.build.write()) for name, one in watches.items()},
    )

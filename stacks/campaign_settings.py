"""Settings of what starts by itself: campaigns by uploaded data, builds by pushed commits."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from aws_cdk import region_info
from pydantic import Field

from contract import keys, names
from contract.campaigns import Campaign, Starts, Watch, fill_in, folder_of, name_build
from contract.environments import GridEnvironment
from contract.images import AMD64, MOST_ORDER, BuildOrder, Context, registry
from contract.keys import UPLOADS
from contract.limits import Limits
from contract.request_rules import RequestRules
from stacks.blocks import Block
from stacks.forms import (
    ArgumentName,
    ArgumentValue,
    Branch,
    Bucket,
    BuildPlatform,
    DeepLearningContainer,
    GitAddress,
    KeyPart,
    Region,
    Repository,
)
from stacks.request_reading import list_build_problems, list_input_problems

MOST_KEYS = 1_500
"""Characters of all prefixes and suffixes together: the role of the starter names each of them."""
ACCOUNT, COMMIT, VERSION, ETAG = "0" * 12, "0" * 40, "v" * 32, f'"{"0" * 32}"'
"""What only a deploy or a push knows of a build, as long as AWS and git write it."""
MOST_INPUT = 100_000
"""Characters of an input as JSON; Step Functions takes 256 KB."""


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
    build_arguments: dict[ArgumentName, ArgumentValue] = Field(default={}, max_length=100)
    """The Dockerfile's ARGs."""
    base: DeepLearningContainer = ""
    """An AWS Deep Learning Container by its short name; empty for none."""
    platform: BuildPlatform = AMD64
    """The processors that the image is built for."""

    def write(self) -> dict[str, Any]:
        """Returns the fields of the request that say something."""
        return {name: value for name, value in self.model_dump().items() if value}


class WatchSettings(Block):
    """A branch whose newest commit is built, whenever a look at it finds a new one. Looks come every five minutes."""

    git: GitAddress
    """The repository, at a host of `git_hosts`."""
    branch: Branch = "main"
    """The branch."""
    build: BuildSettings
    """The image that a new commit becomes. Its tag is `<name>-<first 12 characters of the commit>`."""


def campaign_problems(
    campaigns: Mapping[str, CampaignSettings],
    home: str,
    regions: Collection[str],
    data_buckets: Collection[str],
    *,
    catalogue: bool,
) -> Iterator[str]:
    """Says what of campaigns does not fit with the other settings."""
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
        if "query" in one.input and not catalogue:
            yield f'{where}.input has a query, and the deployment no catalogue; allowed: manifest, or "catalogue": true'
    if (size := sum(len(one.prefix) + len(one.suffix) for one in campaigns.values())) > MOST_KEYS:
        yield (
            f"campaigns: prefixes and suffixes take {size:,} characters together; allowed: up to {MOST_KEYS:,}, because a role's rights "
            "have 10,240"
        )


def campaign_input_problems(
    campaigns: Mapping[str, CampaignSettings], limits: Limits, grids: GridEnvironment, rules: RequestRules
) -> Iterator[str]:
    """Says what the machines would refuse of the campaigns' inputs, beside which a sample of an object stands. `grids` is what Plan is
    told, in whatever account."""
    for name, one in campaigns.items():
        given = fill_in(one.input, folder_of(one.bucket or "home-bucket", f"{one.prefix}{one.suffix}"))
        for line in list_input_problems(given, limits, grids, rules):
            yield f"campaigns.{name}.input.{line}"


def watch_problems(
    watches: Mapping[str, WatchSettings],
    campaigns: Collection[str],
    git_hosts: Collection[str],
    repositories: Collection[str],
    *,
    deployment: str,
    regions: Sequence[str],
) -> Iterator[str]:
    """Says what of watches does not fit with the other settings."""
    for name, one in watches.items():
        where = f"watch.{name}"
        if name in campaigns:
            yield f"{where} has the name of a campaign; allowed: different names, because messages name them"
        if (host := urlsplit(one.git).netloc) not in git_hosts:
            yield f"{where}.git is at {host}; allowed: {', '.join(git_hosts) or 'none'} (git_hosts)"
        if one.build.repository not in repositories:
            yield f"{where}.build.repository is {one.build.repository}; allowed: {', '.join(repositories)} (repositories)"
        yield from _list_build_problems(name, one)
        if (size := len(_order_build(name, one, deployment, regions).text())) > MOST_ORDER:
            yield (
                f"{where}.build makes an order of {size:,} characters; allowed: up to {MOST_ORDER:,} with everything else in it (long "
                "values belong in a file of the repository)"
            )


def _list_build_problems(name: str, watch: WatchSettings) -> Iterator[str]:
    """Yields what the Build machine would refuse of the request that a commit makes."""
    context = {"git": watch.git, "ref": COMMIT}
    for line in list_build_problems({"context": context, "tag": name_build(name, COMMIT), **watch.build.write()}):
        yield (
            f"watch.{name}.git:{found}"
            if (found := line.removeprefix("context:")) != line
            else f"watch.{name}.build.{line}"
        )


def _order_build(name: str, watch: WatchSettings, deployment: str, regions: Sequence[str]) -> BuildOrder:
    """Returns the order that Build gives CodeBuild for a commit, which goes to all regions, home first."""
    build, home = watch.build, regions[0]
    suffix = region_info.RegionInfo.get(home).domain_suffix or ""
    return BuildOrder(
        account=ACCOUNT,
        suffix=suffix,
        home_region=home,
        repository=names.repository(deployment, build.repository),
        tag=name_build(name, COMMIT),
        regions=tuple(regions),
        context=Context(
            bucket=names.home_bucket(deployment, ACCOUNT, home),
            key=keys.fetched_context(watch.git, COMMIT),
            version=VERSION,
            etag=ETAG,
        ),
        base=f"{registry(ACCOUNT, home, suffix)}/{build.base}" if build.base else "",
        arguments=build.build_arguments,
        platform=build.platform,
        cache=names.build_cache(deployment),
    )


def describe_starts(campaigns: Mapping[str, CampaignSettings], watches: Mapping[str, WatchSettings]) -> Starts:
    """Returns what the functions read of these settings."""
    return Starts(
        campaigns={
            name: Campaign(bucket=one.bucket or "", prefix=one.prefix, suffix=one.suffix, given=one.input)
            for name, one in campaigns.items()
        },
        watches={name: Watch(git=one.git, branch=one.branch, build=one.build.write()) for name, one in watches.items()},
    )

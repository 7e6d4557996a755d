"""Decides whether a deploy may remove regions: takes facts about their stacks, returns every reason against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contract import names


def forgotten(settings: Iterable[str], *known: Iterable[str]) -> list[str]:
    """Returns the regions that were `known` before and that the settings no longer name."""
    return sorted({region for regions in known for region in regions} - set(settings))


def refusals(deployment: str, exists: Mapping[str, bool | str]) -> list[str]:
    """Returns a line for each region that cannot be removed. `exists` says whether a region's stack exists, or why that is
    unknown; an unknown stack counts as existing."""
    return [
        _existing(deployment, region) if answer is True else _unknown(deployment, region, str(answer))
        for region, answer in sorted(exists.items())
        if answer is not False
    ]


def join_reasons(lines: Sequence[str]) -> str | None:
    """Returns the reason that CloudFormation shows, None where there is none."""
    return "\n".join(lines) if lines else None


def _existing(deployment: str, region: str) -> str:
    stack = names.region_stack(deployment, region)
    return (
        f"Region {region} was removed from the settings while its stack {stack} exists. Put it back, run "
        f"`npx cdk destroy --exclusively {stack}`, then remove it and deploy again (docs/guides/regions.md)."
    )


def _unknown(deployment: str, region: str, why: str) -> str:
    return (
        f"Region {region} was removed from the settings, and Trainyard does not know whether its stack "
        f"{names.region_stack(deployment, region)} exists: {why}. Put it back, or deploy again once the region answers "
        "(docs/guides/regions.md)."
    )

"""Decides whether a deploy may remove regions: facts about their stacks in, every reason against it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contract import names


def forgotten(settings: Iterable[str], *known: Iterable[str]) -> list[str]:
    """Regions that were `known` once, and that the settings no longer name."""
    return sorted({region for regions in known for region in regions} - set(settings))


def refusals(deployment: str, exists: Mapping[str, bool | str]) -> list[str]:
    """A line for each region that cannot be removed. `exists`: region to whether its stack exists, or the reason why that is not
    known, which counts as existing."""
    return [
        _existing(deployment, region) if answer is True else _unknown(deployment, region, str(answer))
        for region, answer in sorted(exists.items())
        if answer is not False
    ]


def told(lines: Sequence[str]) -> str | None:
    """The reason that CloudFormation shows, None for no reason."""
    return "\n".join(lines) if lines else None


def _existing(deployment: str, region: str) -> str:
    stack = names.region_stack(deployment, region)
    return (
        f"Region {region} was removed from the settings while its stack {stack} exists. Put it back, run "
        f"`npx cdk destroy --exclusively {stack}`, then remove it and deploy again (docs/regions.md)."
    )


def _unknown(deployment: str, region: str, why: str) -> str:
    return (
        f"Region {region} was removed from the settings, and it is not known whether its stack "
        f"{names.region_stack(deployment, region)} exists: {why}. Put it back, or deploy again once the region answers (docs/regions.md)."
    )

"""Decides whether a deploy may forget regions: facts about their stacks in, every reason against it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contract import names


def forgotten(settings: Iterable[str], *known: Iterable[str]) -> list[str]:
    """Regions that were `known` once, and that the settings name no more."""
    return sorted({region for regions in known for region in regions} - set(settings))


def refusals(deployment: str, stands: Mapping[str, bool | str]) -> list[str]:
    """A line for each region that cannot be forgotten. `stands`: region to whether its stack does; a text says why that is not
    known, and then the region is kept."""
    return [
        _standing(deployment, region) if answer is True else _unknown(deployment, region, str(answer))
        for region, answer in sorted(stands.items())
        if answer is not False
    ]


def told(lines: Sequence[str]) -> str | None:
    """The reason that CloudFormation shows, None for no reason."""
    return "\n".join(lines) if lines else None


def _standing(deployment: str, region: str) -> str:
    stack = names.region_stack(deployment, region)
    return (
        f"Region {region} was taken out of the settings while its stack {stack} stands. Put it back, run "
        f"`npx cdk destroy --exclusively {stack}`, then take it out and deploy again (docs/regions.md)."
    )


def _unknown(deployment: str, region: str, why: str) -> str:
    return (
        f"Region {region} was taken out of the settings, and whether its stack {names.region_stack(deployment, region)} stands "
        f"is not known: {why}. Put it back, or deploy again once the region answers (docs/regions.md)."
    )

"""Settings about requests: presets, and the tags that each must have."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from contract.limits import Limits
from contract.request_rules import RequestRules, list_preset_names
from contract.text import plain
from stacks.campaign_settings import CampaignSettings
from stacks.request_reading import list_request_problems
from stacks.tag_settings import twin_problems

Preset = Annotated[dict[str, Any], Field(min_length=1)]
MOST_PRESET = 20_000
"""Characters of a preset as JSON: Admit's output repeats what a preset gave, and Step Functions takes 256 KB of it."""
OF_INPUTS = ("defaults", "template")
"""Where inputs of grids and of searches have fields of a request. Those of a job are read as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameable:
    """What of the other settings a request may name."""

    regions: Collection[str]
    """Those where jobs train."""
    machine_images: Collection[str]
    job_roles: Collection[str]
    file_systems: Collection[str]
    """As `fsx:corpus`."""


def preset_problems(
    presets: Mapping[str, Mapping[str, Any]], limits: Limits, rules: RequestRules, nameable: Nameable
) -> Iterator[str]:
    """Says what is wrong with presets, as far as a part of a request can be."""
    for name, preset in presets.items():
        where = f"presets.{name}"
        if (size := len(json.dumps(preset))) > MOST_PRESET:
            yield f"{where} has {size:,} characters; allowed: up to {MOST_PRESET:,}"
        yield from (f"{where}.{line}" for line in list_request_problems(preset, limits, rules))
        yield from (f"{where}.{line}" for line in _list_unknown_names(preset, limits, nameable))


def required_tag_problems(rules: RequestRules) -> Iterator[str]:
    """Says which required tags no request can have, and where the settings' own tags are not as required."""
    yield from twin_problems("required_tags", rules.required_tags)
    own = {key.lower(): key for key in rules.tags}
    for key, allowed in rules.required_tags.items():
        if (other := own.get(key.lower(), key)) != key:
            yield f"required_tags has {key}, and tags has {other}; allowed: the same capitals, because IAM does not tell them apart in keys"
        if key in rules.tags and allowed and (value := rules.tags[key]) not in allowed:
            yield f"tags.{key} is {value}; allowed: {', '.join(allowed)} (required_tags)"


def named_preset_problems(
    campaigns: Mapping[str, CampaignSettings], presets: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Says which presets lines of campaigns name that there are not."""
    for name, campaign in campaigns.items():
        for field in OF_INPUTS:
            part: Any = campaign.input.get(field)
            preset = part.get("preset") if isinstance(part, Mapping) else None
            if preset is not None and not (isinstance(preset, str) and preset in presets):
                yield f"campaigns.{name}.input.{field}.preset is {plain(str(preset))}; allowed: {list_preset_names(presets)}"


def _list_unknown_names(preset: Mapping[str, Any], limits: Limits, nameable: Nameable) -> Iterator[str]:
    """Yields what a preset names and the settings have not. A field of a wrong type has a line of its own already."""
    for field, known, setting in (
        ("region", nameable.regions, "regions with a cidr or a vpc"),
        ("regions", nameable.regions, "regions with a cidr or a vpc"),
        ("machine_image", nameable.machine_images, "machine_images"),
        ("job_role", nameable.job_roles, "job_roles"),
        ("mounts", nameable.file_systems, "file_systems"),
    ):
        for named in _list_texts(preset.get(field)):
            if named not in known and named != "auto":
                yield f"{field}: the settings have no {plain(named)}; allowed: {', '.join(known) or 'none'} ({setting})"
    for kind in _list_texts(preset.get("instance_types")):
        if not any(fnmatchcase(kind, pattern) for pattern in limits.instance_types):
            yield f"instance_types: {plain(kind)} is not allowed; allowed: {', '.join(limits.instance_types)} (limits.instance_types)"


def _list_texts(value: object) -> list[str]:
    """Returns the texts of a field that is one, or a list of texts or of mounts."""
    found = value if isinstance(value, list) else [value]
    return [text for one in found if isinstance(text := one.get("from") if isinstance(one, Mapping) else one, str)]

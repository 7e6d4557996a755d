"""What the settings say about requests beyond numbers: presets, and tags that requests must have or must leave alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRESET_PATTERN = re.compile(r"[a-z](-?[a-z0-9]){1,39}")
PRESET_WORDS = "2 to 40 lower-case letters, digits and single hyphens, a letter first"
RULES_FILE = "request-rules.json"
"""The file in the archives of the functions that read requests: presets have more characters than a function's variables may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRules:
    """The settings `presets`, `tags`, `required_tags` and `workbench`."""

    presets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name to the fields that a request gets which names it, where it has none of its own."""
    tags: dict[str, str] = field(default_factory=dict)
    """On everything that jobs and grids launch, whatever they ask for."""
    required_tags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Key to the values that are allowed; empty for any."""
    workbench: bool = False
    """Whether requests may have a workbench."""

    @property
    def file(self) -> str:
        """Name of the file for a function that reads requests; empty where there is nothing to write."""
        return RULES_FILE if self != RequestRules() else ""


NO_RULES = RequestRules()


def list_preset_names(presets: Mapping[str, object]) -> str:
    """Words what a request may name."""
    return f"{', '.join(sorted(presets)) or 'none'} (presets in cdk.json)"

"""Fills a request from the preset that it names: a preset has fields, and the request gets those that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.codec import decode
from contract.execution_facts import MARK
from contract.request_rules import NO_RULES, RequestRules, list_preset_names
from refusals.wording import plain

ARCHIVE = Path(__file__).parents[1]
"""The root of a function's archive."""
PRESET = "preset"
ALTERNATIVES = (("instance_types", "accelerators"), ("region", "regions"), ("nodes", "roles"))
"""Of these a request has one; its own takes the place of the other one in what fills it."""
DEPENDENT = {"launcher": ("processes_per_node",), "command": ("arguments",)}
"""Fields that fill nothing where the request sets another value for the field they depend on."""
MERGED = ("environment", "tags")
"""Fields whose entries are added to those of the request; a request's other fields stand as they are."""


def load_rules(file: str) -> RequestRules:
    """Reads the rules of the deployment from a file in the function's archive; an empty name is a deployment without any."""
    return decode(RequestRules, (ARCHIVE / file).read_bytes()) if file else NO_RULES


def find_preset(given: Mapping[str, Any], rules: RequestRules) -> Mapping[str, Any] | None:
    """Returns the fields of the preset that a request names; None where it names none that there is."""
    name = given.get(PRESET)
    return rules.presets.get(name) if isinstance(name, str) else None


def fill_from_preset(given: Mapping[str, Any], rules: RequestRules) -> tuple[Mapping[str, Any], list[str]]:
    """Returns the request with the fields of its preset, and what is wrong with the preset's name. Plan has filled the requests of a
    grid's lines: a later deploy changes no line of it."""
    name = given.get(PRESET)
    if not isinstance(name, str) or given.get(MARK) is not None:
        return given, []
    if name not in rules.presets:
        return given, [f"{PRESET}: there is no {plain(name)}; allowed: {list_preset_names(rules.presets)}"]
    return fill_missing(rules.presets[name], given), []


def fill_missing(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request's own fields, with those of `base` that it does not set."""
    left = dict(base)
    for one, other in ALTERNATIVES:
        if one in own or other in own:
            left.pop(one, None)
            left.pop(other, None)
    for name, others in DEPENDENT.items():
        if name in own and own[name] != base.get(name):
            left = {key: value for key, value in left.items() if key not in others}
    found = {**left, **own}
    for name in MERGED:
        before, said = left.get(name), own.get(name)
        if isinstance(before, Mapping) and isinstance(said, Mapping):
            found[name] = {**before, **said}
    return found


def list_given(given: Mapping[str, Any], rules: RequestRules) -> dict[str, Any]:
    """Returns the fields of a request that are as its preset has them; of an object, the entries."""
    preset, found = find_preset(given, rules) or {}, dict[str, Any]()
    filled, _ = fill_from_preset(given, rules)
    for name, value in preset.items():
        has = filled.get(name)
        if has == value:
            found[name] = value
        elif name in MERGED and isinstance(value, Mapping) and isinstance(has, Mapping):
            found[name] = {key: one for key, one in value.items() if has.get(key) == one}
    return found

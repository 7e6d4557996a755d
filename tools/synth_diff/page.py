"""Writes what two trees differ in: what a person has to look at first, and each change once, with where it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tools.synth_diff.changes import Kind, ResourceChange, StackChange
from tools.synth_diff.trees import Comparison

REFUSED = "CloudFormation refuses"
LOST = "Data that is not kept"
STACKS = "Stacks"
OTHERS = "Outputs, parameters and the rest"
WIDER, NARROWER = "Rights that widen", "Rights that narrow"
SECTIONS = (REFUSED, LOST, STACKS, *(f"Resources {kind.value}" for kind in Kind), OTHERS, WIDER, NARROWER)
MOST_IDS = 6
"""Logical ids in a line."""
MOST_VALUES = 8
"""Values of one resource; `--json` has all."""
GONE = "is in BASE alone: `cdk deploy` leaves it as it is, and deleting it is up to you"


@dataclass(slots=True)
class Entry:
    """One change, wherever it is."""

    details: tuple[str, ...] = ()
    """Lines below it."""
    ids: set[str] = field(default_factory=set)
    """Logical ids that it is true of."""
    where: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Stack to configurations."""


def format_page(title: str, pins: Sequence[str], found: Mapping[str, Comparison]) -> str:
    """Returns the whole report; of changes of the same kind a line names all resources."""
    lines = [title, *_format_pins(pins)]
    equal = [name for name, one in found.items() if not one.why_not and not one.changes]
    lines += [f"equal: {', '.join(equal)}"] if equal else []
    lines += [f"{name}: {one.why_not}" for name, one in found.items() if one.why_not]
    if changed := [name for name, one in found.items() if one.changes]:
        lines.append(f"changed: {', '.join(changed)}")
    entries = _collect(found)
    for section in SECTIONS:
        if entries[section]:
            lines += ["", f"{section}:"]
            for text, entry in sorted(entries[section].items(), key=lambda one: (sorted(one[1].where), one[0])):
                lines += _format_entry(text[0], entry, found)
    return "\n".join(lines)


def to_document(title: str, pins: Sequence[str], found: Mapping[str, Comparison]) -> dict[str, Any]:
    """Returns everything that is known, for scripts: one object a configuration, in it one a stack."""
    return {
        "title": title,
        "pins_that_differ": list(pins),
        "configurations": {
            name: {"why_not": one.why_not, "stacks": {stack: _to_object(it) for stack, it in one.changes.items()}}
            for name, one in found.items()
        },
    }


def _to_object(change: StackChange) -> dict[str, Any]:
    whole = asdict(change)
    whole["rights"] = {"wider": change.rights.wider, "narrower": change.rights.narrower}
    return whole


def _format_pins(pins: Sequence[str]) -> Iterator[str]:
    if pins:
        yield f"pinned otherwise in BASE, which was synthesized with the packages of the working tree: {', '.join(pins)}"


Entries = dict[str, dict[tuple[str, ...], Entry]]
"""Section to entries, by text and details."""


def _collect(found: Mapping[str, Comparison]) -> Entries:
    entries: Entries = {section: {} for section in SECTIONS}
    for configuration, comparison in found.items():
        for stack, change in comparison.changes.items():
            for section, text, details, logical_id in _list_lines(change):
                entry = entries[section].setdefault((text, *details), Entry(details))
                entry.where[stack].add(configuration)
                entry.ids |= {logical_id} if logical_id else set()
    return entries


def _list_lines(change: StackChange) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yields section, text, details and the logical id, which is no part of the text so that equal changes are one."""
    if change.gone:
        yield STACKS, GONE, (), ""
    if change.added:
        yield STACKS, f"is new (resources: {len(change.resources)})", (), ""
    for text in change.refused:
        yield REFUSED, text, (), ""
    for resource in change.resources if not change.added else ():
        details = tuple(_list_details(resource))
        text = f"{resource.type} -> {resource.new_id}, which is equal" if resource.new_id else resource.type
        yield f"Resources {resource.kind.value}", text, details, resource.logical_id
        if resource.refused:
            yield REFUSED, f"{resource.type}: {resource.refused}", (), resource.logical_id
        if resource.loses:
            yield LOST, f"{resource.type} {resource.kind.value}, {resource.loses}", (), resource.logical_id
    for value in change.others:
        yield OTHERS, value.describe(), (), ""
    for text in change.rights.wider:
        yield WIDER, text, (), ""
    for text in change.rights.narrower:
        yield NARROWER, text, (), ""


def _list_details(resource: ResourceChange) -> Iterator[str]:
    if resource.why:
        yield resource.why
    values = [one.describe() for one in resource.values]
    yield from values[:MOST_VALUES]
    if len(values) > MOST_VALUES:
        yield f"... and {len(values) - MOST_VALUES} more"


def _format_entry(text: str, entry: Entry, found: Mapping[str, Comparison]) -> Iterator[str]:
    ids = sorted(entry.ids)
    named = ", ".join(ids[:MOST_IDS]) + (f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else "")
    head = f"{text}: {named}" if ids else text
    yield f"  {head} [{_format_where(entry.where, found)}]"
    yield from (f"    {one}" for one in entry.details)


def _format_where(where: Mapping[str, set[str]], found: Mapping[str, Comparison]) -> str:
    """Returns stacks, and the configurations unless it is all that have the stack."""
    grouped = defaultdict[str, list[str]](list)
    for stack, configurations in sorted(where.items()):
        having = {name for name, one in found.items() if stack in one.stacks}
        only = "" if configurations == having else f" in {', '.join(name for name in found if name in configurations)}"
        grouped[only].append(stack)
    return "; ".join(f"{', '.join(stacks)}{only}" for only, stacks in sorted(grouped.items()))

"""Compares values of templates, and writes them as text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ValuePath = tuple[str, ...]
"""Where a value is: names of properties, and `[...]` for an item of a list."""
NAMED_BY = ("Key", "Name", "Id")
"""Fields by which items of a list are found again, whatever their order."""
UNORDERED = (("DependsOn",),)
"""Ends of paths to lists without an order, whose items have no names either."""
LONGEST = 60
"""Characters of a value in a line."""
CONTEXT = 12
"""Characters that are shown before the first difference of two long texts, and after the last one."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value that differs; None is a value that is not there."""

    path: ValuePath
    before: Any
    after: Any

    def describe(self) -> str:
        """Returns `Path.To.Value: before -> after`, shortened to what differs."""
        where = "".join(one if one.startswith("[") else f".{one}" for one in self.path).removeprefix(".")
        if is_policy(self.before) or is_policy(self.after):
            return f"{where}: see the rights"
        before, after = _excerpts(describe_value(self.before), describe_value(self.after))
        return f"{where}: {before} -> {after}"


def is_policy(value: Any) -> bool:
    """Returns whether the value is a policy document of IAM."""
    return isinstance(value, dict) and isinstance(value.get("Statement"), list)


def to_text(value: Any) -> str | None:
    """Returns a string, or an intrinsic function that stands for one, with references as `${Name}`; None for anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((kind, inner),) = value.items()
    match kind:
        case "Ref":
            return f"${{{inner}}}"
        case "Fn::GetAtt":
            return f"${{{inner if isinstance(inner, str) else '.'.join(map(str, inner))}}}"
        case "Fn::Sub" if isinstance(inner, str):
            return inner
        case "Fn::Join" if isinstance(inner[1], list):
            parts = [to_text(one) for one in inner[1]]
            return None if None in parts else str(inner[0]).join(one for one in parts if one is not None)
        case _ if kind.startswith("Fn::"):
            return f"${{{kind.removeprefix('Fn::')} {json.dumps(inner, sort_keys=True)}}}"
    return None


def describe_value(value: Any) -> str:
    """Returns a value as one line."""
    if value is None:
        return "(none)"
    text = to_text(value)
    return json.dumps(value if text is None else text, sort_keys=True, ensure_ascii=False)


def find_differences(before: Any, after: Any, path: ValuePath = ()) -> Iterator[ValueChange]:
    """Yields the smallest values that differ. A text that holds JSON is compared as what it holds."""
    if before == after:
        return
    before_text, after_text = to_text(before), to_text(after)
    if before_text is not None and after_text is not None:
        held, holds = _parse(before_text), _parse(after_text)
        if held is None or holds is None:
            if before_text != after_text:
                yield ValueChange(path, before, after)
        else:
            yield from find_differences(held, holds, path)
    elif is_policy(before) or is_policy(after) or before_text is not None or after_text is not None:
        yield ValueChange(path, before, after)
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from find_differences(before.get(name), after.get(name), (*path, name))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    else:
        yield ValueChange(path, before, after)


def _of_lists(before: Sequence[Any], after: Sequence[Any], path: ValuePath) -> Iterator[ValueChange]:
    pairs = ((_by_field(before, field), _by_field(after, field)) for field in NAMED_BY)
    named = next(((old, new) for old, new in pairs if old is not None and new is not None), None)
    if named is not None:
        old_by_name, new_by_name = named
        for name in sorted(old_by_name.keys() | new_by_name.keys()):
            yield from find_differences(old_by_name.get(name), new_by_name.get(name), (*path, f"[{name}]"))
    elif len(before) == len(after) and path[-1:] not in UNORDERED:
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from find_differences(old, new, (*path, f"[{number}]"))
    else:
        old_items, new_items = (Counter(json.dumps(one, sort_keys=True) for one in items) for items in (before, after))
        for item in sorted((old_items - new_items).elements()):
            yield ValueChange((*path, "[-]"), json.loads(item), None)
        for item in sorted((new_items - old_items).elements()):
            yield ValueChange((*path, "[+]"), None, json.loads(item))


def _by_field(items: Sequence[Any], field: str) -> dict[str, Any] | None:
    """Returns the items by the field; None unless each has a value of its own there."""
    found = {one[field]: one for one in items if isinstance(one, dict) and isinstance(one.get(field), str)}
    return found if len(found) == len(items) else None


def _parse(text: str) -> dict[str, Any] | list[Any] | None:
    """Returns the object or the list that a text holds as JSON, or None."""
    if not text.startswith(("{", "[")):
        return None
    try:
        held = json.loads(text)
    except ValueError:
        return None
    return held if isinstance(held, (dict, list)) else None


def _excerpts(before: str, after: str) -> tuple[str, str]:
    """Returns both texts without what long ones share at their ends."""
    if max(len(before), len(after)) <= LONGEST:
        return before, after
    shortest = min(len(before), len(after))
    begin = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    rest = shortest - begin
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return _cut(before, begin, end), _cut(after, begin, end)


def _cut(text: str, begin: int, end: int) -> str:
    begin, stop = max(0, begin - CONTEXT), min(len(text), len(text) - end + CONTEXT)
    middle = text[begin:stop]
    if len(middle) > LONGEST:
        middle = f"{middle[: LONGEST // 2]} ... {middle[-LONGEST // 2 :]}"
    return f"{'...' if begin else ''}{middle}{'...' if stop < len(text) else ''}"


def rename(value: Any, names: Mapping[str, str]) -> Any:
    """Returns a value with references to logical ids replaced: those of Ref, Fn::GetAtt, Fn::Sub and DependsOn."""
    if isinstance(value, list):
        return [rename(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return {"Ref": names.get(name, name)}
        case {"Fn::GetAtt": [str(name), *attribute], **rest} if not rest:
            return {"Fn::GetAtt": [names.get(name, name), *attribute]}
        case {"Fn::Sub": str(text), **rest} if not rest:
            for old, new in names.items():
                text = text.replace(f"${{{old}}}", f"${{{new}}}").replace(f"${{{old}.", f"${{{new}.")
            return {"Fn::Sub": text}
    return {
        name: _rename_needed(inner, names) if name == "DependsOn" else rename(inner, names)
        for name, inner in value.items()
    }


def _rename_needed(needed: Any, names: Mapping[str, str]) -> Any:
    listed = [needed] if isinstance(needed, str) else needed
    return sorted(names.get(one, one) for one in listed)


def find_references(value: Any, path: ValuePath = ()) -> Iterator[tuple[ValuePath, str]]:
    """Yields where a value refers to a logical id, and to which. References inside of Fn::Sub are left out: the CDK writes none."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from find_references(one, (*path, f"[{number}]"))
    elif isinstance(value, dict):
        match value:
            case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
                yield path, name
            case _:
                for name, inner in value.items():
                    yield from find_references(inner, path if name.startswith("Fn::") else (*path, name))

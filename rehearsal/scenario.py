"""Reads a scenario: faults of which each begins, and may end, at its moment in the life of a job.

The file is JSON: `{"faults": [{"fault": ..., "keys": {...}, "name": ..., "begins": {...}, "ends": {...}}]}`.
docs/reference/faults.md has the words.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.fault_keys import MOMENTS
from rehearsal.faults import FAULTS, Fault, UnknownFault
from rehearsal.options import UnreadableFile, read

OPTION = "--scenario"
PHASES = MOMENTS[2:]
"""What a node reports; before that nothing of it is known."""
ENTRY = ("fault", "keys", "name", "begins", "ends")
MOMENT: dict[str, tuple[str, str]] = {
    "attempt": ("once the job has an instance of this attempt, or of a later one", "a whole number from 1"),
    "phase": ("once rank 0 of the newest attempt reports this phase, or a later one", f"one of {', '.join(PHASES)}"),
    "step": ("once rank 0 of the newest attempt reports this many steps", "a whole number from 0"),
    "closed": (
        "once the newest attempt has a checkpoint of this step, or of a later one, that another attempt can restore",
        "a whole number from 0",
    ),
    "after": (
        "once the entry of this name has happened: it struck a node, or, if it strikes none, began",
        "a name of another entry",
    ),
    "seconds": ("this long after all of that, in seconds of a real account", "a number from 0"),
}
"""Key to what it means and what it may be."""


class BadScenario(Exception):
    """What is wrong in a scenario: a line for each problem, with the entry and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioMoment:
    """When a fault begins or ends: all that is given has to be so, then `seconds` pass."""

    attempt: int = 1
    phase: str = ""
    step: int | None = None
    closed: int | None = None
    after: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A fault of a scenario."""

    name: str
    fault: Fault
    begin: ScenarioMoment
    end: ScenarioMoment | None = None
    """None for what lasts as long as its own keys say."""


def load(file: Path) -> tuple[Entry, ...]:
    """The entries in their order. Raises UnreadableFile, or BadScenario."""
    text = read(OPTION, file)
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise UnreadableFile(f"{OPTION} {file}: is not JSON: {problem}") from None
    return parsed(found, f"{OPTION} {file}")


def parsed(found: object, where: str) -> tuple[Entry, ...]:
    """Raises BadScenario with every problem; `where` begins each line."""
    listed = found.get("faults") if isinstance(found, dict) else None
    if not isinstance(found, dict) or set(found) != {"faults"} or not isinstance(listed, list) or not listed:
        raise BadScenario(
            f'{where}: has another form; allowed: {{"faults": [...]}} with at least one fault and no other key'
        )
    problems, entries = list[str](), list[Entry]()
    names = [_name(one, number) for number, one in enumerate(listed, 1)]
    for number, (one, name) in enumerate(zip(listed, names, strict=True), 1):
        place = f"{where}: fault {number}"
        if names.count(name) > 1:
            problems.append(f"{place}: the name {name!r} is given twice; allowed: different names")
        try:
            entries.append(_entry(one, name, [other for other in names if other != name]))
        except BadScenario as problem:
            problems += [f"{place}: {line}" for line in str(problem).splitlines()]
    if not problems and (circle := _circle(entries)):
        problems.append(
            f"{where}: {', '.join(circle)} wait for each other; allowed: entries that do not wait in a circle"
        )
    if problems:
        raise BadScenario("\n".join(problems))
    return tuple(entries)


def _name(one: object, number: int) -> str:
    """As given; otherwise the fault's own name, with the entry's number where that is not given either."""
    given = one.get("name") if isinstance(one, Mapping) else None
    return given if isinstance(given, str) and given else str(number)


def _entry(one: object, name: str, others: Collection[str]) -> Entry:
    if not isinstance(one, dict):
        raise BadScenario(f"{json.dumps(one)} is not an object; allowed: one of {', '.join(ENTRY)}")
    problems = [f"there is no key {key!r}{_near(key, ENTRY)}" for key in one if key not in ENTRY]
    if "name" in one and (not isinstance(one["name"], str) or not one["name"]):
        problems.append(f"name is {json.dumps(one['name'])}; allowed: a string")
    given, keys = one.get("fault"), one.get("keys", {})
    if not isinstance(given, str):
        problems.append(f"fault is {json.dumps(given)}; allowed: the name of a fault")
    if not isinstance(keys, dict) or not all(_plain(value) for value in keys.values()):
        problems.append(f"keys is {json.dumps(keys)}; allowed: an object of strings and numbers")
    for key in ("begins", "ends"):
        problems += _wrong(key, one.get(key, {}), others)
    if "ends" in one and not one["ends"]:
        problems.append(f"ends is {json.dumps(one['ends'])}; allowed: at least one of {', '.join(MOMENT)}")
    if problems:
        raise BadScenario("\n".join(problems))
    begin = ScenarioMoment(**one.get("begins", {}))
    end = ScenarioMoment(**one["ends"]) if "ends" in one else None
    try:
        return Entry(name=name, fault=_fault(str(given), keys, begin), begin=begin, end=end)
    except UnknownFault as problem:
        raise BadScenario(str(problem).removeprefix("--fault ")) from None


def _fault(name: str, given: Mapping[str, object], begin: ScenarioMoment) -> Fault:
    """The fault; of one that begins with a later attempt, that attempt is the last that it strikes, unless `attempts` says otherwise."""
    texts = {key: str(value) for key, value in given.items()}
    if begin.attempt > 1 and name in FAULTS and "attempts" in FAULTS[name].keys:
        texts.setdefault("attempts", str(begin.attempt))
    return Fault(name, texts)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _wrong(name: str, moment: Any, others: Collection[str]) -> list[str]:
    """Returns what is wrong with a moment, which `name` calls `begins` or `ends`."""
    if not isinstance(moment, dict):
        return [f"{name} is {json.dumps(moment)}; allowed: an object of {', '.join(MOMENT)}"]
    fits: dict[str, Callable[[Any], bool]] = {
        "attempt": lambda value: _whole(value, 1),
        "phase": lambda value: value in PHASES,
        "step": lambda value: _whole(value, 0),
        "closed": lambda value: _whole(value, 0),
        "after": lambda value: value in others,
        "seconds": lambda value: _plain(value) and not isinstance(value, str) and 0 <= value < float("inf"),
    }
    problems = []
    for key, value in moment.items():
        if key not in MOMENT:
            problems.append(f"{name}: there is no key {key!r}{_near(key, MOMENT)}")
        elif not fits[key](value):
            allowed = f"{MOMENT[key][1]} ({', '.join(others)})" if key == "after" and others else MOMENT[key][1]
            problems.append(f"{name}: {key} is {json.dumps(value)}; allowed: {allowed}")
    return problems


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _circle(entries: Collection[Entry]) -> list[str]:
    """Names of entries that can never begin, because each waits for another of them."""
    waits = {one.name: one.begin.after for one in entries if one.begin.after}
    while free := [name for name, other in waits.items() if other not in waits]:
        for name in free:
            del waits[name]
    return sorted(waits)


def _near(word: str, among: Collection[str]) -> str:
    near = difflib.get_close_matches(word, among, 1)
    return f"{f' (did you mean {near[0]}?)' if near else ''}; there are {', '.join(among)}"

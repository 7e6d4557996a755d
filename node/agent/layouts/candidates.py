"""Chooses among the checkpoints that a layout finds: which are whole, and from which its framework would go on."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.layouts.listing import MOST_STEP, Recognised, Remembered, Whole
from agent.layouts.view import DIGITS, View, count_names, find_missing, join

GIVEN_UP_S = 120.0
"""A checkpoint that lacks a file which the one before had counts as whole after this time: its trainer has fewer processes now."""
MOST = 256
"""Checkpoints that are judged for one listing, newest first."""


@dataclass(frozen=True)
class Candidate:
    """What may be a checkpoint."""

    name: str
    files: frozenset[str]
    at: float
    """When the last of its files came to its place."""
    written_ns: int
    """When the last of their bytes was written, which a restore leaves as it was."""
    number: int = -1
    """Its own, by which its framework sorts it; -1 where it has none."""
    step: int = -1
    needs: frozenset[str] = frozenset()
    problem: str = ""
    """Why it is not whole; empty where it is."""
    settled: bool = True
    """Whether its marker is written after everything that any process of this node writes; otherwise its files must be those that the one
    before had, or rest."""
    ordered: bool = False
    """Whether its marker is written after all files without a number in their names: only those of other processes may come later."""
    removal: str = ""
    """That something was removed from it just now, where that need not be its end: it is whole where it has what the one before had."""
    spare: bool = False
    """Whether it may be kept although it is not whole: a person may remove files of an old one."""

    @property
    def row(self) -> str:
        """What it has in common with the checkpoints that are counted together with it."""
        return name_row(self.name)


@dataclass(frozen=True)
class Found:
    """What a layout finds in a listing."""

    candidates: Sequence[Candidate] = ()
    chosen: str | None = None
    """Name of the one from which the framework goes on, where something in the folder says it; None where their order does."""
    blocked: str = ""
    """Why nothing in the folder can be gone on from now, although older checkpoints may be whole."""


def build_candidate(
    view: View, name: str, files: frozenset[str], *, dated: Iterable[str] | None = None, number: int = -1, step: int = -1,
    needs: frozenset[str] = frozenset(), problem: str = "", settled: bool = True, ordered: bool = False, removal: str = "",
    spare: bool = False,
) -> Candidate:  # fmt: skip
    """Returns a candidate as old as its files, or those of them that are `dated`."""
    young = list(files if dated is None else dated)
    return Candidate(
        name=name, files=files, at=view.changed_s(young), written_ns=max(map(view.written_ns, young), default=-1), number=number, step=step,
        needs=needs, problem=problem, settled=settled, ordered=ordered, removal=removal,
        spare=spare,
    )  # fmt: skip


Layout = Callable[[View], Found]


def settle(view: View, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Returns the candidates with the problem of those that are whole by their marker, and may still get files of other processes."""
    rows = defaultdict[str, list[Candidate]](list)
    for one in candidates:
        rows[one.row].append(one)
    settled = list[Candidate]()
    for name, row in rows.items():
        before: Counter[str] | None = None
        newest = max(each.number for each in row)
        for one in sorted(row, key=lambda each: (each.number, each.written_ns)):
            names = count_names(one.files, one.name)
            # Processes train in lockstep: all have left the save of a checkpoint once one of them begins the next.
            settled_now = one.settled or (before is None and 0 <= one.number < newest)
            known = before if before is not None else view.recall(name, one.name, one.written_ns)
            problem = one.problem or ("" if settled_now else _find_missing(view, one, names, known))
            if not problem:
                before = names
                view.remember(name, Remembered(one.name, one.written_ns, names))
            settled.append(replace(one, problem=problem))
    return settled


def _find_missing(view: View, one: Candidate, names: Counter[str], before: Counter[str] | None) -> str:
    expected = Counter({name: n for name, n in (before or {}).items() if "#" in name or one.removal or not one.ordered})
    missing = find_missing(names, expected)
    if one.removal and (missing or before is None):
        return one.removal
    if missing:
        return (
            ""
            if view.rests(one.files, GIVEN_UP_S)
            else f"{one.name or 'it'} lacks a file {missing} that the one before had"
        )
    return "" if before is not None or view.rests(one.files) else f"{one.name or 'it'} may not have all its files yet"


def recognise_found(view: View, layout: str, found: Found) -> Recognised:
    """Returns what a layout's findings mean for this rank. A name that is used again and again is what a training goes on from: while that
    one is not whole, none is."""
    if not found.candidates:
        return Recognised(why=f"nothing here is in the layout {layout}")
    judged = settle(view, sorted(found.candidates, key=lambda one: (one.number, one.written_ns), reverse=True)[:MOST])
    whole = [one for one in judged if not one.problem]
    newest = choose_newest(whole, found.chosen)
    later = [one for one in judged if one.problem and (newest is None or _is_later(one, newest))]
    blocked = found.blocked or next((one.problem for one in later if one.number < 0), "")
    kept = frozenset(path for one in whole for path in one.files)
    unfinished = frozenset(
        path for one in judged if one.problem and (not one.spare or one in later) for path in one.files
    )
    return Recognised(
        layout=layout,
        newest=None if newest is None or blocked else _describe(layout, newest),
        unfinished=unfinished - kept,
        why=blocked or (max(later, key=lambda one: (one.written_ns, one.number)).problem if later else ""),
    )


def choose_newest(whole: Sequence[Candidate], chosen: str | None) -> Candidate | None:
    """Returns the checkpoint from which the framework goes on: the one that the folder names, or of each row that with the highest number,
    and of these the one that came last."""
    if chosen is not None:
        return next((one for one in whole if one.name == chosen), None)
    rows: Mapping[str, list[Candidate]] = defaultdict(list)
    for one in whole:
        rows[one.row].append(one)
    highest = (max(row, key=lambda one: (one.number, one.written_ns, one.name)) for row in rows.values())
    return max(highest, key=lambda one: (one.written_ns, one.number, one.name), default=None)


def name_row(name: str) -> str:
    """Returns what the name of a checkpoint has in common with those that are counted together with it."""
    return join(posixpath.dirname(name), DIGITS.sub("#", leaf(name)))


def leaf(path: str) -> str:
    return posixpath.basename(path)


def _is_later(one: Candidate, newest: Candidate) -> bool:
    return one.number > newest.number if one.row == newest.row else one.written_ns > newest.written_ns


def _describe(layout: str, one: Candidate) -> Whole:
    step = one.step if -1 <= one.step < MOST_STEP else -1
    return Whole(layout=layout, step=step, name=one.name, at=one.at, files=one.files, needs=one.needs)

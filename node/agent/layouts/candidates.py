"""Chooses among the checkpoints that a layout finds: which are whole, and from which its framework would go on."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.layouts.listing import MOST_STEP, Recognised, Whole
from agent.layouts.tree import Tree, relative_names, split_number

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
    number: int = -1
    """Its own, by which its framework sorts it; -1 where it has none."""
    step: int = -1
    needs: frozenset[str] = frozenset()
    problem: str = ""
    """Why it is not whole; empty where it is."""
    settled: bool = True
    """Whether its marker is written after everything that any process of this node writes; otherwise its files must be those that the one
    before had, or rest."""
    spare: bool = False
    """Whether it may be kept although it is not whole: somebody removed a file of an old one."""

    @property
    def row(self) -> str:
        """What it has in common with the checkpoints that are counted together with it."""
        return split_number(self.name)[0]


@dataclass(frozen=True)
class Found:
    """What a layout finds in a listing."""

    candidates: Sequence[Candidate] = ()
    chosen: str | None = None
    """Name of the one from which the framework goes on, where something in the folder says it; None where their order does."""
    blocked: str = ""
    """Why nothing in the folder can be gone on from now, although older checkpoints may be whole."""


Layout = Callable[[Tree], Found]


def settle(tree: Tree, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Returns the candidates with the problem of those that are whole by their marker, and may still get files of other processes."""
    rows = defaultdict[str, list[Candidate]](list)
    for one in candidates:
        rows[one.row].append(one)
    settled = list[Candidate]()
    for row in rows.values():
        before: frozenset[str] | None = None
        for one in sorted(row, key=lambda each: (each.number, each.at)):
            problem = one.problem or ("" if one.settled else _find_missing(tree, one, before))
            if not problem:
                before = relative_names(one.files, one.name, one.number)
            settled.append(replace(one, problem=problem))
    return settled


def _find_missing(tree: Tree, one: Candidate, before: frozenset[str] | None) -> str:
    names = relative_names(one.files, one.name, one.number)
    missing = sorted((before or frozenset()) - names)
    if missing:
        return "" if tree.rests(one.files, GIVEN_UP_S) else f"{one.name or 'it'} has no {missing[0]} yet"
    return "" if before is not None or tree.rests(one.files) else f"{one.name or 'it'} may not have all its files yet"


def recognise_found(tree: Tree, layout: str, found: Found) -> Recognised:
    """Returns what a layout's findings mean for this rank. A name that is used again and again is what a training goes on from: while that
    one is not whole, none is."""
    judged = settle(tree, sorted(found.candidates, key=lambda one: (one.number, one.at), reverse=True)[:MOST])
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
        why=blocked or (max(later, key=lambda one: (one.at, one.number)).problem if later else ""),
    )


def choose_newest(whole: Sequence[Candidate], chosen: str | None) -> Candidate | None:
    """Returns the checkpoint from which the framework goes on: the one that the folder names, or of each row that with the highest number,
    and of these the one that came last."""
    if chosen is not None:
        return next((one for one in whole if one.name == chosen), None)
    rows: Mapping[str, list[Candidate]] = defaultdict(list)
    for one in whole:
        rows[one.row].append(one)
    highest = (max(row, key=lambda one: (one.number, one.at, one.name)) for row in rows.values())
    return max(highest, key=lambda one: (one.at, one.number, one.name), default=None)


def is_inside(folder: str, above: str) -> bool:
    """Whether a folder is another one, or lies below it."""
    return folder == above or not above or folder.startswith(f"{above}/")


def leaf(path: str) -> str:
    return posixpath.basename(path)


def _is_later(one: Candidate, newest: Candidate) -> bool:
    return one.number > newest.number if one.row == newest.row else one.at > newest.at


def _describe(layout: str, one: Candidate) -> Whole:
    step = one.step if -1 <= one.step < MOST_STEP else -1
    return Whole(layout=layout, step=step, name=one.name, at=one.at, files=one.files, needs=one.needs)

"""Recognises checkpoints as the frameworks write them: one module a layout, a pure function each from a listing to what is whole in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

from agent.layouts import (
    accelerate,
    dcp,
    deepspeed,
    keras,
    lightning,
    megatron,
    orbax,
    safetensors,
    tensorflow,
    transformers,
)
from agent.layouts.candidates import GIVEN_UP_S, Layout, name_row, recognise_found
from agent.layouts.listing import FolderListing, Read, Recognised, Remembered, Shards, Whole
from agent.layouts.view import DIGITS, View, count_names, find_missing
from contract.jobs import CheckpointLayout

__all__ = ["FolderListing", "Read", "Recognised", "Shards", "Whole", "find_shards", "recognise"]

OUTER_FIRST: Mapping[str, Layout] = {
    CheckpointLayout.TRANSFORMERS.value: transformers.find,
    CheckpointLayout.MEGATRON.value: megatron.find,
    CheckpointLayout.LIGHTNING.value: lightning.find,
    CheckpointLayout.ACCELERATE.value: accelerate.find,
    CheckpointLayout.DEEPSPEED.value: deepspeed.find,
    CheckpointLayout.ORBAX.value: orbax.find,
    CheckpointLayout.DCP.value: dcp.find,
    CheckpointLayout.TENSORFLOW.value: tensorflow.find,
    CheckpointLayout.KERAS.value: keras.find,
}
"""Layouts that are recognised without a word, those first whose checkpoints have others inside."""
NAMED: Mapping[str, Layout] = {
    **OUTER_FIRST,
    CheckpointLayout.LIGHTNING.value: lightning.find_named,
    CheckpointLayout.KERAS.value: keras.find_named,
    CheckpointLayout.SAFETENSORS.value: safetensors.find_named,
}

NUMBERS = re.compile(r"\d{1,255}")


def recognise(listing: FolderListing, layout: str = CheckpointLayout.AUTO) -> Recognised:
    """Recognises the newest whole checkpoint in what a rank has; `layout` is what the request says."""
    view = View(listing)
    if layout == CheckpointLayout.NONE:
        return Recognised()
    if layout != CheckpointLayout.AUTO:
        return recognise_found(view, layout, NAMED[layout](view)) if layout in NAMED else Recognised()
    best, known = Recognised(), set[str]()
    for name, find in OUTER_FIRST.items():
        if (found := find(view)).candidates:
            one = recognise_found(view, name, found)
            best = one if not best.layout or _is_instead(one, best, known) else best
            known |= {path for candidate in found.candidates for path in candidate.files}
    return best


def _is_instead(one: Recognised, best: Recognised, known: Collection[str]) -> bool:
    """Whether a layout counts in place of an outer one, which has older checkpoints, of a training before this one. What is in the outer
    ones' checkpoints (`known`) is a part of them."""
    if one.newest is None or best.newest is None or not one.newest.files.isdisjoint(known):
        return False
    return one.newest.at > best.newest.at


def find_shards(listing: FolderListing, layout: str, name: str) -> Shards:
    """Finds what this rank has of the checkpoint `name` of a layout, of which another rank has the marker.

    It is whole where no format says otherwise and, unless the marker is written after a barrier of all processes, either has the names
    of the checkpoint before it or has rested.
    """
    view = View(listing)
    files = view.under(name) if name else frozenset(listing.files)
    files |= frozenset({name} if view.has(name) else ())
    written_ns = max(map(view.written_ns, files), default=-1)
    before = _find_before(view, name) or view.recall(name_row(name), name, written_ns)
    if not files:
        return Shards(files, f"it has no file of {name} yet" if before else "")
    problem = view.find_torn(files) or view.find_removal(name) or _find_unfinished(view, layout, name, files, before)
    if not problem:
        view.remember(name_row(name), Remembered(name, written_ns, count_names(files, name)))
    return Shards(files, problem)


def _find_unfinished(view: View, layout: str, name: str, files: Collection[str], before: Counter[str] | None) -> str:
    """Returns why files of a checkpoint may still come; empty where they may not."""
    if not before:
        return (
            ""
            if _is_after_barrier(layout, files) or view.rests(files)
            else f"{name or 'it'} may not have all its files yet"
        )
    missing = find_missing(count_names(files, name), before)
    return (
        "" if not missing or view.rests(files, GIVEN_UP_S) else f"{name} lacks a file {missing} that the one before had"
    )


def _is_after_barrier(layout: str, files: Collection[str]) -> bool:
    """Whether the marker of a layout says that these files are whole too."""
    return layout == CheckpointLayout.MEGATRON or all(path.endswith(".distcp") for path in files)


def _find_before(view: View, name: str) -> Counter[str] | None:
    """Returns the names that this rank's files have in the checkpoint before; None where it has none."""
    own, masked = _numbers(name), DIGITS.sub("#", name)
    alike = (one for one in view.folders() if one and one != name and DIGITS.sub("#", one) == masked)
    earlier = [one for one in alike if _numbers(one) < own and view.under(one)]
    one = max(earlier, key=_numbers, default=None)
    return None if one is None else count_names(view.under(one), one)


def _numbers(name: str) -> tuple[int, ...]:
    """Returns the numbers in a name, the last of them its own; -1 where it has none."""
    return tuple(map(int, NUMBERS.findall(name))) or (-1,)

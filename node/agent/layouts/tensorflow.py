"""Recognises TensorFlow's checkpoints by the file `checkpoint`, which names the newest one.

tensorflow at 34827a1, python/checkpoint/checkpoint_management.py: `<prefix>.data-<n>-of-<n>` and `<prefix>.index` are written first; then
`update_checkpoint_state_internal` replaces the file `checkpoint` by renaming, a text that names the prefix; then `_sweep` removes older
ones, and the file is written again. A training goes on from the prefix in the file (`latest_checkpoint`).
"""

from __future__ import annotations

import posixpath
import re

from agent.layouts.candidates import Candidate, Found, build_candidate, leaf
from agent.layouts.view import View, join, split_number

MARKER = "checkpoint"
MOST_MARKER = 1024 * 1024
NEWEST = re.compile(r'^\s*model_checkpoint_path:\s*"([^"\\\n]{1,1000})"', re.MULTILINE)
PART = re.compile(r"(.+)\.(?:index|data-(\d{5})-of-(\d{5}))")


def find(view: View) -> Found:
    """Finds the folders in which a file `checkpoint` names a prefix, and the prefixes there."""
    named = {folder: name for folder in view.folders() if (name := _read_name(view, folder))}
    if not named:
        return Found()
    home = max(named, key=lambda one: (view.changed_s([join(one, MARKER)]), one))
    prefixes = sorted(
        {join(folder, found[1]) for folder in named for one in view.names(folder) if (found := PART.fullmatch(one))}
    )
    found = [_judge(view, prefix, named) for prefix in prefixes]
    chosen = join(home, named[home])
    return Found(
        found,
        chosen=chosen,
        blocked="" if chosen in prefixes else f"{join(home, MARKER)} names {chosen}, which is not here",
    )


def _read_name(view: View, folder: str) -> str:
    """Returns the prefix that the file names, which lies beside it whatever path the file gives; empty where it names none."""
    found = NEWEST.search(view.text(join(folder, MARKER), MOST_MARKER) or "")
    return posixpath.basename(found[1]) if found else ""


def _judge(view: View, prefix: str, named: dict[str, str]) -> Candidate:
    folder, name = posixpath.dirname(prefix), leaf(prefix)
    parts = {one: found for one in view.names(folder) if (found := PART.fullmatch(one)) and found[1] == name}
    counts = {int(found[3]) for found in parts.values() if found[3]}
    own = frozenset(join(folder, one) for one in parts)
    marker, number = join(folder, MARKER), split_number(name)[1]
    if f"{name}.index" not in parts:
        problem = f"{prefix} has no index"
    elif len(counts) != 1 or len(parts) != 1 + counts.pop():
        problem = f"{prefix} has not all of its data"
    else:
        problem = view.find_newer(own, marker)
    files = own | {marker} if named[folder] == name else own
    return build_candidate(
        view,
        prefix,
        files=files,
        number=max(number, 0),
        step=number,
        problem=problem,
        spare=True,
    )

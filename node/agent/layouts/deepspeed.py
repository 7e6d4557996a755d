"""Recognises DeepSpeed's checkpoints by the file `latest`, which names one of the folders beside it.

deepspeed 0.19.8, runtime/engine.py, `save_checkpoint`: after a barrier each process writes its files into `<tag>/`, in place
(`checkpoint_engine.save` is torch.save): with plain data parallelism rank 0 `mp_rank_00_model_states.pt`, with ZeRO each its
`[bf16_]zero_pp_rank_<n>_mp_rank_<n>_optim_states.pt`. When rank 0 has written its own it writes `latest`, in place, and only then comes
the barrier: other processes, of this node too, may still write. Nothing is rotated. A training goes on from what `latest` names.
With save_latest=False there is no such file, and the script says from which folder it goes on. This module takes the highest number.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from agent.layouts.candidates import GIVEN_UP_S, Candidate, Found, build_candidate, leaf
from agent.layouts.view import View, join, split_number

MARKER = "latest"
STATES = re.compile(r"(?:.*mp_rank_\d+.*|layer_.*|.*expert_\d+.*)_(?:optim|model)_states\.pt")
OF_RANK_0 = re.compile(r"mp_rank_00_model_states\.pt|(?:bf16_)?zero_pp_rank_0_mp_rank_00_(?:optim|model)_states\.pt")
"""Files that the process writes which writes `latest` after them."""


def find(view: View) -> Found:
    """Finds the folders with states, and which of them `latest` names."""
    tags = [folder for folder in view.folders() if folder and is_one(view, folder)]
    homes = {
        home: [tag for tag in tags if posixpath.dirname(tag) == home]
        for home in sorted(set(map(posixpath.dirname, tags)))
    }
    named = {home: read_latest(view, home) for home in homes}
    found = [
        _judge(view, tag, named[home], by_number=by_number)
        for home, own in homes.items()
        for by_number in [_lacks_latest(view, home, own)]
        for tag in own
    ]
    marked = [home for home in homes if named[home]]
    if not marked:
        return Found(found)
    home = max(marked, key=lambda one: (view.changed_s([join(one, MARKER)]), one))
    name = join(home, named[home])
    chosen = next((one for one in found if one.name == name), None)
    problem = f"{join(home, MARKER)} names {named[home]}, which is not here" if chosen is None else ""
    return Found(found, chosen=name, blocked=problem)


def is_one(view: View, folder: str) -> bool:
    """Whether a folder has states of a process."""
    return any(STATES.fullmatch(name) for name in view.names(folder))


def read_latest(view: View, home: str) -> str:
    """Returns the name of the folder that `latest` names; empty where it names none."""
    text = view.text(join(home, MARKER)) or ""
    return text if text and "/" not in text and text not in (".", "..") and "\n" not in text else ""


def find_problem(view: View, home: str, tags: Sequence[str]) -> str:
    """Returns why the folders with states in a checkpoint of an outer layout are not whole; empty where they are."""
    named = read_latest(view, home)
    if not named or join(home, named) not in tags:
        return f"{join(home, MARKER)} does not name a folder with states yet"
    return _find_problem(view, join(home, named))


def _lacks_latest(view: View, home: str, tags: Sequence[str]) -> bool:
    """Whether the process of rank 0 saves here without `latest`: it wrote a second folder, which it begins after the barrier behind the
    first, or it did nothing more for a long time."""
    own = [tag for tag in tags if any(OF_RANK_0.fullmatch(name) for name in view.names(tag))]
    if not own or view.has(join(home, MARKER)):
        return False
    return len(own) > 1 or view.rests(view.under(own[0]), GIVEN_UP_S)


def _judge(view: View, tag: str, named: str, *, by_number: bool) -> Candidate:
    home, number = posixpath.dirname(tag), split_number(tag)[1]
    marker = join(home, MARKER)
    files = view.under(tag)
    if by_number:
        problem = view.find_torn(files)
    elif not named:
        problem = f"{marker} is not there yet"
    elif leaf(tag) == named:
        files |= {marker}
        problem = _find_problem(view, tag)
    else:
        problem = _find_older_problem(view, tag, marker)
    return build_candidate(view, tag, files, number=number, step=number,
        problem=problem or view.find_removal(tag), settled=False,
    )  # fmt: skip


def _find_problem(view: View, tag: str) -> str:
    own = (join(tag, name) for name in view.names(tag) if OF_RANK_0.fullmatch(name))
    return view.find_torn(view.under(tag)) or view.find_newer(own, join(posixpath.dirname(tag), MARKER))


def _find_older_problem(view: View, tag: str, marker: str) -> str:
    """One that `latest` does not name is an older one, or the next one: that is written after `latest`."""
    return view.find_newer(view.under(tag), marker) and f"{marker} does not name {leaf(tag)} yet"

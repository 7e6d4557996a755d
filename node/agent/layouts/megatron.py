"""Recognises Megatron-LM's checkpoints by latest_checkpointed_iteration.txt, which says the newest one's number.

Megatron-LM at d98e8a6 (August 2026), megatron/training/checkpointing.py, `save_checkpoint`: into `iter_<number>/`, in place, each process
that has part of the model writes `mp_rank_<n>/model_optim_rng.pt` and `distrib_optim.pt`; in the format torch_dist (megatron-core 0.16.1,
dist_checkpointing/serialization.py, `save`) common.pt, then what torch.distributed.checkpoint writes, then metadata.json. Then comes a
barrier of all processes (with --async-save all have ended their writing), and then rank 0 writes the file with the number, in place. After
it come the tokenizer's files, and the removal of older iterations. A training goes on from the number in the file, or from `release`.
"""

from __future__ import annotations

import posixpath
import re

from agent.layouts import dcp
from agent.layouts.candidates import Candidate, Found, build_candidate, leaf
from agent.layouts.view import View, join, split_number

MARKER = "latest_checkpointed_iteration.txt"
FOLDER = re.compile(r"iter_\d{7,18}|release")
SIGN = re.compile(r"mp_rank_\d{2,}(_\d{3,})*")
COMMON, CONFIG = "common.pt", "metadata.json"
AFTER = "tokenizer/"


def find(view: View) -> Found:
    """Finds the folders that are called as Megatron calls them and have what it writes, and which of them its file names."""
    folders = [folder for folder in view.folders() if FOLDER.fullmatch(leaf(folder)) and _is_one(view, folder)]
    homes = sorted({posixpath.dirname(folder) for folder in folders})
    marked = [home for home in homes if view.has(join(home, MARKER))]
    home = max(marked, key=lambda one: (view.changed_s([join(one, MARKER)]), one), default=None)
    found = [_judge(view, folder) for folder in folders]
    if home is None:
        return Found(found)
    name = _read_name(view, join(home, MARKER))
    if not name:
        return Found(found, blocked=f"{join(home, MARKER)} holds no number yet")
    chosen = join(home, name)
    return Found(found, chosen=chosen, blocked="" if chosen in folders else f"{chosen} is not here")


def _is_one(view: View, folder: str) -> bool:
    return (
        any(SIGN.fullmatch(leaf(one)) for one in view.inner(folder))
        or dcp.is_one(view, folder)
        or COMMON in view.names(folder)
    )


def _read_name(view: View, path: str) -> str:
    """Returns the name of the folder that the file means; empty where it is no number."""
    text = view.text(path, 64) or ""
    if text == "release":
        return text
    return f"iter_{int(text):07d}" if text.isascii() and text.isdigit() and len(text) <= 18 else ""


def _judge(view: View, folder: str) -> Candidate:
    marker, number = join(posixpath.dirname(folder), MARKER), split_number(leaf(folder))[1]
    named, files, needs = _read_name(view, marker), view.under(folder), frozenset[str]()
    tokenizer = join(folder, AFTER)
    if not named:
        problem = f"{marker} is not there yet"
    else:
        own = frozenset(path for path in files if not path.startswith(tokenizer))
        inner, needs = dcp.find_problem(view, folder) if dcp.is_one(view, folder) else ("", needs)
        problem = inner or view.find_newer(own, marker) or view.find_torn(own) or view.find_removal(folder)
        problem = problem or (f"{folder} has no {CONFIG} yet" if needs and not view.has(join(folder, CONFIG)) else "")
    mine = frozenset({marker}) if leaf(folder) == named else frozenset()
    return build_candidate(view, folder, files | mine, number=max(number, 0), step=number, needs=needs,
        problem=problem, spare=True,
    )  # fmt: skip

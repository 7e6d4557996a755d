"""Recognises what Accelerate's `save_state` writes by the random_states of the main process.

accelerate 1.15.0, accelerator.py, `save_state`, and checkpointing.py, `save_accelerator_state`: into its folder, in place and in this
order, the main process writes model.safetensors, optimizer.bin, scheduler.bin, sampler.bin, scaler.pt, random_states_<rank>.pkl, and then
custom_checkpoint_<n>.pkl for each registered object; every other process its random_states, and with FSDP or DeepSpeed its shards before
(utils/fsdp_utils.py). No barrier is after it, and nothing marks the end: a checkpoint is whole that has what the one before had, or rests.
With automatic naming the folder is `checkpoints/checkpoint_<n>`, and the oldest are removed (shutil.rmtree) before the next one is
written, with total_limit=1 the only one. A training goes on from the highest number in the folder's name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container

from agent.layouts.candidates import Candidate, Found, build_candidate, leaf
from agent.layouts.transformers import MARKER as OF_TRAINER
from agent.layouts.transformers import find_inner
from agent.layouts.view import View, ancestors, join, lies_in, split_number

MARKER = "random_states_0.pkl"
SIGN = re.compile(r"random_states_\d{1,9}\.pkl")
BEFORE = re.compile(
    r"(model|pytorch_model|optimizer|scheduler|sampler|dl_state_dict|scaler)(_\d+|-\d+-of-\d+)?\.(safetensors|bin|pt)"
)
"""Files that the main process writes before its random_states."""


def find(view: View) -> Found:
    """Finds the folders with random_states, and those that are numbered like them."""
    folders = [folder for folder in view.folders() if _is_one(view.names(folder))]
    inside = set(folders)
    rows = {split_number(folder)[0] for folder in folders if split_number(folder)[1] >= 0}
    alike = [
        one
        for one in view.folders()
        if split_number(one)[1] >= 0 and split_number(one)[0] in rows and one not in folders
    ]
    above = {one for folder in folders for one in (folder, *ancestors(folder))}
    return Found([_judge(view, folder, above) for folder in (*folders, *alike) if not lies_in(folder, inside)])


def _is_one(names: Collection[str]) -> bool:
    return OF_TRAINER not in names and any(SIGN.fullmatch(name) for name in names)


def _judge(view: View, folder: str, above: Container[str]) -> Candidate:
    """Returns the checkpoint in a folder; other checkpoints, or the folders with them, which `above` has, are no part of it."""
    marker, number = join(folder, MARKER), split_number(leaf(folder))[1]
    inner = [one for one in view.inner(folder) if one not in above]
    below = [part for one in inner for part in (one, *view.below(one))]
    files = frozenset(join(one, name) for one in (folder, *below) for name in view.names(one))
    needs = frozenset[str]()
    if not view.has(marker):
        problem = f"{folder or 'the folder'} has no {MARKER} yet"
    else:
        problem, needs = find_inner(view, folder, below)
        own = (join(folder, name) for name in view.names(folder) if BEFORE.fullmatch(name))
        problem = problem or view.find_newer(own, marker) or view.find_torn(files) or view.find_removal(folder)
    return build_candidate(view, folder, files, number=number, step=number, needs=needs, problem=problem, settled=False
    )  # fmt: skip

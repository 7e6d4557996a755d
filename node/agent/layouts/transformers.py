"""Recognises the checkpoints of transformers' Trainer by the trainer_state.json in each.

transformers 5.24.0, trainer.py, `_save_checkpoint`: into `checkpoint-<step>/`, in place and in this order, the process of rank 0 writes
the model (`save_model`: weights, tokenizer, training_args.bin last), optimizer.pt, scheduler.pt, scaler.pt, its rng_state,
trainer_state.json, and then removes old folders (`rotate_checkpoints`, shutil.rmtree, never the newest). Every other process writes
rng_state_<rank>.pth, with DeepSpeed and FSDP its shards as well, with no barrier before or after: it may come later than
trainer_state.json. 4.36 to 4.37 wrote into `tmp-checkpoint-<step>/` and renamed that. trainer_callback.py, `save_to_json`: sorted keys
with an indent, in one piece. A training goes on from the highest number (trainer_utils.py, `get_last_checkpoint`), which `\\d` and int()
read in any script.

trainer_jit_checkpoint.py (`enable_jit_checkpoint`): on SIGTERM each process writes checkpoint-is-incomplete.txt, saves as above, and
removes that file: the one case in which something goes from the newest checkpoint.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from agent.layouts import dcp, deepspeed
from agent.layouts.candidates import Candidate, Found, build_candidate, leaf
from agent.layouts.view import View, join

MARKER = "trainer_state.json"
INCOMPLETE = "checkpoint-is-incomplete.txt"
FOLDER = re.compile(r"checkpoint-(\d{1,200})")
TEMPORARY = re.compile(r"tmp-checkpoint-\d{1,200}")
OF_OTHERS = re.compile(r"rng_state_\d+\.pth")
BEFORE = re.compile(
    r"(pytorch_model|model|adapter_model|optimizer|scheduler|scaler|training_args|rng_state)\.\w+|(pytorch_)?model\W.*"
)
"""Files that the process of rank 0 writes before its trainer_state.json. Callbacks may add others after it (`on_save`)."""
SIGNS = re.compile(r"rng_state(_\d+)?\.pth|training_args\.bin")
STEP = re.compile(rb'"global_step"\s*:\s*(\d{1,18})\b')
ENDS = 64 * 1024


def find(view: View) -> Found:
    """Finds the folders that are called as the Trainer calls them, where one has what only the Trainer writes."""
    folders = [folder for folder in view.folders() if FOLDER.fullmatch(leaf(folder))]
    temporary = [folder for folder in view.folders() if TEMPORARY.fullmatch(leaf(folder))]
    if not any(_is_sure(view, folder) for folder in (*folders, *temporary)):
        return Found()
    newest = {posixpath.dirname(folder): folder for folder in sorted(folders, key=_number)}
    judged = [_judge(view, folder, is_newest=folder in newest.values()) for folder in folders]
    return Found([*judged, *(_unfit(view, folder) for folder in temporary)])


def read_step(view: View, path: str) -> int:
    """Returns the step in a trainer_state.json that is all there; -1 where it is not."""
    size = view.size(path)
    if (
        size <= 0
        or view.read(path, 0, 1) != b"{"
        or not view.read(path, max(0, size - 16), 16).rstrip().endswith(b"\n}")
    ):
        return -1
    found = STEP.search(view.read(path, 0, ENDS)) or STEP.search(view.read(path, max(0, size - ENDS), ENDS))
    return int(found[1]) if found else -1


def find_inner(view: View, folder: str, below: Sequence[str]) -> tuple[str, frozenset[str]]:
    """Returns why the shards of DeepSpeed or of FSDP in the folders below a checkpoint are not whole, empty where they are or there are
    none, and the paths that they need on some rank."""
    needs = frozenset[str]()
    for one in below:
        if dcp.is_one(view, one):
            problem, listed = dcp.find_problem(view, one)
            needs |= listed
            if problem:
                return problem, needs
    tags = [one for one in below if deepspeed.is_one(view, one)]
    return (deepspeed.find_problem(view, folder, tags) if tags else ""), needs


def _is_sure(view: View, folder: str) -> bool:
    return any(SIGNS.fullmatch(name) for name in view.names(folder)) or read_step(view, join(folder, MARKER)) >= 0


def _number(folder: str) -> int:
    found = FOLDER.fullmatch(leaf(folder))
    return int(found[1]) if found else -1


def _judge(view: View, folder: str, *, is_newest: bool) -> Candidate:
    number, removal = _number(folder), view.find_removal(folder)
    files, marker = view.under(folder), join(folder, MARKER)
    step = read_step(view, marker)
    others = any(OF_OTHERS.fullmatch(name) for name in view.names(folder))
    needs = frozenset[str]()
    if view.has(join(folder, INCOMPLETE)):
        problem = f"{join(folder, INCOMPLETE)} is there"
    elif step < 0:
        problem = f"{folder} has no {MARKER} yet" if not view.has(marker) else f"{marker} is not all there"
    else:
        inner, needs = find_inner(view, folder, view.below(folder))
        own = (join(folder, name) for name in view.names(folder) if BEFORE.fullmatch(name))
        problem = inner or view.find_newer(own, marker) or view.find_torn(files) or ("" if is_newest else removal)
    return build_candidate(view, folder, files, number=number, step=step if step >= 0 else number,
        needs=needs, problem=problem, settled=not (others or needs or removal or view.find_newer(files, marker)), ordered=True,
        removal=removal if is_newest else "", spare=step >= 0,
    )  # fmt: skip


def _unfit(view: View, folder: str) -> Candidate:
    files = view.under(folder)
    return build_candidate(view, folder, files, number=10**300, problem=f"{folder} is still written")

"""Recognises checkpoints of torch.distributed.checkpoint, FSDP's sharded ones among them, by their `.metadata`.

torch 2.13.0, torch/distributed/checkpoint/filesystem.py: each process writes `__<rank>_<n>.distcp` and flushes it
(`_write_files_from_queue`); once all have (`_DistWrapper.all_reduce` of `write_data` in state_dict_saver.py) the coordinator writes
`.metadata.tmp` and renames it (`_FileSystemWriter.finish`). A folder that is saved to again is overwritten shard by shard, beside the old
`.metadata`. It lists each shard with offsets and lengths, so it says how long each file has to be. Nothing is rotated. What a trainer puts
beside the shards comes before or after.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from agent.layouts.candidates import Candidate, Found, build_candidate, leaf
from agent.layouts.view import View, ancestors, join, split_number

MARKER = ".metadata"
PART = re.compile(r"(pytorch_model_fsdp|model|optimizer)_\d+")
"""Folders of Accelerate for the first, second, ... of several models: the number is no step."""
SHARD = re.compile(r"__\d{1,9}_\d{1,9}\.distcp")


def find(view: View) -> Found:
    """Finds the folders with a marker or with shards, and those that are numbered like them. Several that lie in one numbered folder, such
    as a model and its optimizer, are one checkpoint."""
    parts = [folder for folder in view.folders() if is_one(view, folder)]
    units = defaultdict[str, list[str]](list)
    for part in parts:
        units[_find_unit(part)].append(part)
    above = {one for unit in units for one in ancestors(unit)}
    rows = {split_number(unit)[0] for unit in units if _is_numbered(unit)}
    alike = (one for one in view.folders() if _is_numbered(one) and split_number(one)[0] in rows)
    return Found([
        *(_judge(view, unit, inner) for unit, inner in sorted(units.items())),
        *(_judge(view, unit, [unit]) for unit in alike if unit not in units and unit not in above),
    ])  # fmt: skip


def _find_unit(folder: str) -> str:
    """Returns the innermost numbered folder that a folder is, or lies in; the folder itself where there is none."""
    return next((one for one in (folder, *ancestors(folder)) if _is_numbered(one)), folder)


def _is_numbered(folder: str) -> bool:
    return split_number(folder)[1] >= 0 and not PART.fullmatch(leaf(folder))


def is_one(view: View, folder: str) -> bool:
    """Whether a folder has the marker of a checkpoint, or a shard of one."""
    return any(SHARD.fullmatch(name) for name in view.names(folder)) or view.shards(join(folder, MARKER)) is not None


def find_problem(view: View, folder: str) -> tuple[str, frozenset[str]]:
    """Returns why what lies in a folder is not a whole checkpoint, empty where it is, and the paths that it needs on some rank."""
    listed = view.shards(join(folder, MARKER))
    if listed is None:
        return f"{folder or 'the folder'} has no {MARKER} yet", frozenset()
    needs = frozenset(join(folder, name) for name in listed.least)
    here = sorted(path for path in needs if view.has(path))
    short = next(
        (path for path in here if view.size(path) < listed.least[path[len(folder) + 1 if folder else 0 :]]), ""
    )
    problem = (
        (f"{short} is shorter than {MARKER} says" if short else "")
        or view.find_newer(
            (join(folder, one) for one in view.names(folder) if SHARD.fullmatch(one)), join(folder, MARKER)
        )
        or view.find_torn(here)
    )
    return problem, needs


def _judge(view: View, unit: str, parts: Sequence[str]) -> Candidate:
    """Returns the checkpoint in a folder, whose `parts` have a marker each."""
    number = split_number(unit)[1]
    judged = [find_problem(view, part) for part in parts]
    needs = frozenset(path for _, listed in judged for path in listed)
    files = (
        view.under(unit)
        if unit
        else frozenset(name for name in view.names("") if name == MARKER or SHARD.fullmatch(name))
    )
    problem = (
        next((problem for problem, _ in judged if problem), "") or view.find_removal(unit) or view.find_torn(files)
    )
    return build_candidate(view, unit, files, number=number, step=number, needs=needs, problem=problem, settled=False
    )  # fmt: skip

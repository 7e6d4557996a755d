"""Recognises Orbax's checkpoints by the folder's final name, or by its commit_success.txt.

orbax-checkpoint 0.12.8, _src/path/atomicity.py: a checkpoint is written in `<name>.orbax-checkpoint-tmp[-<time>]`, its
_CHECKPOINT_METADATA gets the time of the commit, and the folder is renamed (`AtomicRenameTemporaryPath.finalize`). Where renaming is not
atomic, as in object storages, commit_success.txt is written last (`CommitFileTemporaryPath`). Old steps are removed after it
(path/deleter.py). Only the primary host renames: hosts with disks of their own each have to be one
(MultiprocessingOptions(primary_host=None)). A training goes on from the highest step; names are [prefix_][0...]step (_src/path/step.py).
"""

from __future__ import annotations

from agent.layouts.candidates import Candidate, Found, build_candidate, leaf
from agent.layouts.view import View, lies_in, split_number

TEMPORARY = ".orbax-checkpoint-tmp"
SIGNS = frozenset({"_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt"})
SURE = frozenset({"_CHECKPOINT_METADATA", "commit_success.txt"})


def find(view: View) -> Found:
    """Finds the outermost folders with what Orbax writes."""
    folders = {folder for folder in view.folders() if folder and (TEMPORARY in leaf(folder) or _is_one(view, folder))}
    return Found([_judge(view, folder) for folder in sorted(folders) if not lies_in(folder, folders)])


def _is_one(view: View, folder: str) -> bool:
    """Whether a folder has the metadata of a step, or of an item where it is saved without one."""
    names = set(view.names(folder))
    items = (set(view.names(one)) for one in view.inner(folder))
    return bool(names & SURE) or len(names & SIGNS) > 1 or any(len(inner & SIGNS) > 1 for inner in items)


def _judge(view: View, folder: str) -> Candidate:
    files, number = view.under(folder), split_number(leaf(folder))[1]
    problem = f"{folder} is not renamed yet" if TEMPORARY in folder else view.find_torn(files)
    return build_candidate(view, folder, files, number=max(number, 0), step=number, problem=problem)

"""Recognises Keras' checkpoints: a file `.keras` or `.weights.h5` each, or the folder of BackupAndRestore.

keras 3.15.1. saving/saving_lib.py, `save_model` and `save_weights_only`: a file is written in place, an archive's directory and the end
that HDF5's superblock says are written last. callbacks/model_checkpoint.py: nothing is removed; a name without placeholders is used again.
callbacks/backup_and_restore.py, `_save_model`: both files are copied to `.bkp`, latest.weights.h5 is written, then training_metadata.json.
A training loads the file that its code names, mostly the youngest.
"""

from __future__ import annotations

import re

from agent.layouts.candidates import Candidate, Found, build_candidate
from agent.layouts.view import View, join

ENDINGS = (".keras", ".weights.h5")
NAMED = (*ENDINGS, ".h5")
BACKUP, METADATA = "latest.weights.h5", "training_metadata.json"
NUMBER = re.compile(r"\d{1,18}")


def find(view: View) -> Found:
    """Finds the files and folders that are called as Keras calls them."""
    return _find(view, ENDINGS)


def find_named(view: View) -> Found:
    """Finds those of a request that says that its checkpoints are Keras': each `.h5` is one."""
    return _find(view, NAMED)


def _find(view: View, endings: tuple[str, ...]) -> Found:
    backups = [folder for folder in view.folders() if BACKUP in view.names(folder)]
    files = [
        join(folder, name)
        for folder in view.folders()
        for name in view.names(folder)
        if name.endswith(endings) and not (name == BACKUP and folder in backups)
    ]
    return Found([*(_judge_backup(view, folder) for folder in backups), *(_judge_file(view, path) for path in files)])


def _judge_backup(view: View, folder: str) -> Candidate:
    weights, metadata = join(folder, BACKUP), join(folder, METADATA)
    files = frozenset(path for path in (weights, metadata) if view.has(path))
    problem = view.find_torn([weights, metadata]) or view.find_newer([weights], metadata)
    return build_candidate(view, folder, files, problem=problem)


def _judge_file(view: View, path: str) -> Candidate:
    numbers = NUMBER.findall(path.removesuffix(".weights.h5").removesuffix(".h5").removesuffix(".keras"))
    number = int(numbers[0]) if numbers else -1
    return build_candidate(view, path, frozenset({path}), dated=[path], number=number, step=-1, problem=view.find_torn([path])
    )  # fmt: skip

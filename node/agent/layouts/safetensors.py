"""Recognises models in safetensors by their index, which lists the files: only where the request says so, because a trainer that saves its
optimizer itself may do that after the model.

transformers 5.24.0, modeling_utils.py, `save_pretrained`: shards of an earlier save that are not of this one are removed, each
`model-<n>-of-<n>.safetensors` is written in place, then model.safetensors.index.json, in one piece with an indent; a small model is one
file without an index. huggingface_hub 2.4.0, serialization/_torch.py, `save_torch_state_dict`, does the same.
"""

from __future__ import annotations

import re

from agent.layouts.candidates import Candidate, Found, build_candidate
from agent.layouts.view import View, join, split_number

ENDING, INDEX = ".safetensors", ".safetensors.index.json"
MOST_INDEX, MOST_FILES = 16 * 1024 * 1024, 10_000
LISTED = re.compile(rb':\s*"([^"\\/]{1,200}\.safetensors)"')


def find_named(view: View) -> Found:
    """Finds the folders with files in safetensors."""
    folders = [folder for folder in view.folders() if any(name.endswith(ENDING) for name in view.names(folder))]
    rows = {split_number(folder)[0] for folder in folders if split_number(folder)[1] >= 0}
    alike = [
        one
        for one in view.folders()
        if split_number(one)[1] >= 0 and split_number(one)[0] in rows and one not in folders
    ]
    return Found([_judge(view, folder) for folder in (*folders, *alike)])


def _judge(view: View, folder: str) -> Candidate:
    files = view.under(folder) if folder else frozenset(view.names(""))
    number = split_number(folder)[1]
    indices = [join(folder, name) for name in view.names(folder) if name.endswith(INDEX)]
    shards = [join(folder, name) for name in view.names(folder) if re.search(r"-\d{5}-of-\d{5}\.safetensors$", name)]
    problem = f"{folder} has no index yet" if shards and not indices else ""
    needs = frozenset[str]()
    for index in indices:
        listed = _read_index(view, folder, index)
        needs |= listed
        problem = problem or ("" if listed else f"{index} is not all there") or view.find_newer(listed, index)
    missing = next((path for path in sorted(needs) if not view.has(path)), "")
    problem = (
        problem or (f"{missing} is not here" if missing else "") or view.find_torn(files) or view.find_removal(folder)
    )
    return build_candidate(view, folder, files, number=number, step=number, problem=problem, settled=False)


def _read_index(view: View, folder: str, index: str) -> frozenset[str]:
    """Returns the paths of the files that an index lists; none where it is not all there."""
    size = view.size(index)
    if (
        not 0 < size <= MOST_INDEX
        or view.read(index, 0, 1) != b"{"
        or not view.read(index, max(0, size - 16), 16).rstrip().endswith(b"}")
    ):
        return frozenset()
    if view.is_whole(index) is False:
        return frozenset()
    return frozenset(
        join(folder, name.decode("utf-8", "replace")) for name in LISTED.findall(view.read(index, 0, size))
    )

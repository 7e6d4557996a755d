"""Recognises Lightning's checkpoints: a file `*.ckpt`, or a folder of that name with FSDP's or DeepSpeed's shards in it.

lightning 2.6.6. fabric/utilities/cloud_io.py, `_atomic_save`: a file is written elsewhere and moved to its place by fsspec, in one rename,
or from another file system by a copy. pytorch/strategies/fsdp.py, `save_checkpoint`: into the folder, in place, first what
torch.distributed.checkpoint writes, then rank 0's meta.pt; strategies/deepspeed.py: DeepSpeed's own with the tag `checkpoint`.
pytorch/callbacks/model_checkpoint.py: the new one is saved, then the old one removed, then `last.ckpt` is saved as well, or made again as
a link to the new one (`_link_checkpoint`). What is saved is a dictionary that begins with epoch, global_step and pytorch-lightning_version
(`dump_checkpoint`). With ckpt_path="last" a training goes on from the youngest `last*.ckpt`, otherwise from a file that its code names: by
time, not by number.
"""

from __future__ import annotations

import re

from agent.layouts import dcp, deepspeed
from agent.layouts.candidates import GIVEN_UP_S, Candidate, Found, build_candidate, leaf
from agent.layouts.pickles import find_number
from agent.layouts.view import View, join, lies_in

ENDING, META = ".ckpt", "meta.pt"
SIGN = b"pytorch-lightning_version"
HEAD = 4096
"""Bytes of an archive in which its pickle begins: it is the first entry, stored as it is."""
NUMBERS = re.compile(r"step=(\d{1,18})"), re.compile(r"hpc_ckpt_(\d{1,18})"), re.compile(r"epoch=(\d{1,18})")
LAST = re.compile(r"last(-v\d+)?\.ckpt")


def find(view: View) -> Found:
    """Finds the files and folders of Lightning."""
    return _find(view, named=False)


def find_named(view: View) -> Found:
    """Finds those of a request that says that its checkpoints are Lightning's: each `*.ckpt` is one."""
    return _find(view, named=True)


def _find(view: View, *, named: bool) -> Found:
    paths = [join(folder, name) for folder in view.folders() for name in view.names(folder) if name.endswith(ENDING)]
    files = [path for path in paths if not view.is_link(path)]
    folders = [
        folder for folder in view.folders() if folder.endswith(ENDING) and (named or _is_folder_sure(view, folder))
    ]
    sure = named or any(SIGN in view.read(path, 0, HEAD) for path in files)
    if not sure and not folders:
        return Found()
    links: dict[str, list[str]] = {}
    for path in paths:
        if view.is_link(path):
            links.setdefault(view.resolve(path), []).append(path)
    found = [_judge_file(view, path, links.get(path, [])) for path in files if not lies_in(path, folders)]
    found += [
        _judge_folder(view, folder, links.get(folder, [])) for folder in sorted(folders) if not lies_in(folder, folders)
    ]
    return Found(found, blocked=_find_broken(view, links, {one.name: one for one in found}))


def _is_folder_sure(view: View, folder: str) -> bool:
    """Whether a folder has shards and is of Lightning: by its name, by meta.pt beside them, or by the tag `checkpoint`."""
    ours = META in view.names(folder) or _read_number(folder) >= 0 or LAST.fullmatch(leaf(folder)) is not None
    return (ours and dcp.is_one(view, folder)) or deepspeed.is_one(view, join(folder, "checkpoint"))


def _find_broken(view: View, links: dict[str, list[str]], found: dict[str, Candidate]) -> str:
    """Returns why a `last.ckpt` leads to nothing that can be gone on from; empty where each does. One that leads nowhere for a long time is
    as its trainer left it: between its removal and the next one there are moments."""
    for target, paths in links.items():
        last = next((path for path in paths if LAST.fullmatch(leaf(path))), "")
        if last and target in found and found[target].problem:
            return f"{last} leads to what is not all there"
        if last and target not in found and not view.rests([last], GIVEN_UP_S):
            return f"{last} leads to what is not there"
    return ""


def _read_number(name: str) -> int:
    """Returns the step or epoch in a name; -1 for a name that is used again, as last.ckpt is."""
    return next((int(found[1]) for number in NUMBERS if (found := number.search(leaf(name)))), -1)


def _judge_file(view: View, path: str, links: list[str]) -> Candidate:
    files = frozenset((path, *links))
    step = find_number(_cut_entry(view.read(path, 0, HEAD)), "global_step")
    return build_candidate(view, path, files, dated=[path], number=_read_number(path), step=step if step >= 0 else _read_number(path),
        problem=view.find_torn([path]),
    )  # fmt: skip


def _cut_entry(head: bytes) -> bytes:
    """Returns the bytes of an archive's first entry."""
    return head[30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little") :]


def _judge_folder(view: View, folder: str, links: list[str]) -> Candidate:
    files, needs = view.under(folder), frozenset[str]()
    tag, meta = join(folder, "checkpoint"), join(folder, META)
    if deepspeed.is_one(view, tag):
        problem = deepspeed.find_problem(view, folder, [tag])
    else:
        problem, needs = dcp.find_problem(view, folder)
        marker = join(folder, dcp.MARKER)
        if not problem and view.written_ns(meta) < view.written_ns(marker):
            problem = f"{folder} has no new {META} yet"
        problem = problem or view.find_torn(files)
    number = _read_number(folder)
    return build_candidate(view, folder, files | frozenset(links), number=number, step=number, needs=needs,
        problem=problem or view.find_removal(folder), settled=False,
    )  # fmt: skip

"""Ranks whose trainers save in the layout of a framework and name nothing, each in a folder of its own."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.node.folders import Rank

FOLDERS = {"transformers": "checkpoint-{}", "dcp": "step-{}", "deepspeed": "global_step{}"}


class Write(NamedTuple):
    """One file of a checkpoint."""

    rank: int
    path: str
    content: bytes


def put(rank: Rank, path: str, content: bytes | str) -> None:
    """Writes a file in place, as most frameworks do."""
    file = rank.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    rank._date(file)
    for folder in file.relative_to(rank.path).parents:
        rank._date(rank.path / folder)


def as_torch(text: str) -> bytes:
    """What torch.save makes of a text, as far as its container goes."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr(zipfile.ZipInfo("archive/data.pkl"), text)
    return into.getvalue()


def metadata(*shards: str) -> bytes:
    """What torch.distributed.checkpoint writes last, as far as a reader of names sees it."""
    places = {f"weight-{number}": name for number, name in enumerate(shards)}
    return pickle.dumps({"module": "torch.distributed.checkpoint.metadata", "storage_data": places})


def list_transformers(ranks: int, step: int) -> list[Write]:
    """The Trainer of transformers under DDP: rank 0 writes nearly all of it, each other rank its random state, later than the marker."""
    folder = f"checkpoint-{step}"
    state = json.dumps({"epoch": 1, "global_step": step}, indent=2, sort_keys=True) + "\n"
    return [
        Write(0, f"{folder}/pytorch_model.bin", as_torch(f"weights of {step}")),
        Write(0, f"{folder}/training_args.bin", as_torch("arguments")),
        Write(0, f"{folder}/optimizer.pt", as_torch(f"moments of {step}")),
        Write(0, f"{folder}/rng_state_0.pth", as_torch(f"chance 0 of {step}")),
        Write(0, f"{folder}/trainer_state.json", state.encode()),
        *(Write(rank, f"{folder}/rng_state_{rank}.pth", as_torch(f"chance of {step}")) for rank in range(1, ranks)),
    ]


def list_dcp(ranks: int, step: int) -> list[Write]:
    """torch.distributed.checkpoint: every rank its shard, then rank 0 the metadata that lists them."""
    names = [f"__{rank}_0.distcp" for rank in range(ranks)]
    return [
        *(Write(rank, f"step-{step}/{name}", f"shard {rank} of {step}".encode()) for rank, name in enumerate(names)),
        Write(0, f"step-{step}/.metadata", metadata(*names)),
    ]


def list_deepspeed(ranks: int, step: int) -> list[Write]:
    """DeepSpeed with ZeRO: every rank its states, then rank 0 the name of the newest."""
    folder = f"global_step{step}"
    states = f"{folder}/zero_pp_rank_{{}}_mp_rank_00_optim_states.pt"
    return [
        Write(0, f"{folder}/mp_rank_00_model_states.pt", as_torch(f"weights of {step}")),
        *(Write(rank, states.format(rank), as_torch(f"states {rank} of {step}")) for rank in range(ranks)),
        Write(0, "latest", folder.encode()),
    ]


LAYOUTS: dict[str, Callable[[int, int], list[Write]]] = {
    "transformers": list_transformers,
    "dcp": list_dcp,
    "deepspeed": list_deepspeed,
}


def save(layout: str, every: Sequence[Rank], step: int, upto: int = 99) -> None:
    """Writes a checkpoint, or the first files of it."""
    for rank, path, content in LAYOUTS[layout](len(every), step)[:upto]:
        put(every[rank], path, content)


def remove(layout: str, every: Sequence[Rank], step: int) -> None:
    """Removes a checkpoint, as trainers do with old ones."""
    for rank in every:
        shutil.rmtree(rank.path / FOLDERS[layout].format(step), ignore_errors=True)
        rank._date(rank.path)


def read_bytes(rank: Rank, within: str = ".") -> dict[str, bytes]:
    """What lies in a rank's folder, or in a folder of that."""
    inside = (rank.path / within).rglob("*")
    return {str(file.relative_to(rank.path)): file.read_bytes() for file in inside if file.is_file()}


def written(every: Sequence[Rank], step: int, layout: str) -> dict[str, bytes]:
    """What all ranks together have of a checkpoint."""
    folder = FOLDERS[layout].format(step)
    return {path: content for rank in every for path, content in read_bytes(rank, folder).items()}


def restored(root: Path, every: Sequence[Rank], attempt: int = 2) -> list[Rank]:
    """The same ranks in the next attempt, on new machines."""
    scope = every[0].place.job.checkpoint_scope
    again = [
        Rank(root, one.s3, one.rank, attempt, nodes=len(every), scope=scope, clock=every[0].clock) for one in every
    ]
    for one in again:
        one.restore()
    return again


def newest_closed(every: Sequence[Rank]) -> int:
    """The step that any rank knows to be closed: the one that answered last closes a set."""
    return max(rank.checkpoints.closed_step for rank in every)

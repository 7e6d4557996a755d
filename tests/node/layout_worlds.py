"""Two ranks whose trainers save in the layout of a framework and name nothing, each in a folder of its own."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.node.folders import Rank


def put(rank: Rank, path: str, content: bytes | str) -> None:
    """Writes a file in place, as most frameworks do."""
    file = rank.path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    rank._date(file)
    for folder in file.relative_to(rank.path).parents:
        rank._date(rank.path / folder)


def metadata(*shards: str) -> bytes:
    """What torch.distributed.checkpoint writes last, as far as a reader of names sees it."""
    return pickle.dumps(
        {
            "module": "torch.distributed.checkpoint.metadata",
            "storage_data": {f"weight-{number}": name for number, name in enumerate(shards)},
        }
    )


def save_transformers(every: Sequence[Rank], step: int, upto: int = 99) -> None:
    """The Trainer of transformers under DDP: rank 0 writes nearly all of it, each other rank its random state, later than the marker."""
    state = json.dumps({"epoch": 1, "global_step": step}, indent=2, sort_keys=True) + "\n"
    first, others = every[0], every[1:]
    writes: list[Callable[[], None]] = [
        lambda: put(first, f"checkpoint-{step}/pytorch_model.bin", f"weights of {step}"),
        lambda: put(first, f"checkpoint-{step}/training_args.bin", "arguments"),
        lambda: put(first, f"checkpoint-{step}/optimizer.pt", f"moments of {step}"),
        lambda: put(first, f"checkpoint-{step}/rng_state_0.pth", f"chance 0 of {step}"),
        lambda: put(first, f"checkpoint-{step}/trainer_state.json", state),
        *(
            lambda other=other: put(other, f"checkpoint-{step}/rng_state_{other.rank}.pth", f"chance of {step}")  # type: ignore[misc]
            for other in others
        ),
    ]
    for write in writes[:upto]:
        write()


def save_dcp(every: Sequence[Rank], step: int, upto: int = 99, listed: Sequence[str] | None = None) -> None:
    """torch.distributed.checkpoint: every rank its shard, then rank 0 the metadata that lists them."""
    names = [f"__{rank.rank}_0.distcp" for rank in every]
    writes: list[Callable[[], None]] = [
        *(
            lambda rank=rank, name=name: put(rank, f"step-{step}/{name}", f"shard {rank.rank} of {step}")  # type: ignore[misc]
            for rank, name in zip(every, names, strict=True)
        ),
        lambda: put(every[0], f"step-{step}/.metadata", metadata(*(listed or names))),
    ]
    for write in writes[:upto]:
        write()


def save_deepspeed(every: Sequence[Rank], step: int, upto: int = 99) -> None:
    """DeepSpeed with ZeRO: every rank its states, then rank 0 the name of the newest."""
    folder = f"global_step{step}"
    writes: list[Callable[[], None]] = [
        lambda: put(every[0], f"{folder}/mp_rank_00_model_states.pt", f"weights of {step}"),
        *(
            lambda rank=rank: put(  # type: ignore[misc]
                rank, f"{folder}/zero_pp_rank_{rank.rank}_mp_rank_00_optim_states.pt", f"states {rank.rank} of {step}"
            )
            for rank in every
        ),
        lambda: put(every[0], "latest", folder),
    ]
    for write in writes[:upto]:
        write()


LAYOUTS: dict[str, Callable[..., None]] = {
    "transformers": save_transformers,
    "dcp": save_dcp,
    "deepspeed": save_deepspeed,
}
FOLDERS = {"transformers": "checkpoint-{}", "dcp": "step-{}", "deepspeed": "global_step{}"}
WRITES = {"transformers": 6, "dcp": 3, "deepspeed": 4}
"""Writes of one checkpoint of two ranks."""


def everything(every: Sequence[Rank], step: int, layout: str) -> dict[str, str]:
    """What all ranks together have of a checkpoint."""
    folder = FOLDERS[layout].format(step)
    found: dict[str, str] = {}
    for rank in every:
        for file in (rank.path / folder).rglob("*"):
            found[str(file.relative_to(rank.path))] = file.read_text(errors="replace")
    return found


def restored(root: Path, every: Sequence[Rank], attempt: int = 2) -> list[Rank]:
    """The same ranks in the next attempt, on new machines."""
    again = [
        Rank(
            root,
            one.s3,
            one.rank,
            attempt,
            nodes=len(every),
            scope=one.place.job.checkpoint_scope,
            clock=every[0].clock,
        )
        for one in every
    ]
    for one in again:
        one.restore()
    return again


def newest_closed(every: Sequence[Rank]) -> int:
    """The step that any rank knows to be closed: the one that answered last closes a set."""
    return max(rank.checkpoints.closed_step for rank in every)

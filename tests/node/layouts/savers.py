"""Savers that do what the frameworks do, in their order; each module of `agent.layouts` names the functions that this is taken from."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from random import Random

from tests.node.layouts import contents
from tests.node.layouts.disk import Disk
from tests.node.layouts.processes import Save, Saver, Steps, barrier, together

MEGATRON_FILES = ("distrib_optim.pt", "model_optim_rng.pt")


def in_place(disk: Disk, files: Iterable[tuple[str, bytes]]) -> Steps:
    """Writes files one after the other."""
    for path, data in files:
        yield from disk.write(path, data)


def dcp_process(disk: Disk, folder: str, rank: int, shards: dict[str, bytes], marker: bytes) -> Steps:
    """Writes one process's shards; the first process, once all have, the marker."""
    yield from disk.make(folder)
    yield from in_place(disk, [(path, data) for path, data in shards.items() if f"/__{rank}_" in f"/{path}"])
    yield from barrier()
    if rank == 0:
        yield from disk.replace(f"{folder}/.metadata" if folder else ".metadata", marker, ".tmp")
    yield from barrier()


def dcp_files(random: Random, folder: str, ranks: int = 2) -> tuple[dict[str, bytes], bytes]:
    """Returns the shards of this node's processes and the marker, which also lists those of another node."""
    pieces = {
        f"__{rank}_{number}.distcp": [contents.torch_saved(random) for _ in range(random.randint(1, 3))]
        for rank in range(ranks + 1)
        for number in range(2)
    }
    marker = contents.dcp_metadata({name: [len(one) for one in parts] for name, parts in pieces.items()})
    here = {name: parts for name, parts in pieces.items() if not name.startswith(f"__{ranks}_")}
    return {f"{folder}/{name}" if folder else name: b"".join(parts) for name, parts in here.items()}, marker


def old_folders(disk: Disk, prefix: str, keep: int) -> list[str]:
    """Returns the folders with a prefix beyond the newest `keep`."""
    numbers = sorted(
        int(one[len(prefix) :]) for one in disk.folders if one.startswith(prefix) and one[len(prefix) :].isdigit()
    )
    folders = [f"{prefix}{number}" for number in numbers]
    return folders[: max(0, len(folders) - keep)]


def trainer(
    *, processes: int = 1, inner: str = "", keep: int = 2, temporary: bool = False, on_signal: bool = False
) -> Saver:
    """The Trainer of transformers; `on_signal`: as it saves on SIGTERM."""

    def save(disk: Disk, step: int) -> Save:
        random = disk.random
        final, incomplete = f"checkpoint-{step}", f"checkpoint-{step}/checkpoint-is-incomplete.txt"
        folder = f"tmp-{final}" if temporary else final
        shards = [f"model-{one:05}-of-00003.safetensors" for one in (1, 2, 3)]
        model = {f"{folder}/{name}": contents.safetensors_saved(random) for name in shards}
        model[f"{folder}/model.safetensors.index.json"] = contents.index_of(shards)
        model |= {f"{folder}/config.json": b"{}", f"{folder}/training_args.bin": contents.torch_saved(random)}
        after = {f"{folder}/{name}": contents.torch_saved(random) for name in ("optimizer.pt", "scheduler.pt")}
        rng = {
            rank: {f"{folder}/rng_state{f'_{rank}' if processes > 1 else ''}.pth": contents.torch_saved(random)}
            for rank in range(processes)
        }
        state = {f"{folder}/trainer_state.json": contents.trainer_state(step)}
        sharded, marker = (
            dcp_files(random, f"{folder}/pytorch_model_fsdp_0", processes) if inner == "dcp" else ({}, b"")
        )
        states, latest = zero_files(random, folder, step, processes) if inner == "deepspeed" else ({}, {})

        def process(rank: int) -> Steps:
            yield from disk.make(folder)
            if on_signal and rank == 0:
                yield from disk.write(incomplete, b"in progress")
            if rank == 0:
                yield from in_place(disk, model.items())
            if inner == "dcp":
                yield from dcp_process(disk, f"{folder}/pytorch_model_fsdp_0", rank, sharded, marker)
            elif inner == "deepspeed":
                yield from zero_process(disk, folder, step, rank, states, latest)
            elif rank == 0:
                yield from in_place(disk, after.items())
            yield from in_place(disk, rng[rank].items())
            if rank == 0:
                yield from in_place(disk, state.items())
            if temporary:
                yield from barrier()
                if rank == 0:
                    yield from disk.rename(folder, final)
            if rank == 0:
                for old in old_folders(disk, "checkpoint-", keep):
                    yield from disk.remove_tree(old)
            if on_signal and rank == 0:
                yield from disk.remove(incomplete)

        files = {**model, **chain_all(rng.values()), **state, **sharded, **states, **latest, **({} if inner else after)}
        if inner == "dcp":
            files[f"{folder}/pytorch_model_fsdp_0/.metadata"] = marker
        expected = {final + path[len(folder) :]: data for path, data in files.items()}
        return Save(final, expected, together(random, *map(process, range(processes))))

    name = f"transformers-{processes}{inner}{'-tmp' if temporary else ''}{'-signal' if on_signal else ''}"
    return Saver(name, "transformers", save, reuses=processes > 1 and keep == 1)


def chain_all(parts: Iterable[dict[str, bytes]]) -> dict[str, bytes]:
    return dict(chain.from_iterable(one.items() for one in parts))


def zero_files(random: Random, home: str, step: int, processes: int) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Returns DeepSpeed's states of every process, and the file `latest`."""
    prefix, tag = f"{home}/" if home else "", f"global_step{step}"
    states = {f"{prefix}{tag}/mp_rank_00_model_states.pt": contents.torch_saved(random)}
    for rank in range(processes):
        states[f"{prefix}{tag}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"] = contents.torch_saved(random)
    return states, {f"{prefix}latest": tag.encode()}


def zero_process(
    disk: Disk, home: str, step: int, rank: int, states: dict[str, bytes], latest: dict[str, bytes]
) -> Steps:
    """Writes one process's states; the first one then `latest`, without waiting for the others."""
    yield from barrier()
    yield from disk.make(f"{home}/global_step{step}" if home else f"global_step{step}")
    own = [
        path
        for path in states
        if f"_pp_rank_{rank}_" in path or (rank == 0 and "/mp_rank_" in f"/{path.rsplit('/', 1)[-1]}")
    ]
    yield from in_place(disk, [(path, states[path]) for path in own])
    if rank == 0:
        yield from in_place(disk, latest.items())
    yield from barrier()


def zero(processes: int = 3) -> Saver:
    """DeepSpeed by itself."""

    def save(disk: Disk, step: int) -> Save:
        states, latest = zero_files(disk.random, "", step, processes)
        steps = (zero_process(disk, "", step, rank, states, latest) for rank in range(processes))
        return Save(f"global_step{step}", {**states, **latest}, together(disk.random, *steps))

    return Saver("deepspeed", "deepspeed", save, reuses=True)


def accelerator(*, processes: int = 2, keep: int = 2, sharded: bool = False) -> Saver:
    """Accelerate with automatic naming and one registered object."""

    def save(disk: Disk, step: int) -> Save:
        random, number = disk.random, step // 10 - 1
        folder = f"checkpoints/checkpoint_{number}"
        shards, marker = dcp_files(random, f"{folder}/pytorch_model_fsdp_0", processes) if sharded else ({}, b"")
        main = {
            f"{folder}/{name}": contents.torch_saved(random)
            for name in ("optimizer.bin", "scheduler.bin", "sampler.bin")
        }
        if not sharded:
            main = {f"{folder}/model.safetensors": contents.safetensors_saved(random), **main}
        rng = {rank: {f"{folder}/random_states_{rank}.pkl": contents.torch_saved(random)} for rank in range(processes)}
        custom = {f"{folder}/custom_checkpoint_0.pkl": contents.torch_saved(random)}

        def process(rank: int) -> Steps:
            yield from disk.make("checkpoints")
            if rank == 0:
                for old in old_folders(disk, "checkpoints/checkpoint_", keep - 1):
                    yield from disk.remove_tree(old)
            yield from barrier()
            yield from disk.make(folder)
            if sharded:
                yield from dcp_process(disk, f"{folder}/pytorch_model_fsdp_0", rank, shards, marker)
            yield from in_place(
                disk, [*(main.items() if rank == 0 else ()), *rng[rank].items(), *(custom.items() if rank == 0 else ())]
            )

        expected = {**main, **chain_all(rng.values()), **custom, **shards}
        if sharded:
            expected[f"{folder}/pytorch_model_fsdp_0/.metadata"] = marker
        return Save(folder, expected, together(random, *map(process, range(processes))))

    return Saver(f"accelerate-{keep}{'-dcp' if sharded else ''}", "accelerate", save, reuses=keep == 1)


def lightning(*, last: str = "", copies: bool = False) -> Saver:
    """Lightning's ModelCheckpoint, which keeps the newest one; `last` is "link", "file" or nothing."""

    def save(disk: Disk, step: int) -> Save:
        data, again = contents.lightning_saved(disk.random, step), contents.lightning_saved(disk.random, step)
        path = f"epoch={step // 10}-step={step}.ckpt"
        old = [one for one in disk.files if one.startswith("epoch=")]

        def steps() -> Steps:
            yield from disk.write(path, data) if copies else disk.replace(path, data, ".tmp")
            for one in old:
                yield from disk.remove(one)
            if last == "link":
                if "last.ckpt" in disk.files:
                    yield from disk.remove("last.ckpt")
                yield from disk.link("last.ckpt", path)
            elif last == "file":
                yield from disk.write("last.ckpt", again) if copies else disk.replace("last.ckpt", again, ".tmp")

        if last == "file":
            return Save("last.ckpt", {"last.ckpt": again}, steps(), {path: data})
        return Save(path, {path: data}, steps())

    return Saver(f"lightning-{last or 'alone'}{'-copied' if copies else ''}", "lightning", save, reuses=bool(last))


def lightning_fsdp(processes: int = 2) -> Saver:
    """Lightning's FSDPStrategy with sharded states, which keeps two."""

    def save(disk: Disk, step: int) -> Save:
        folder = f"epoch={step // 10}-step={step}.ckpt"
        shards, marker = dcp_files(disk.random, folder, processes)
        meta = contents.torch_saved(disk.random)

        def process(rank: int) -> Steps:
            yield from dcp_process(disk, folder, rank, shards, marker)
            if rank == 0:
                yield from disk.write(f"{folder}/meta.pt", meta)
            yield from barrier()
            for old in [f"epoch={(step - 20) // 10}-step={step - 20}.ckpt"] if rank == 0 and step > 20 else []:
                yield from disk.remove_tree(old)

        expected = {**shards, f"{folder}/.metadata": marker, f"{folder}/meta.pt": meta}
        return Save(folder, expected, together(disk.random, *map(process, range(processes))))

    return Saver("lightning-fsdp", "lightning", save)


def dcp(*, processes: int = 2, again: bool = False, parts: tuple[str, ...] = ("",)) -> Saver:
    """torch.distributed.checkpoint, into a new folder each time or `again` into the same, several in one where there are `parts`."""

    def save(disk: Disk, step: int) -> Save:
        folder = "state" if again else f"step-{step}"
        inner = {
            f"{folder}/{part}".rstrip("/"): dcp_files(disk.random, f"{folder}/{part}".rstrip("/"), processes)
            for part in parts
        }

        def process(rank: int) -> Steps:
            for one, (shards, marker) in inner.items():
                yield from dcp_process(disk, one, rank, shards, marker)
            if not again and rank == 0 and step > 20:
                yield from disk.remove_tree(f"step-{step - 20}")

        expected = chain_all({**shards, f"{one}/.metadata": marker} for one, (shards, marker) in inner.items())
        return Save(folder, expected, together(disk.random, *map(process, range(processes))))

    return Saver(f"dcp-{'again' if again else len(parts)}", "dcp", save, reuses=again)


def megatron(*, sharded: bool = False, processes: int = 2) -> Saver:
    """Megatron-LM, in the format torch or torch_dist, which removes the iteration before."""

    def save(disk: Disk, step: int) -> Save:
        folder, tracker = f"iter_{step:07}", "latest_checkpointed_iteration.txt"
        shards, marker = dcp_files(disk.random, folder, processes) if sharded else ({}, b"")
        common = {f"{folder}/common.pt": contents.torch_saved(disk.random)} if sharded else {}
        config = {f"{folder}/metadata.json": b'{"sharded_backend": "torch_dist"}'} if sharded else {}
        plain = {
            rank: {f"{folder}/mp_rank_{rank:02}/{name}": contents.torch_saved(disk.random) for name in MEGATRON_FILES}
            for rank in range(0 if sharded else processes)
        }  # fmt: skip

        def process(rank: int) -> Steps:
            yield from disk.make(folder)
            if sharded:
                yield from in_place(disk, common.items() if rank == 0 else ())
                yield from dcp_process(disk, folder, rank, shards, marker)
                yield from in_place(disk, config.items() if rank == 0 else ())
            else:
                yield from disk.make(f"{folder}/mp_rank_{rank:02}")
                yield from in_place(disk, plain[rank].items())
            yield from barrier()
            if rank == 0:
                yield from disk.write(tracker, str(step).encode())
                yield from disk.make(f"{folder}/tokenizer")
                yield from disk.write(f"{folder}/tokenizer/tokenizer.json", b"{}")
                if step > 20:
                    yield from disk.remove_tree(f"iter_{step - 20:07}")

        expected = {**common, **config, **shards, **chain_all(plain.values()), tracker: str(step).encode()}
        if sharded:
            expected[f"{folder}/.metadata"] = marker
        return Save(folder, expected, together(disk.random, *map(process, range(processes))))

    return Saver(f"megatron-{'torch_dist' if sharded else 'torch'}", "megatron", save, reuses=True)

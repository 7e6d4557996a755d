"""Savers of JAX, Keras, TensorFlow and of models in safetensors, as those in `savers`; and the list of all."""

from __future__ import annotations

from tests.node.layouts import contents, savers
from tests.node.layouts.disk import Disk
from tests.node.layouts.processes import Save, Saver, Steps


def orbax(*, commits: bool = False) -> Saver:
    """Orbax's CheckpointManager, which keeps two; `commits` is how it does where renaming is not atomic."""

    def save(disk: Disk, step: int) -> Save:
        final = str(step)
        folder = f"{final}.orbax-checkpoint-tmp"
        names = (
            "default/d/0a1b",
            "default/manifest.ocdbt",
            "default/ocdbt.process_0/d/77",
            "default/ocdbt.process_0/manifest.ocdbt",
        )
        files = {f"{folder}/_CHECKPOINT_METADATA": b'{"commit_timestamp_nsecs": null}'}
        files |= {f"{folder}/{name}": disk.random.randbytes(disk.random.randint(1, 900)) for name in names}
        files |= {f"{folder}/default/_METADATA": b"{}"}
        done = {f"{folder}/_CHECKPOINT_METADATA": b'{"commit_timestamp_nsecs": 17}'}
        if commits:
            done[f"{folder}/commit_success.txt"] = b"Checkpoint commit was successful"

        def steps() -> Steps:
            for one in (folder, f"{folder}/default/d", f"{folder}/default/ocdbt.process_0/d"):
                yield from disk.make(one)
            yield from savers.in_place(disk, files.items())
            yield from savers.in_place(disk, done.items())
            yield from disk.rename(folder, final)
            if step > 20:
                yield from disk.remove_tree(str(step - 20))

        expected = {final + path[len(folder) :]: data for path, data in {**files, **done}.items()}
        return Save(final, expected, steps())

    return Saver(f"orbax{'-commits' if commits else ''}", "orbax", save)


def keras(ending: str, *, again: bool = False) -> Saver:
    """Keras' ModelCheckpoint, with the epoch in the name or `again` with the same."""

    def save(disk: Disk, step: int) -> Save:
        path = f"{'best' if again else f'ckpt-{step:02}'}{ending}"
        data = contents.keras_saved(disk.random) if ending == ".keras" else contents.hdf5_saved(disk.random)
        return Save(path, {path: data}, disk.write(path, data, cuts=12))

    return Saver(f"keras{ending}{'-again' if again else ''}", "keras", save, reuses=again)


def keras_backup() -> Saver:
    """Keras' BackupAndRestore with double_checkpoint."""

    def save(disk: Disk, step: int) -> Save:
        weights, metadata = "backup/latest.weights.h5", "backup/training_metadata.json"
        new = {weights: contents.hdf5_saved(disk.random), metadata: b'{"epoch": %d, "batch": 0}' % step}
        copied = {
            f"{path}.bkp": data for path, data in disk.content(path for path in new if path in disk.files).items()
        }

        def steps() -> Steps:
            yield from disk.make("backup")
            yield from savers.in_place(disk, copied.items())
            yield from savers.in_place(disk, new.items())

        return Save("backup", new, steps())

    return Saver("keras-backup", "keras", save, reuses=True)


def tensorflow() -> Saver:
    """TensorFlow's CheckpointManager, which keeps two."""

    def save(disk: Disk, step: int) -> Save:
        prefix, old = f"ckpt-{step // 10}", f"ckpt-{step // 10 - 2}"
        parts = {f"{prefix}.data-{number:05}-of-00002": disk.random.randbytes(500) for number in range(2)}
        files = {**parts, f"{prefix}.index": disk.random.randbytes(90)}
        marker = f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'.encode()

        def steps() -> Steps:
            yield from savers.in_place(disk, files.items())
            yield from disk.replace("checkpoint", marker, ".tmp5a1b")
            for one in [one for one in disk.files if one.startswith(f"{old}.")]:
                yield from disk.remove(one)
            yield from disk.replace("checkpoint", marker, ".tmp5a1c")

        return Save(prefix, {**files, "checkpoint": marker}, steps())

    return Saver("tensorflow", "tensorflow", save)


def safetensors() -> Saver:
    """transformers' save_pretrained of a model in three files."""

    def save(disk: Disk, step: int) -> Save:
        folder, shards = f"step-{step}", [f"model-{one:05}-of-00003.safetensors" for one in (1, 2, 3)]
        files = {f"{folder}/{name}": contents.safetensors_saved(disk.random) for name in shards}
        files = {
            f"{folder}/config.json": b"{}",
            **files,
            f"{folder}/model.safetensors.index.json": contents.index_of(shards),
        }

        def steps() -> Steps:
            yield from disk.make(folder)
            yield from savers.in_place(disk, files.items())

        return Save(folder, files, steps())

    return Saver("safetensors", "safetensors", save, named=True)


ALL = (
    savers.trainer(), savers.trainer(processes=3), savers.trainer(processes=2, inner="dcp"),
    savers.trainer(processes=2, inner="deepspeed"), savers.trainer(processes=2, temporary=True), savers.trainer(keep=1),
    savers.trainer(processes=2, keep=1), savers.trainer(on_signal=True), savers.trainer(processes=2, on_signal=True),
    savers.accelerator(), savers.accelerator(keep=1), savers.accelerator(sharded=True),
    savers.lightning(), savers.lightning(copies=True), savers.lightning(last="link"), savers.lightning(last="file"),
    savers.lightning(last="file", copies=True), savers.lightning_fsdp(),
    savers.dcp(), savers.dcp(parts=("model", "optim")), savers.dcp(again=True),
    savers.zero(), savers.zero(processes=1), savers.megatron(), savers.megatron(sharded=True),
    orbax(), orbax(commits=True), keras(".keras"), keras(".weights.h5"), keras(".keras", again=True), keras_backup(),
    tensorflow(), safetensors(),
)  # fmt: skip

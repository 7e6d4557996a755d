"""Fills the folders of a pod from S3, and sends files back: every S3 call of a pod's helpers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from contract.pod_files import PodChannel, PodFiles
from grid_child.plain_files import open_plain, stream_archive

NOT_SAVED = (ClientError, BotoCoreError, Boto3Error, OSError, ValueError)
"""What a file that cannot be sent raises; ValueError where its name is no text."""
PART = 64 * 1024**2
GROUP = "homogeneousCluster"
"""What SageMaker calls the only group of hosts."""


class PodFolders:
    """One pod's folders, which lie in `root`. Raises ClientError, BotoCoreError, or OSError where a disk is full."""

    def __init__(self, files: PodFiles, root: Path, *, rank: int, storage: Any) -> None:
        """`storage`: a client of S3 that repeats calls by itself."""
        self.files, self.root, self._rank, self._storage = files, root, rank, storage
        self._sent: dict[Path, tuple[int, int]] = {}
        self._half = set[Path]()
        """Files that had changed since the look before."""

    def fill(self) -> None:
        """Writes what SageMaker's containers find in input/config, and brings data and checkpoints."""
        for name in ("input/config", "input/data", "model", "output/data", "checkpoints"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        for name, document in self._describe().items():
            (self.root / "input/config" / f"{name}.json").write_text(json.dumps(document))
        for channel in self.files.channels:
            self._bring(channel)
        source = f"{self.files.checkpoints.rstrip('/')}/"
        for bucket, key, within in self._list(source):
            self._fetch(bucket, key, self.root / "checkpoints", within)

    def send_checkpoints(self, *, last: bool = False) -> list[str]:
        """Sends files that have changed; while the training runs only those that were the same a look before, so that half a file is not
        sent. Files that went away stay in S3. Returns what could not be sent, and why."""
        problems = list[str]()
        for path in self._walk(self.root / "checkpoints"):
            try:
                stat = path.lstat()
                mark = (stat.st_mtime_ns, stat.st_size)
                known = self._sent.get(path)
                if known == mark and path not in self._half:
                    continue
                if not last and known != mark:
                    self._sent[path] = mark
                    self._half.add(path)
                    continue
                within = path.relative_to(self.root / "checkpoints").as_posix()
                self._send(f"checkpoints/{within}", f"{self.files.checkpoints.rstrip('/')}/{within}")
                self._sent[path] = mark
                self._half.discard(path)
            except FileNotFoundError:
                continue  # the training replaced it meanwhile
            except NOT_SAVED as problem:
                problems.append(f"{type(problem).__name__}: {path.name!a}: {problem!a}")
        return problems

    def send_archive(self, folder: str, address: str) -> bool:
        """Packs a folder and sends the archive meanwhile, which needs no room. Returns whether there was anything to send."""
        files = self._walk(self.root / folder)
        if files:
            with stream_archive(self.root, folder, files) as packed:
                self._storage.upload_fileobj(packed, *split_address(address), Config=_describe_stream())
        return bool(files)

    def send_note(self, name: str, within: str) -> None:
        """Sends a file as a note, if there is one."""
        with suppress(FileNotFoundError):
            self._send(within, f"{self.files.notes}{name}")

    def note(self, name: str, document: Mapping[str, Any]) -> None:
        bucket, key = split_address(f"{self.files.notes}{name}")
        self._storage.put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())

    def _describe(self) -> dict[str, Any]:
        names = [f"algo-{number + 1}" for number in range(self.files.nodes)]
        group = {"instance_group_name": GROUP, "instance_type": self.files.instance_type, "hosts": names}
        return {
            "hyperparameters": self.files.hyperparameters,
            "inputdataconfig": {
                one.name: {
                    "TrainingInputMode": "File",
                    "S3DistributionType": "ShardedByS3Key" if one.sharded else "FullyReplicated",
                    "RecordWrapperType": "None",
                }
                for one in self.files.channels
            },
            "resourceconfig": {
                "current_host": names[self._rank],
                "current_instance_type": self.files.instance_type,
                "current_group_name": GROUP,
                "hosts": names,
                "instance_groups": [group],
                "network_interface_name": "eth0",
            },
        }

    def _bring(self, channel: PodChannel) -> None:
        """Brings everything whose name begins so, as SageMaker does; of a sharded channel this pod's part."""
        found = list(self._list(channel.source))
        if not found:
            raise FileNotFoundError(f"there is nothing at {channel.source}, the data of the channel {channel.name}")
        for bucket, key, within in found[self._rank :: self.files.nodes] if channel.sharded else found:
            self._fetch(bucket, key, self.root / "input/data" / channel.name, within)

    def _list(self, source: str) -> Iterator[tuple[str, str, str]]:
        """Yields bucket, key and the path in its folder of each object whose key begins as the address says."""
        bucket, prefix = split_address(source)
        pages = self._storage.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [one["Key"] for page in pages for one in page.get("Contents") or () if not one["Key"].endswith("/")]
        folder = prefix[: prefix.rfind("/") + 1]
        if any(key.startswith(f"{prefix}/") for key in keys):
            folder = f"{prefix}/"
        yield from ((bucket, key, key.removeprefix(folder).lstrip("/")) for key in keys)

    def _fetch(self, bucket: str, key: str, folder: Path, within: str) -> None:
        place = folder / within
        if ".." in Path(within).parts:
            raise ValueError(f"s3://{bucket}/{key} leads out of its folder")
        place.parent.mkdir(parents=True, exist_ok=True)
        self._storage.download_file(bucket, key, str(place))

    def _send(self, within: str, address: str) -> None:
        with open_plain(self.root, within) as file:
            self._storage.upload_fileobj(file, *split_address(address))

    @staticmethod
    def _walk(folder: Path) -> list[Path]:
        """Lists regular files; links might lead out of the folder."""
        if folder.is_symlink():
            return []
        return sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())


def _describe_stream() -> Any:
    """Returns how an archive is sent whose size is not known: S3 takes 10,000 parts, and parts are in memory."""
    from boto3.s3.transfer import TransferConfig

    made = TransferConfig(multipart_chunksize=PART, max_concurrency=2)
    made.max_in_memory_upload_chunks = 2
    return made


def open_storage(region: str) -> Any:
    """Returns a client of S3 that repeats calls by itself: nothing else of the helpers waits meanwhile."""
    import boto3
    from botocore.config import Config

    return boto3.client("s3", region_name=region, config=Config(retries={"mode": "standard", "total_max_attempts": 8}))


def split_address(address: str) -> tuple[str, str]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key

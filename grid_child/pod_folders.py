"""Fills the folders of a pod from S3, and sends files back: every S3 call of a pod's helpers."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from contract.pod_files import PodChannel, PodFiles

NOT_SAVED = (ClientError, BotoCoreError, Boto3Error, OSError, ValueError)
"""What a file that cannot be sent raises; ValueError where its name is no text."""
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
                mark = (path.stat().st_mtime_ns, path.stat().st_size)
                known = self._sent.get(path)
                if known == mark and path not in self._half:
                    continue
                if not last and known != mark:
                    self._sent[path] = mark
                    self._half.add(path)
                    continue
                within = path.relative_to(self.root / "checkpoints").as_posix()
                self._send(path, f"{self.files.checkpoints.rstrip('/')}/{within}")
                self._sent[path] = mark
                self._half.discard(path)
            except FileNotFoundError:
                continue  # the training replaced it meanwhile
            except NOT_SAVED as problem:
                problems.append(f"{type(problem).__name__}: {path.name!a}: {problem!a}")
        return problems

    def send_archive(self, folder: str, address: str) -> bool:
        """Packs a folder and sends the archive. Returns whether there was anything to send."""
        files = list(self._walk(self.root / folder))
        if not files:
            return False
        with tempfile.NamedTemporaryFile(dir=self.root, suffix=".tar.gz") as packed:
            with tarfile.open(fileobj=packed, mode="w:gz") as archive:
                for path in files:
                    archive.add(path, path.relative_to(self.root / folder).as_posix())
            packed.flush()
            self._send(Path(packed.name), address)
        return True

    def send_note(self, name: str, file: Path) -> None:
        """Sends a file as a note, if there is one."""
        if file.is_file():
            self._send(file, f"{self.files.notes}{name}")

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

    def _send(self, path: Path, address: str) -> None:
        bucket, key = split_address(address)
        self._storage.upload_file(str(path), bucket, key)

    @staticmethod
    def _walk(folder: Path) -> list[Path]:
        """Lists regular files; links might lead out of the folder."""
        return sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())


def open_storage(region: str) -> Any:
    """Returns a client of S3 that repeats calls by itself: nothing else of the helpers waits meanwhile."""
    import boto3
    from botocore.config import Config

    return boto3.client("s3", region_name=region, config=Config(retries={"mode": "standard", "total_max_attempts": 8}))


def split_address(address: str) -> tuple[str, str]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key

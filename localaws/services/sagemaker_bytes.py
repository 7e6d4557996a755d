"""Moves a training's bytes with its role: channels in, checkpoints both ways, artifacts out."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

HERE_MODES = ("File", "FastFile")
"""In both modes the data is in files when the program starts; on AWS the second is a file system that fetches later."""


class DataProblem(Exception):
    """The training's data is not available; the message is a reason of SageMaker's kind."""


def split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


class Bytes:
    """Moves the bytes of one training."""

    def __init__(self, s3: Any, region: str, where: Callable[[str], str | None]) -> None:
        """`s3` is a client of the training's role in its region; `where` gives the region of a bucket, which S3 itself knows."""
        self._s3, self._region, self._where = s3, region, where
        self._sent: dict[Path, tuple[int, int]] = {}

    def channel(self, given: Mapping[str, Any], into: Path, place: int, hosts: int) -> int:
        """Fetches a channel for the host at `place`; returns the number of files. Raises DataProblem."""
        source, mode = given["DataSource"].get("S3DataSource"), given.get("InputMode", "File")
        if source is None or source["S3DataType"] != "S3Prefix" or mode not in HERE_MODES:
            raise DataProblem(f"the rehearsal reads S3 prefixes in the modes {', '.join(HERE_MODES)}: {given}")
        bucket, prefix = split(source["S3Uri"])
        self._same_region(bucket)
        found = self._listed(bucket, prefix)
        if not found:
            raise DataProblem(f"ClientError: Data download failed:Could not find any data at {source['S3Uri']}")
        folder = prefix if prefix.endswith("/") or not prefix else prefix.rpartition("/")[0] + "/"
        if any(key.startswith(f"{prefix}/") for key in found):
            folder = f"{prefix}/"
        if source.get("S3DataDistributionType") == "ShardedByS3Key":
            found = found[place::hosts]
        for key in found:
            self._fetch(bucket, key, into / key.removeprefix(folder).lstrip("/"))
        return len(found)

    def _same_region(self, bucket: str) -> None:
        there = self._where(bucket)
        if there is not None and there != self._region:
            raise DataProblem(
                "ClientError: Data download failed:PermanentRedirect (301): The bucket is in this region: "
                f"{there}. Please use this region to retry the request"
            )

    def fetch_checkpoints(self, uri: str, into: Path) -> int:
        """Fetches everything there; returns the number of files."""
        bucket, prefix = split(uri)
        prefix = f"{prefix.rstrip('/')}/"
        found = self._listed(bucket, prefix)
        for key in found:
            self._fetch(bucket, key, into / key.removeprefix(prefix))
        self._sent |= {path: _mark(path) for path in into.rglob("*") if path.is_file()}
        return len(found)

    def send_checkpoints(self, uri: str, source: Path) -> None:
        """Sends files that are new or have changed since they were sent; a file that vanishes meanwhile is tried the next time."""
        bucket, prefix = split(uri)
        for path in sorted(source.rglob("*")):
            try:
                if path.is_file() and self._sent.get(path) != (mark := _mark(path)):
                    key = f"{prefix.rstrip('/')}/{path.relative_to(source)}"
                    self._s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
                    self._sent[path] = mark
            except FileNotFoundError:
                continue

    def send_archive(self, uri: str, folders: Sequence[Path]) -> bool:
        """Sends the folders' files as one tar.gz; sends nothing if there are none."""
        files = [(path, path.relative_to(folder)) for folder in folders for path in sorted(folder.rglob("*"))]
        files = [(path, name) for path, name in files if path.is_file()]
        if files:
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w:gz") as archive:
                for path, name in files:
                    archive.add(path, arcname=str(name))
            bucket, key = split(uri)
            self._s3.put_object(Bucket=bucket, Key=key, Body=packed.getvalue())
        return bool(files)

    def _listed(self, bucket: str, prefix: str) -> list[str]:
        try:
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        except ClientError as problem:
            raise DataProblem(f"ClientError: Data download failed: s3://{bucket}/{prefix}: {problem}") from problem
        return [key for key in keys if not key.endswith("/")]

    def _fetch(self, bucket: str, key: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())


def _mark(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size

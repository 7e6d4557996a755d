"""The command `artifacts`: lists what a job made, and downloads it. Names of files are a job's own words: none leads out of the folder."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws.clients import client
from aws.s3 import Bucket, HomeBucket
from contract import archives, keys
from contract.jobs import Job
from refusals.addresses import SCHEME
from trainyard.deployment import Deployment
from trainyard.options import Command
from trainyard.packing import show_bytes
from trainyard.printer import Printer
from trainyard.stops import CannotProceed, CommandExit
from trainyard.watching import find

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

LIST = re.compile(r"attempts/(\d+)/artifacts\.json")
RANK = re.compile(r"rank-(\d{4,})/(.+)", re.DOTALL)
MOST_LIST = 256 * 1024**2
"""Bytes of a list of artifacts, at most."""
CHUNK = 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a node kept."""

    rank: int
    path: str
    size: int
    region: str
    bucket: str
    key: str
    sha256: str = ""
    """Empty where no list of the control plane names the file."""


def artifacts(command: Command, name: str, *, to: Path | None, rank: int | None, force: bool) -> int:
    """Returns the exit code."""
    printer, deployment = command.printer, command.open_deployment()
    found = [one for one in list_artifacts(deployment, name) if rank in (None, one.rank)]
    if not found:
        printer.document({"job": name, "artifacts": []})
        printer.complain(
            f"{name}: no artifacts{'' if rank is None else f' of rank {rank}'}: its nodes kept nothing in ARTIFACTS_DIR (yet)"
        )
        return CommandExit.DONE
    targets = place(found, to) if to is not None else {}
    if to is not None:
        download(found, targets, to, force=force, printer=printer)
    show(name, found, targets, printer)
    return CommandExit.DONE


def list_artifacts(deployment: Deployment, name: str) -> list[Artifact]:
    """Returns the files of the newest list that the control plane wrote; without one, what lies in the buckets of the job's regions."""
    home = HomeBucket(deployment.home_bucket, deployment.region)
    job = home.job(name)
    if job is None:
        find(deployment, name, ("job",))  # says it where there is no such job at all
        return []
    prefix = keys.JobPrefix(name).root
    lists = [
        int(one[1])
        for key, _, _ in home.listed(f"{prefix}attempts/")
        if (one := LIST.fullmatch(key.removeprefix(prefix)))
    ]
    if lists:
        return _read_list(home, job, max(lists))
    return [one for region in sorted(job.places) for one in _list_bucket(job, region)]


def _read_list(home: HomeBucket, job: Job, attempt: int) -> list[Artifact]:
    body = home.get(keys.JobPrefix(job.id).artifacts(attempt), most=MOST_LIST)
    regions = {place.bucket: region for region, place in job.places.items()}
    found = []
    for one in json.loads(body or b"{}").get("artifacts", []):
        bucket, _, key = (
            str(one["at"]).removeprefix(SCHEME).partition("/")
        )  # a key may have what no person's address has
        found.append(
            Artifact(
                rank=int(one["rank"]),
                path=str(one["path"]),
                size=int(one["size"]),
                region=regions.get(bucket, ""),
                bucket=bucket,
                key=key,
                sha256=str(one.get("sha256") or ""),
            )
        )
    return found


def _list_bucket(job: Job, region: str) -> Iterable[Artifact]:
    bucket, prefix = job.places[region].bucket, keys.BytesPrefix(job.id).artifacts
    for key, size, _ in Bucket(bucket, region).listed(prefix):
        if found := RANK.fullmatch(key.removeprefix(prefix)):
            yield Artifact(rank=int(found[1]), path=found[2], size=size, region=region, bucket=bucket, key=key)


def place(found: Sequence[Artifact], to: Path) -> dict[Artifact, Path]:
    """Returns where each file goes below the folder: by rank, and by region where several have some. Raises CannotProceed for a name that
    would lead elsewhere."""
    several = len({one.region for one in found}) > 1
    targets, taken = dict[Artifact, Path](), set[Path]()
    for one in found:
        try:
            inside = archives.inside(one.path)
        except archives.Refused as problem:
            raise CannotProceed(f"artifacts: rank {one.rank} {problem}; allowed: {problem.allowed}") from None
        target = to / (one.region if several else "") / f"rank-{one.rank:04d}" / inside
        if not inside.parts or target in taken:
            raise CannotProceed(
                f"artifacts: rank {one.rank} has {archives.named(one.path)} twice, or without a name; allowed: plain names"
            )
        taken.add(target)
        targets[one] = target
    return targets


def download(
    found: Sequence[Artifact], targets: dict[Artifact, Path], to: Path, *, force: bool, printer: Printer
) -> None:
    """Downloads what is not there yet, each file under another name first. Raises CannotProceed, before it writes anything, where a file
    is in the way."""
    to.mkdir(parents=True, exist_ok=True)
    root, ahead = to.resolve(), list[Artifact]()
    for one in found:
        target = targets[one]
        if not target.parent.resolve().is_relative_to(root):
            raise CannotProceed(f"--to {to}: {target.parent} is a link to elsewhere; allowed: a folder without links")
        if not target.exists() and not target.is_symlink():
            ahead.append(one)
        elif not is_same(target, one):
            if not force or target.is_dir():
                raise CannotProceed(
                    f"--to {to}: {target} is there, and is not the job's file; allowed: another folder, or --force"
                )
            ahead.append(one)
    for one in ahead:
        _download(one, targets[one])
        printer.say(f"downloaded {targets[one]} ({show_bytes(one.size)})")


def is_same(path: Path, artifact: Artifact) -> bool:
    """Whether the file has the artifact's bytes, as far as its list says what they are."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != artifact.size:
        return False
    return bool(artifact.sha256) and _digest(path) == artifact.sha256


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _download(one: Artifact, target: Path) -> None:
    s3: S3Client = client("s3", one.region or None)
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        s3.download_file(one.bucket, one.key, str(half))
        if half.stat().st_size != one.size or (one.sha256 and _digest(half) != one.sha256):
            raise CannotProceed(
                f"artifacts: s3://{one.bucket}/{one.key} is not what the job's list says; its file was not written"
            )
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)


def show(name: str, found: Sequence[Artifact], targets: dict[Artifact, Path], printer: Printer) -> None:
    """Prints the list, and where the files are."""
    printer.document({"job": name, "artifacts": [_describe(one, targets.get(one)) for one in found]})
    if printer.as_json:
        return
    if not targets:
        printer.table(
            ["rank", "path", "bytes", "region"], [(one.rank, one.path, one.size, one.region) for one in found]
        )
        printer.say(f"to download them: trainyard artifacts {name} --to DIR")
    if any(not one.sha256 for one in found):
        printer.say("The job did not end well: nothing has checked that these files are whole.")


def _describe(one: Artifact, target: Path | None) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "path": one.path,
        "bytes": one.size,
        "region": one.region,
        "at": f"s3://{one.bucket}/{one.key}",
        "sha256": one.sha256,
        "file": None if target is None else str(target),
    }

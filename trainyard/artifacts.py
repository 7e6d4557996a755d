"""The command `artifacts`: lists what a job made, and downloads it. Names of files are a job's own words: none leads out of the folder."""

from __future__ import annotations

import os
import re
import stat
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws.clients import client
from aws.s3 import Bucket, HomeBucket
from contract import archives, keys, names
from contract.codec import Garbled, build
from contract.commits import digest_parts
from contract.jobs import Job
from contract.roles import name_rank
from pages.words import count
from refusals.addresses import SCHEME
from trainyard.deployment import Deployment
from trainyard.options import Command
from trainyard.packing import show_bytes
from trainyard.printer import Printer
from trainyard.stops import CannotProceed, CommandExit
from trainyard.story import parse_object
from trainyard.watching import Watched, find, read_execution, word_rank

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

LIST = re.compile(r"attempts/(\d+)/artifacts\.json")
RANK = re.compile(r"rank-(\d{4,})/(.+)", re.DOTALL)
PARTS = re.compile(r"([1-9][0-9]{0,9})-[0-9a-f]{64}")
"""The digest of a large file, as its node computes it of the parts that it sent."""
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
    """Empty where no list of the control plane names the file, and of a large file."""
    crc32: str = ""
    """Of a large file, in place of its SHA-256 (`CommittedFile.crc32`)."""
    node: str = ""
    """What people read of the rank: of a job with roles, also which one it has."""

    @property
    def is_digested(self) -> bool:
        """Whether a download can be compared with what the node sent."""
        return bool(self.sha256 or self.crc32)


@dataclass(frozen=True, slots=True)
class ArtifactList:
    """What there is of a job's artifacts, and why some of it cannot be checked."""

    files: list[Artifact]
    unchecked: str = ""
    """Says why no list of the control plane names the files; empty where one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedArtifact:
    """An entry of the control plane's list."""

    rank: int
    path: str
    size: int
    at: str
    sha256: str | None = None
    crc32: str | None = None


def artifacts(command: Command, name: str, *, to: Path | None, rank: int | None, force: bool) -> int:
    """Returns the exit code."""
    printer, deployment = command.printer, command.open_deployment()
    listed = list_artifacts(deployment, name, printer.complain)
    found = [one for one in listed.files if rank in (None, one.rank)]
    if not found:
        printer.document({"job": name, "artifacts": []})
        printer.complain(
            f"{name}: there are no artifacts{word_rank(deployment, name, rank)}: nodes keep what is in ARTIFACTS_DIR"
        )
        return CommandExit.DONE
    targets = place(found, to) if to is not None else {}
    if to is not None:
        download(found, targets, to, force=force, printer=printer)
    show(name, found, targets, printer)
    if not printer.as_json and (words := listed.unchecked or word_undigested(found)):
        printer.say(words)
    return CommandExit.DONE


def list_artifacts(deployment: Deployment, name: str, say: Callable[[str], None]) -> ArtifactList:
    """Returns the files of the newest list that the control plane wrote; without one, what lies in the buckets of the job's regions."""
    home = HomeBucket(deployment.home_bucket, deployment.region)
    job = home.job(name)
    if job is None:
        find(deployment, name, ("job",))  # says it where there is no such job at all
        return ArtifactList([])
    prefix = keys.JobPrefix(name).root
    lists = [
        int(one[1])
        for key, _, _ in home.listed(f"{prefix}attempts/")
        if (one := LIST.fullmatch(key.removeprefix(prefix)))
    ]
    if lists:
        return ArtifactList(_read_list(home, job, max(lists), say))
    files = [one for region in sorted(job.places) for one in _list_bucket(job, region)]
    return ArtifactList(files, _word_unlisted(read_execution(deployment, "job", name)))


def _word_unlisted(job: Watched | None) -> str:
    """Says why the control plane has written no list of a job's artifacts."""
    if job is None:
        why = "There is no list of the job's artifacts"
    elif job.status.runs:
        why = "The job has not ended"
    elif job.status.name == "SUCCEEDED":
        why = "The job succeeded, but its list of artifacts is gone"
    else:
        why = "The job did not end well"
    return f"{why}: nothing has checked that these files are whole."


def word_undigested(found: Sequence[Artifact]) -> str:
    """Says which files of a list cannot be compared with what a node sent; empty where all can."""
    without = [one for one in found if not one.is_digested]
    if not without:
        return ""
    files = count(len(without), "file")
    return (
        f"The job's list has no digest of {files}, first of {without[0].path}: nothing has checked that they are whole."
    )


def _read_list(home: HomeBucket, job: Job, attempt: int, say: Callable[[str], None]) -> list[Artifact]:
    """Returns the files of a list, and says how many entries of it another version wrote. Raises Garbled where it is no list."""
    key = keys.JobPrefix(job.id).artifacts(attempt)
    entries = parse_object((home.get(key, most=MOST_LIST) or b"").decode(errors="replace")).get("artifacts")
    if not isinstance(entries, list):
        raise Garbled(f"{key} has no list `artifacts`")
    regions = {place.bucket: region for region, place in job.places.items()}
    found, strange = list[Artifact](), list[str]()
    for number, raw in enumerate(entries):
        try:
            one: ListedArtifact = build(ListedArtifact, raw, f"artifacts[{number}]")
            if one.crc32 and not PARTS.fullmatch(one.crc32):
                raise Garbled(f"artifacts[{number}].crc32 is no digest of a large file")
        except Garbled as problem:
            strange.append(str(problem))
            continue
        # A key may have what no person's address has.
        bucket, _, where = one.at.removeprefix(SCHEME).partition("/")
        found.append(
            Artifact(
                rank=one.rank,
                path=one.path,
                size=one.size,
                region=regions.get(bucket, ""),
                bucket=bucket,
                key=where,
                sha256=one.sha256 or "",
                crc32=one.crc32 or "",
                node=name_rank(job.roles, one.rank),
            )
        )
    if strange:
        say(f"{key}: {count(len(strange), 'entry', 'entries')} written by another version, and left out: {strange[0]}")
    return found


def _list_bucket(job: Job, region: str) -> Iterable[Artifact]:
    bucket, prefix = job.places[region].bucket, keys.BytesPrefix(job.id).artifacts
    for key, size, _ in Bucket(bucket, region).listed(prefix):
        if found := RANK.fullmatch(key.removeprefix(prefix)):
            rank = int(found[1])
            node = name_rank(job.roles, rank)
            yield Artifact(rank=rank, path=found[2], size=size, region=region, bucket=bucket, key=key, node=node)


def place(found: Sequence[Artifact], to: Path) -> dict[Artifact, Path]:
    """Returns where each file goes below the folder: by rank, and by region where several have some. Raises CannotProceed for a name that
    would lead elsewhere."""
    several = len({one.region for one in found}) > 1
    targets, taken = dict[Artifact, Path](), set[Path]()
    for one in found:
        try:
            inside = archives.inside(one.path)
        except archives.Refused as problem:
            raise CannotProceed(f"artifacts: {one.node} {problem}; allowed: {problem.allowed}") from None
        if several and not names.REGION_PATTERN.fullmatch(one.region):
            raise CannotProceed(
                f"artifacts: {one.path} lies in {one.bucket}, of no region of the job; allowed: the job's buckets"
            )
        target = to / (one.region if several else "") / f"rank-{one.rank:04d}" / inside
        if not inside.parts or target in taken:
            raise CannotProceed(
                f"artifacts: {one.node} has {archives.named(one.path)} twice, or without a name; allowed: plain names"
            )
        taken.add(target)
        targets[one] = target
    for one, target in targets.items():
        if taken & set(target.parents):
            both = archives.file_and_folder(str(next(parent for parent in target.parents if parent in taken).name))
            raise CannotProceed(
                f"artifacts: {one.node} {both}, as {one.path} says; no folder can hold both. allowed: single files, by "
                "`aws s3 cp` from the addresses that --json prints without --to"
            )
    return targets


def download(
    found: Sequence[Artifact], targets: dict[Artifact, Path], to: Path, *, force: bool, printer: Printer
) -> None:
    """Downloads what is not there yet, each file under another name first. Raises CannotProceed, before it writes anything, where a file
    is in the way."""
    for folder in dict.fromkeys([to, *(targets[one].parent for one in found)]):
        require_folder(to, folder)
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
                    f"--to {to}: {target} is there, and is not the job's file as it is now; allowed: another folder, or --force"
                )
            ahead.append(one)
    for one in ahead:
        _download(one, targets[one])
        printer.say(f"downloaded {targets[one]} ({show_bytes(one.size)})")
    if there := len(found) - len(ahead):
        printer.say(f"{count(there, 'file')} {'was' if there == 1 else 'were'} there already")


def require_folder(to: Path, folder: Path) -> None:
    """Raises CannotProceed where the folder is not there and cannot be made: a file, or a link that leads nowhere, is in its place or above
    it."""
    for one in (folder, *folder.parents):
        try:
            mode = one.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if not one.is_symlink():
                continue  # what is above it says more
            words = "is a link that leads nowhere"
        except OSError as problem:
            words = f"{problem.strerror}"
        else:
            if stat.S_ISDIR(mode):
                return
            words = "is a file"
        raise CannotProceed(f"--to {to}: {one}: {words}; allowed: a folder, or a place where one can be made")


def is_same(path: Path, artifact: Artifact) -> bool:
    """Whether the file has the artifact's bytes: by the digest of the list or, without one, as a download of the object as it is now."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != artifact.size:
        return False
    if artifact.is_digested:
        return _has_digest(path, artifact)
    return path.stat().st_mtime == _read_change(artifact)


def _read_change(artifact: Artifact) -> float:
    """Returns when the object was written (UTC epoch seconds): a download has that time, by which it is known again."""
    s3: S3Client = client("s3", artifact.region or None)
    return s3.head_object(Bucket=artifact.bucket, Key=artifact.key)["LastModified"].timestamp()


def _has_digest(path: Path, artifact: Artifact) -> bool:
    """Whether a file of the artifact's size has its digest; of an artifact without one that is not known, and counts as yes."""
    if artifact.sha256:
        return _digest(path) == artifact.sha256
    if artifact.crc32:
        part = int(artifact.crc32.partition("-")[0])
        return digest_parts(artifact.size, part, _list_crcs(path, part)) == artifact.crc32
    return True


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _list_crcs(path: Path, part: int) -> Iterator[int]:
    """Yields the CRC32 of each part of a file."""
    with path.open("rb") as file:
        crc, left = 0, part
        while chunk := file.read(min(CHUNK, left)):
            crc, left = zlib.crc32(chunk, crc), left - len(chunk)
            if not left:
                yield crc
                crc, left = 0, part
        if left < part:
            yield crc


def _download(one: Artifact, target: Path) -> None:
    s3: S3Client = client("s3", one.region or None)
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{uuid.uuid4().hex}.part")
    changed_at = _read_change(one)
    try:
        s3.download_file(one.bucket, one.key, str(half))
        if half.stat().st_size != one.size or not _has_digest(half, one):
            raise CannotProceed(
                f"artifacts: s3://{one.bucket}/{one.key} is not what the job's list says; its file was not written"
            )
        os.utime(half, (changed_at, changed_at))
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
            ["rank", "path", "bytes", "region"],
            [(one.node.removeprefix("rank "), one.path, one.size, one.region) for one in found],
        )
        printer.say(f"to download them: trainyard artifacts {name} --to DIR")


def _describe(one: Artifact, target: Path | None) -> dict[str, Any]:
    return {
        "rank": one.rank,
        "path": one.path,
        "bytes": one.size,
        "region": one.region,
        "at": f"s3://{one.bucket}/{one.key}",
        "sha256": one.sha256,
        "crc32": one.crc32,
        "file": None if target is None else str(target),
    }

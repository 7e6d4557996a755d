"""Sends files: packs of small ones, and large ones in parts, each part by itself, wherever the parts before it are."""

from __future__ import annotations

import hashlib
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from agent.engine.blocks import SharedBlocks
from agent.engine.crc import encode_crc
from agent.engine.extents import Shorter, fill
from agent.engine.moving import Extent, Mover
from agent.engine.pace import Pace
from agent.engine.places import PACK, PART, SMALL, Location, Memory, PartedUpload
from agent.engine.reading import OpenFiles, unwritten
from agent.snapshot import Changed, FileState
from agent.store import Store
from contract.aws_errors import code_of
from contract.commits import CommittedFile, digest_parts

SOME_PARTS, LARGE_PART, MOST_PARTS = 128, 64 * 1024 * 1024, 9000
"""Large files get larger parts, up to 64 MiB: S3 takes 3,500 of them a second from all ranks together, until it has spread their keys.
It takes 10,000 of one file."""
GONE = "NoSuchUpload"


class Sending:
    """One call of `Engine.send`."""

    def __init__(
        self,
        store: Store,
        mover: Mover,
        memory: Memory,
        pace: Pace,
        *,
        failed: threading.Event,
        pack_key: Callable[[str], str] | None,
        file_key: Callable[[str, str], str],
    ) -> None:
        self._client, self._bucket, self._mover = store.client, store.bucket, mover
        self._memory, self._pace, self._failed = memory, pace, failed
        self._pack_key, self._file_key = pack_key, file_key
        self._coming: dict[str, Location] = {}
        self._blocks = SharedBlocks()
        self._pool: ThreadPoolExecutor
        self._jobs: list[Future[None]] = []
        self._spoilt: list[FileState] = []
        self._turn = threading.Lock()

    def run(
        self, folder: Path, files: Sequence[FileState], threads: int, when_open: Callable[[], None]
    ) -> dict[str, CommittedFile]:
        """Sends what `list_new` returns, in so many threads."""
        there = set(files)
        for seen in [one for one in self._memory.unfinished if one not in there]:
            self._give_up(seen)
        try:
            with OpenFiles(folder, self.list_new(files)) as pinned:
                when_open()
                with ThreadPoolExecutor(threads, "sender") as self._pool, self._failing():
                    self._start_all(self.list_new(files), pinned)
                    for job in self._jobs:  # which start further ones
                        job.result()
        except BaseException:
            for seen in self._spoilt:
                self._give_up(seen)
            raise
        finally:
            self._blocks.close()
        return {seen.path: self._listed(seen) for seen in files}

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Lets the jobs that have not begun do nothing where anything fails."""
        try:
            yield
        except BaseException:
            self._failed.set()
            raise

    def list_new(self, files: Sequence[FileState]) -> list[FileState]:
        """The files that are not known to be in the bucket."""
        return [seen for seen in files if self._known(seen) is None]

    def _known(self, seen: FileState) -> Location | None:
        digest = self._memory.digests.get(seen)
        return None if digest is None else self._place(digest, seen.path)

    def _place(self, digest: str, path: str) -> Location | None:
        if self._pack_key is not None:
            return self._coming.get(digest) or self._memory.places.get(digest)
        key = self._file_key(digest, path)
        return Location(key) if self._memory.objects.get(key) == digest else None

    def _listed(self, seen: FileState) -> CommittedFile:
        digest = self._memory.digests[seen]
        place = self._place(digest, seen.path)
        assert place is not None, f"{seen.path} was not sent"
        parted = "-" in digest
        return CommittedFile(
            path=seen.path, size=seen.size, sha256="" if parted else digest, crc32=digest if parted else "", key=place.key,
            mode=seen.mode, offset=place.offset, mtime_us=seen.mtime_us,
        )  # fmt: skip

    def _start_all(self, files: Sequence[FileState], pinned: OpenFiles) -> None:
        """Small files first, which are read in a moment: a log or a state changes while a large file is sent. Then the largest, which take
        longest."""
        packed = [seen for seen in files if self._pack_key is not None and seen.size <= SMALL]
        alone = [seen for seen in files if self._pack_key is None or seen.size > SMALL]
        group, size = list[FileState](), 0
        for seen in packed:
            if group and size + seen.size > PACK:
                self._start(partial(self._pack, group, pinned))
                group, size = [], 0
            group.append(seen)
            size += seen.size
        if group:
            self._start(partial(self._pack, group, pinned))
        for seen in alone:
            self._start(partial(self._in_parts if seen.size > PART else self._whole, seen, pinned))

    def _start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            with self._failing():
                if not self._failed.is_set():
                    self._pace.wait()
                    work()
                    self._pace.wait()

        self._jobs.append(self._pool.submit(run))

    # Small files

    def _pack(self, files: Sequence[FileState], pinned: OpenFiles) -> None:
        with self._blocks.take() as block:
            end, inside = 0, list[tuple[str, int, int]]()
            for seen in files:
                digest = self._read(seen, pinned, block.bytes[end : end + seen.size])
                if self._is_new(digest):
                    inside.append((digest, end, seen.size))
                    end += seen.size
            if inside:
                self._ship(block.extent(end), inside)

    def _read(self, seen: FileState, pinned: OpenFiles, into: memoryview) -> str:
        """Reads a whole file, and returns its SHA-256. Raises Changed."""
        with pinned.opened(seen) as file, _noting(seen):
            fill(file, into, 0)
        digest = self._memory.digests[seen] = hashlib.sha256(into).hexdigest()
        return digest

    def _is_new(self, digest: str) -> bool:
        """Whether no thread has sent, or sends, a file with this digest. The caller does then; where is known once its object is there."""
        with self._turn:
            found = digest not in self._coming and digest not in self._memory.places
            if found:
                self._coming[digest] = Location("")
            return found

    def _ship(self, pack: Extent, inside: list[tuple[str, int, int]]) -> None:
        assert self._pack_key is not None
        listing = "".join(f"{digest} {offset} {size}\n" for digest, offset, size in inside)
        key = self._pack_key(hashlib.sha256(listing.encode()).hexdigest())
        self._mover.put("put_object", pack, Key=key)
        with self._turn:
            places = {digest: Location(key, offset) for digest, offset, _ in inside}
            self._coming.update(places)
            self._memory.places.update(places)

    def _whole(self, seen: FileState, pinned: OpenFiles) -> None:
        """A file that is an object of its own, sent at once."""
        with self._blocks.take() as block:
            digest = self._read(seen, pinned, block.bytes[: seen.size])
            key = self._file_key(digest, seen.path)
            if self._pack_key is not None and not self._is_new(digest):
                return
            if self._pack_key is None and self._memory.objects.pop(key, "") == digest:
                self._memory.objects[key] = digest
                return
            self._mover.put("put_object", block.extent(seen.size), Key=key)
        self._arrived(digest, key)

    # Large files

    def _in_parts(self, seen: FileState, pinned: OpenFiles) -> None:
        """Starts the parts of a large file, unless its bytes were sent before: that is looked for where it begins like such a file."""
        file, step = pinned.hold(seen), part_size(seen.size)
        extents = {
            number: Extent(file, start, min(step, seen.size - start))
            for number, start in enumerate(range(0, seen.size, step), 1)
        }
        crcs = dict[int, int]()
        with self._upload(seen, file):
            if seen not in self._memory.unfinished:
                crcs[1] = self._mover.check(extents[1])
                if _head(seen, crcs[1]) in self._memory.heads:
                    crcs = {number: self._mover.check(extent) for number, extent in extents.items()}
                    digest = digest_parts(seen.size, step, crcs.values())
                    if self._place(digest, seen.path) is not None:
                        unwritten(file, seen)
                        self._memory.digests[seen] = digest
                        pinned.release(seen)
                        return
            upload = self._memory.unfinished.get(seen) or self._begin(seen)
        jobs = [
            partial(self._part, seen, upload, number, extent, crcs.get(number))
            for number, extent in extents.items()
            if number not in upload.parts
        ]
        left = itertools.count(max(len(jobs), 1) - 1, -1)

        def then(job: Callable[[], None]) -> None:
            job()
            if not next(left):
                self._end_parts(seen, file, upload, step)
                pinned.release(seen)

        for job in jobs or [lambda: None]:
            self._start(partial(then, job))

    def _begin(self, seen: FileState) -> PartedUpload:
        """The key of a file in parts cannot be its digest, which is known once all parts were read; chance makes it as unique."""
        key = self._file_key(secrets.token_hex(32), seen.path)
        self._memory.objects.pop(key, None)
        answer = self._client.create_multipart_upload(Bucket=self._bucket, Key=key, ChecksumAlgorithm="CRC32")
        made = self._memory.unfinished[seen] = PartedUpload(key, answer["UploadId"])
        return made

    def _part(self, seen: FileState, upload: PartedUpload, number: int, extent: Extent, crc: int | None) -> None:
        with self._upload(seen, extent.file):
            upload.parts[number] = self._mover.put(
                "upload_part", extent, crc, Key=upload.key, UploadId=upload.upload, PartNumber=number
            )

    def _end_parts(self, seen: FileState, file: int, upload: PartedUpload, step: int) -> None:
        """Makes an object of the parts, once all have arrived; of the same bytes under another name there is one already."""
        with self._upload(seen, file):
            unwritten(file, seen)
            parts = [upload.parts[number] for number in sorted(upload.parts)]
            digest = digest_parts(seen.size, step, (one.crc32 for one in parts))
            known = not self._is_new(digest) if self._pack_key is not None else bool(self._place(digest, seen.path))
            if known:
                self._give_up(seen)
            else:
                listed = [
                    {"PartNumber": number, "ETag": one.etag, "ChecksumCRC32": encode_crc(one.crc32)}
                    for number, one in enumerate(parts, 1)
                ]
                self._client.complete_multipart_upload(
                    Bucket=self._bucket, Key=upload.key, UploadId=upload.upload, MultipartUpload={"Parts": listed},
                    MpuObjectSize=seen.size,
                )  # fmt: skip
                self._memory.unfinished.pop(seen, None)
                self._arrived(digest, upload.key)
        self._memory.digests[seen] = digest
        self._memory.heads[_head(seen, parts[0].crc32)] = digest

    @contextmanager
    def _upload(self, seen: FileState, file: int) -> Iterator[None]:
        """Takes note of uploads that cannot go on: of a file that changed, which raises Changed whatever else went wrong; and such as S3
        has ended, which the next send begins anew."""
        try:
            with _noting(seen):
                yield
        except Exception as problem:
            try:
                unwritten(file, seen)
                if isinstance(problem, Changed):
                    raise
            except Changed:
                self._spoilt.append(seen)
                raise
            if isinstance(problem, ClientError) and code_of(problem) == GONE:
                self._memory.unfinished.pop(seen, None)
            raise

    def _give_up(self, seen: FileState) -> None:
        if (upload := self._memory.unfinished.pop(seen, None)) is not None:
            abort(self._client, self._bucket, upload)

    def _arrived(self, digest: str, key: str) -> None:
        if self._pack_key is not None:
            with self._turn:
                self._coming[digest] = self._memory.places[digest] = Location(key)
        else:
            self._memory.objects[key] = digest


def _head(seen: FileState, crc: int) -> str:
    return f"{seen.size}-{crc:08x}"


def part_size(size: int) -> int:
    """The bytes of each part but the last of a file of so many bytes."""
    return max(PART, min(LARGE_PART, size // SOME_PARTS // PART * PART), -(-size // MOST_PARTS))


def abort(client: Any, bucket: str, upload: PartedUpload) -> None:
    """Tells S3 to forget the parts. Where that fails, the bucket's lifecycle does it within days."""
    with suppress(Exception):
        client.abort_multipart_upload(Bucket=bucket, Key=upload.key, UploadId=upload.upload)


@contextmanager
def _noting(seen: FileState) -> Iterator[None]:
    """Raises Changed of a file that has become shorter."""
    try:
        yield
    except Shorter:
        raise Changed(f"{seen.path} became shorter") from None

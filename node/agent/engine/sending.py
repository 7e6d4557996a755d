"""Sends files: packs of small ones side by side, and large ones in parts that one thread reads and hashes and others send."""

from __future__ import annotations

import hashlib
import queue
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from agent.engine.bodies import CONNECTIONS, Payload
from agent.engine.pace import Pace
from agent.engine.places import PACK, SMALL, Location, Memory, PartedUpload
from agent.engine.reading import OpenFiles, fill, unwritten
from agent.snapshot import Changed, FileState
from contract.aws_errors import code_of
from contract.commits import CommittedFile

PART, MOST_PARTS = 8 * 1024 * 1024, 9000
"""S3 takes 10,000 parts; very large files get larger ones."""
HELD = CONNECTIONS * PART
"""Bytes that are read and not yet sent, at the most."""
GONE = "NoSuchUpload"


class CutOff(RuntimeError):
    """Another part of the same send has failed."""


class Sending:
    """One call of `Engine.send`."""

    def __init__(
        self,
        client: Any,
        bucket: str,
        memory: Memory,
        pace: Pace,
        *,
        pack_key: Callable[[str], str] | None,
        file_key: Callable[[str, str], str],
    ) -> None:
        self._client, self._bucket, self._memory, self._pace = client, bucket, memory, pace
        self._pack_key, self._file_key = pack_key, file_key
        self._coming: dict[str, Location] = {}
        self._blocks: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
        self._pool: ThreadPoolExecutor
        self._jobs: list[Future[None]] = []
        self._failed, self._turn = threading.Event(), threading.Lock()

    def run(self, folder: Path, files: Sequence[FileState], when_open: Callable[[], None]) -> dict[str, CommittedFile]:
        self._give_up_others(files)
        todo = [seen for seen in files if self._known(seen) is None]
        self._make_blocks(todo)
        with ThreadPoolExecutor(CONNECTIONS, "sender") as self._pool:
            try:
                with OpenFiles(folder, todo) as pinned:
                    when_open()
                    self._packs([seen for seen in todo if self._is_packed(seen)], pinned)
                    for seen in todo:
                        if not self._is_packed(seen):
                            self._alone(seen, pinned)
                for job in self._jobs:
                    job.result()
            except BaseException:
                self._failed.set()
                wait(self._jobs)
                problems = [found for job in self._jobs if (found := job.exception())]
                if problems:  # the cause, and none of those that ended because of it
                    raise next((one for one in problems if not isinstance(one, CutOff)), problems[0]) from None
                raise
        return {seen.path: self._listed(seen) for seen in files}

    def _give_up_others(self, files: Sequence[FileState]) -> None:
        there = set(files)
        for seen in [one for one in self._memory.unfinished if one not in there]:
            self._give_up(seen)

    def _is_packed(self, seen: FileState) -> bool:
        return self._pack_key is not None and seen.size <= SMALL

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
        return CommittedFile(
            path=seen.path, size=seen.size, sha256=digest, key=place.key, mode=seen.mode, offset=place.offset,
            mtime_us=seen.mtime_us,
        )  # fmt: skip

    # Reading

    def _packs(self, files: Sequence[FileState], pinned: OpenFiles) -> None:
        """Each pack is read, hashed and sent by one thread: hashing is most of the work, and needs no lock of Python's."""
        group, size = list[FileState](), 0
        for seen in files:
            if group and size + seen.size > PACK:
                self._start(partial(self._pack, group, pinned))
                group, size = [], 0
            group.append(seen)
            size += seen.size
        if group:
            self._start(partial(self._pack, group, pinned))
        wait(self._jobs)  # they use what is pinned

    def _pack(self, files: Sequence[FileState], pinned: OpenFiles) -> None:
        block = self._take()
        try:
            end, inside = 0, list[tuple[str, int, int]]()
            for seen in files:
                piece = block[end : end + seen.size]
                with pinned.opened(seen) as file:
                    fill(file, piece, 0, seen)
                digest = self._memory.digests[seen] = hashlib.sha256(piece).hexdigest()
                if self._is_new(digest):
                    inside.append((digest, end, seen.size))
                    end += seen.size
            if inside:
                self._ship(block[:end], inside)
        finally:
            self._blocks.put(block)

    def _is_new(self, digest: str) -> bool:
        """Whether no thread has sent, or sends, a file with this digest. The caller does then; where is known once its pack is full."""
        with self._turn:
            found = digest not in self._coming and digest not in self._memory.places
            if found:
                self._coming[digest] = Location("")
            return found

    def _ship(self, pack: memoryview, inside: list[tuple[str, int, int]]) -> None:
        assert self._pack_key is not None
        listing = "".join(f"{digest} {offset} {size}\n" for digest, offset, size in inside)
        key = self._pack_key(hashlib.sha256(listing.encode()).hexdigest())
        self._put(key, pack)
        with self._turn:
            places = {digest: Location(key, offset) for digest, offset, _ in inside}
            self._coming.update(places)
            self._memory.places.update(places)

    def _alone(self, seen: FileState, pinned: OpenFiles) -> None:
        if seen.size > PART:
            with pinned.opened(seen) as file:
                head = self._head(seen, file)
                if not self._is_there(seen, file, head):
                    self._in_parts(seen, file)
                self._memory.heads[head] = self._memory.digests[seen]
            return
        block = self._take()
        piece = block[: seen.size]
        with pinned.opened(seen) as file:
            fill(file, piece, 0, seen)
        digest = self._memory.digests[seen] = hashlib.sha256(piece).hexdigest()
        if self._place(digest, seen.path) is not None:
            self._blocks.put(block)
            return
        key = self._file_key(digest, seen.path)
        self._memory.objects.pop(key, None)
        self._coming[digest] = Location(key)

        def send() -> None:
            self._put(key, piece)
            self._arrived(digest, key)

        self._start(send, block)

    def _head(self, seen: FileState, file: int) -> str:
        """Of the first part of a large file."""
        block = self._take()
        try:
            fill(file, block[:PART], 0, seen)
            return hashlib.sha256(block[:PART]).hexdigest()
        finally:
            self._blocks.put(block)

    def _is_there(self, seen: FileState, file: int, head: str) -> bool:
        """Whether a large file that was written again has bytes that were sent before. One that begins like none of those is not read for
        that: its digest is known only after its last part has been sent."""
        if head not in self._memory.heads or seen in self._memory.unfinished:
            return False
        block, digest = self._take(), hashlib.sha256()
        try:
            for start in range(0, seen.size, len(block)):
                piece = block[: min(len(block), seen.size - start)]
                fill(file, piece, start, seen)
                digest.update(piece)
        finally:
            self._blocks.put(block)
        found = self._place(digest.hexdigest(), seen.path) is not None
        if found:
            self._memory.digests[seen] = digest.hexdigest()
        return found

    def _in_parts(self, seen: FileState, file: int) -> None:
        upload = self._memory.unfinished.get(seen) or self._begin(seen)
        step, jobs = part_size(seen.size), list[Future[None]]()
        for number, start in enumerate(range(0, seen.size, step), 1):
            if number in upload.parts and start < upload.hashed:
                continue
            block = self._take()
            piece = block[: min(step, seen.size - start)]
            fill(file, piece, start, seen)
            if start == upload.hashed:
                digest, hashed = upload.digest.copy(), start + len(piece)
                digest.update(piece)
                upload.digest, upload.hashed = (
                    digest,
                    hashed,
                )  # both or none: whatever is raised, the next send goes on here
            jobs.append(self._start(self._part(seen, upload, number, piece), block))
        try:
            unwritten(file, seen)
        except Changed:
            self._failed.set()  # so that no part of it arrives after the upload was given up
            for job in jobs:
                with suppress(Exception):
                    job.result()
            self._give_up(seen)
            raise
        told = self._memory.digests[seen] = upload.digest.hexdigest()

        def complete() -> None:
            for job in jobs:
                job.result()
            if not self._failed.is_set():  # a part that was left out because of a failure elsewhere has a result, too
                self._complete(seen, upload, told)

        if self._place(told, seen.path) is None:
            self._coming[told] = Location(upload.key)
            self._start(complete)
        else:  # the same bytes are there under another name
            for job in jobs:
                job.result()
            self._give_up(seen)

    def _begin(self, seen: FileState) -> PartedUpload:
        """The key of a file in parts cannot be its digest, which is known once all parts were read; chance makes it as unique."""
        key = self._file_key(secrets.token_hex(32), seen.path)
        self._memory.objects.pop(key, None)
        answer = self._client.create_multipart_upload(Bucket=self._bucket, Key=key, ChecksumAlgorithm="CRC32")
        made = self._memory.unfinished[seen] = PartedUpload(key, answer["UploadId"], hashlib.sha256())
        return made

    def _part(self, seen: FileState, upload: PartedUpload, number: int, piece: memoryview) -> Callable[[], None]:
        def send() -> None:
            body = Payload(piece)
            checksum = body.crc32()
            try:
                answer = self._client.upload_part(
                    Bucket=self._bucket, Key=upload.key, UploadId=upload.upload, PartNumber=number,
                    Body=body, ChecksumCRC32=checksum,
                )  # fmt: skip
            except ClientError as problem:
                self._unless_gone(seen, problem)
                raise
            upload.parts[number] = (answer["ETag"], checksum)

        return send

    def _complete(self, seen: FileState, upload: PartedUpload, digest: str) -> None:
        parts = [
            {"PartNumber": number, "ETag": etag, "ChecksumCRC32": checksum}
            for number, (etag, checksum) in sorted(upload.parts.items())
        ]
        try:
            self._client.complete_multipart_upload(
                Bucket=self._bucket, Key=upload.key, UploadId=upload.upload, MultipartUpload={"Parts": parts},
                MpuObjectSize=seen.size,
            )  # fmt: skip
        except ClientError as problem:
            self._unless_gone(seen, problem)
            raise
        self._memory.unfinished.pop(seen, None)
        self._arrived(digest, upload.key)

    def _unless_gone(self, seen: FileState, problem: ClientError) -> None:
        """An upload that S3 has ended meanwhile is begun anew by the next send."""
        if code_of(problem) == GONE:
            self._memory.unfinished.pop(seen, None)

    def _give_up(self, seen: FileState) -> None:
        if (upload := self._memory.unfinished.pop(seen, None)) is not None:
            abort(self._client, self._bucket, upload)

    # Sending

    def _put(self, key: str, piece: memoryview) -> None:
        body = Payload(piece)
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ChecksumCRC32=body.crc32())

    def _arrived(self, digest: str, key: str) -> None:
        if self._pack_key is not None:
            self._memory.places[digest] = Location(key)
        else:
            self._memory.objects[key] = digest

    def _make_blocks(self, todo: Sequence[FileState]) -> None:
        """As many blocks as may be held, of the size of the largest part; memory that is never written to costs nothing."""
        sizes = [PACK if self._is_packed(seen) else min(seen.size, part_size(seen.size)) for seen in todo]
        size = max(sizes, default=0)
        for _ in range(max(2, min(CONNECTIONS, HELD // max(size, 1)))):
            self._blocks.put(memoryview(bytearray(size)))

    def _take(self) -> memoryview:
        """Returns a free block. Raises where a send has failed meanwhile."""
        self._pace.wait()
        block = self._blocks.get()
        if self._failed.is_set():
            self._blocks.put(block)
            raise CutOff("another part of this send has failed")
        return block

    def _start(self, work: Callable[[], None], block: memoryview | None = None) -> Future[None]:
        def run() -> None:
            try:
                if not self._failed.is_set():
                    work()
                    self._pace.wait()
            except BaseException:
                self._failed.set()
                raise
            finally:
                if block is not None:
                    self._blocks.put(block)

        job = self._pool.submit(run)
        self._jobs.append(job)
        return job


def part_size(size: int) -> int:
    return max(PART, -(-size // MOST_PARTS))


def abort(client: Any, bucket: str, upload: PartedUpload) -> None:
    """Tells S3 to forget the parts. Where that fails, the bucket's lifecycle does it within days."""
    with suppress(Exception):
        client.abort_multipart_upload(Bucket=bucket, Key=upload.key, UploadId=upload.upload)

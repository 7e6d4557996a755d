"""A bucket's objects, and the uploads in parts that are not complete, with S3's checks of what arrives."""

from __future__ import annotations

import base64
import hashlib
import itertools
import threading
import zlib
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localaws.model import Refused
from localaws.sink.wire import Request

LEAST_PART = 5 * 1024 * 1024
MOST_DELETED = PAGE = 1000
SIGNED_OTHERWISE = ("UNSIGNED-PAYLOAD", "STREAMING-")
Digested = dict[str, str]


def checked(request: Request) -> list[str]:
    """Compares the body with every checksum that came along, and returns their kinds. Raises Refused, for a kind that nobody taught as
    well."""
    told, found = {**request.headers, **request.trailers}, list[str]()
    if wanted := told.get("content-md5"):
        found.append("MD5")
        if wanted != _base64(hashlib.md5(request.body).digest()):
            raise Refused("BadDigest", "The Content-MD5 you specified did not match what we received.")
    signed = told.get("x-amz-content-sha256", SIGNED_OTHERWISE[0])
    if not signed.startswith(SIGNED_OTHERWISE) and request.body:
        found.append("SHA-256 of the signature")
        if signed != hashlib.sha256(request.body).hexdigest():
            raise Refused(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )
    for name, wanted in told.items():
        kind = name.removeprefix("x-amz-checksum-")
        if kind == name or kind in ("algorithm", "mode", "type"):
            continue
        if kind not in KINDS:
            raise Refused("NotImplemented", f"{name} is not checked here", 501)
        found.append(kind.upper())
        if wanted != _base64(KINDS[kind](request.body)):
            raise Refused("BadDigest", f"The {kind.upper()} you specified did not match the calculated checksum.")
    return found


KINDS = {
    "crc32": lambda body: zlib.crc32(body).to_bytes(4, "big"),
    "sha1": lambda body: hashlib.sha1(body).digest(),
    "sha256": lambda body: hashlib.sha256(body).digest(),
}


def checksums(request: Request) -> Digested:
    """The checksums that came along, which an answer repeats."""
    told = {**request.headers, **request.trailers}
    return {name: value for name, value in told.items() if name.removeprefix("x-amz-checksum-") in KINDS}


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@dataclass(frozen=True)
class Stored:
    """An object; one that came in parts keeps them as they came."""

    pieces: tuple[bytes | bytearray, ...]
    etag: str

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    def range(self, start: int, end: int) -> list[memoryview]:
        """Bytes from `start` up to `end`."""
        found, at = [], 0
        for piece in self.pieces:
            if at < end and start < at + len(piece):
                found.append(memoryview(piece)[max(0, start - at) : end - at])
            at += len(piece)
        return found


@dataclass
class Upload:
    key: str
    algorithm: str
    parts: dict[int, tuple[bytes | bytearray, str, Digested]] = field(default_factory=dict)


class Bucket:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Upload] = {}
        self._sorted: list[str] = []
        self._numbers, self._turn = itertools.count(1), threading.Lock()

    def put(self, key: str, *pieces: bytes | bytearray) -> Stored:
        with self._turn:
            stored = Stored(pieces, f'"e{next(self._numbers):08d}"')
            if key not in self.objects:
                insort(self._sorted, key)
            self.objects[key] = stored
        return stored

    def put_new(self, key: str, body: bytes | bytearray, condition: str | None) -> Stored:
        """Raises Refused where `condition` wants a key that is not there."""
        if condition is not None and key in self.objects:
            raise Refused("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", 412)
        return self.put(key, body)

    def get(self, key: str) -> Stored:
        """Raises Refused."""
        if key not in self.objects:
            raise Refused("NoSuchKey", "The specified key does not exist.", 404)
        return self.objects[key]

    def delete(self, keys: list[str]) -> None:
        """At most 1,000 in a call; what is not there counts as deleted. Raises Refused."""
        if len(keys) > MOST_DELETED:
            raise Refused("MalformedXML", "The XML you provided was not well-formed or did not validate")
        with self._turn:
            for key in keys:
                self.objects.pop(key, None)
            self._sorted = sorted(self.objects)

    def page(self, prefix: str, after: str, most: int) -> tuple[list[str], bool]:
        """The next keys, and whether more follow."""
        with self._turn:
            start = bisect_right(self._sorted, after) if after >= prefix else bisect_right(self._sorted, prefix)
            if after < prefix and prefix in self.objects:
                start -= 1
            found = [key for key in itertools.islice(self._sorted, start, start + most + 1) if key.startswith(prefix)]
        return found[:most], len(found) > most

    def begin(self, key: str, algorithm: str) -> str:
        with self._turn:
            name = f"upload-{next(self._numbers)}"
            self.uploads[name] = Upload(key, algorithm)
        return name

    def part(self, name: str, number: int, request: Request) -> str:
        """Returns its ETag. Raises Refused."""
        upload = self.upload(name)
        if not 1 <= number <= 10_000:
            raise Refused("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
        told = checksums(request)
        if upload.algorithm and f"x-amz-checksum-{upload.algorithm.lower()}" not in told:
            raise Refused("InvalidRequest", f"Checksum Type mismatch occurred, expected {upload.algorithm}")
        etag = f'"p{next(self._numbers):08d}"'
        upload.parts[number] = (request.body, etag, told)
        return etag

    def complete(self, name: str, wanted: Sequence[tuple[int, Mapping[str, str]]], size: str | None) -> Stored:
        """`wanted`: numbers, and what is said of these parts; `size`: of the object, where it is said. Raises Refused."""
        upload = self.upload(name)
        numbers = [number for number, _ in wanted]
        if not wanted or numbers != sorted(set(numbers)):
            raise Refused("InvalidPartOrder", "The list of parts was not in ascending order.")
        for number, said in wanted:
            body, etag, told = upload.parts.get(number, (b"", "", {}))
            digests = {f"x-amz-checksum-{name[8:].lower()}": text for name, text in said.items() if name != "ETag"}
            if said.get("ETag", "").strip('"') != etag.strip('"') or any(told.get(n) != v for n, v in digests.items()):
                raise Refused("InvalidPart", "One or more of the specified parts could not be found.")
            if number != numbers[-1] and len(body) < LEAST_PART:
                raise Refused("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
        if size is not None and int(size) != sum(len(upload.parts[number][0]) for number in numbers):
            raise Refused(
                "InvalidRequest", "The provided 'x-amz-mp-object-size' header does not match what was computed"
            )
        stored = self.put(upload.key, *(upload.parts[number][0] for number in numbers))
        del self.uploads[name]
        return stored

    def abort(self, name: str) -> None:
        """Raises Refused."""
        self.upload(name)
        del self.uploads[name]

    def upload(self, name: str) -> Upload:
        """Raises Refused."""
        if name not in self.uploads:
            raise Refused("NoSuchUpload", "The specified multipart upload does not exist.", 404)
        return self.uploads[name]

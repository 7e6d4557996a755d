"""Where the bytes of files are in a bucket, and what an agent remembers of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.snapshot import FileState
from contract.commits import CommittedFile

PACK = 8 * 1024 * 1024
"""The size of a pack, a few files less: one object, one request."""
PART = 8 * 1024 * 1024
"""Files larger than this are sent in parts, of this size where there are not too many."""
SMALL = 1024 * 1024
"""Files up to this size go into packs."""


@dataclass(frozen=True)
class Location:
    """An object, and where in it a file begins."""

    key: str
    offset: int = 0


class SentBody(NamedTuple):
    """What S3 has of a body that was sent."""

    etag: str
    crc32: int


@dataclass
class PartedUpload:
    """An upload in parts that is not complete; where it was cut, the next send goes on with it."""

    key: str
    upload: str
    parts: dict[int, SentBody] = field(default_factory=dict)
    """By number, those that have arrived."""


@dataclass
class Memory:
    """What one committer knows. A send adds to it as objects arrive, so that one that fails is not repeated from its beginning."""

    digests: dict[FileState, str] = field(default_factory=dict)
    places: dict[str, Location] = field(default_factory=dict)
    """Of files that share objects or have keys by content, by their digest (`CommittedFile.digest`)."""
    objects: dict[str, str] = field(default_factory=dict)
    """Of files that have an object under a key of their own, which newer content replaces: key to digest."""
    heads: dict[str, str] = field(default_factory=dict)
    """Of large files: size and CRC32 of the first part to the digest of the whole."""
    unfinished: dict[FileState, PartedUpload] = field(default_factory=dict)

    def adopt(self, seen: FileState, file: CommittedFile, *, here: bool = True) -> None:
        """Takes note of a file that was restored: of its digest, and of where it is if that is in this bucket (`here`)."""
        self.digests[seen] = file.digest
        if here:
            self.places[file.digest] = Location(file.key, file.offset)
            self.objects[file.key] = file.digest

    def forget(self, keys: Collection[str]) -> None:
        """Objects that are deleted, or shall be; files in them are sent again."""
        self.places = {digest: place for digest, place in self.places.items() if place.key not in keys}
        self.objects = {key: digest for key, digest in self.objects.items() if key not in keys}
        there = {*self.places, *self.objects.values()}
        self.heads = {head: digest for head, digest in self.heads.items() if digest in there}

    @property
    def keys(self) -> set[str]:
        """Of the objects that were sent, or restored, and not forgotten since."""
        return {*self.objects, *(place.key for place in self.places.values())}

    def keep(self, seen: Iterable[FileState]) -> None:
        """Forgets the digests of files that are not there any more."""
        there = set(seen)
        self.digests = {one: digest for one, digest in self.digests.items() if one in there}


def wasteful(
    files: Iterable[CommittedFile], sizes: dict[str, int], *, least_live: float = 0.5, most: int = 8 * PACK
) -> set[str]:
    """Keys of packs in which so little is alive that it is worth sending once more: then these packs can be deleted.

    `sizes`: of objects, by key, as a list of the bucket tells them. Packs of which less than `least_live` is alive come first, the
    emptiest of them first, until `most` bytes would be sent. So once the next commit has been made, either at least `least_live` of
    every pack is alive, or the rest has its turn later. A pack is never larger than PACK, so what one small file can keep is bounded.
    """
    live: dict[str, dict[int, int]] = {}
    for file in files:
        pieces = live.setdefault(file.key, {})
        pieces[file.offset] = max(file.size, pieces.get(file.offset, 0))  # an empty file begins where another does
    found = []
    for key, pieces in live.items():
        alive, whole = sum(pieces.values()), sizes.get(key, 0)
        if whole <= PACK and alive < whole * least_live:
            found.append((alive / whole, key, alive))
    chosen, left = set[str](), most
    for _, key, alive in sorted(found):
        if alive > left:
            break
        left -= alive
        chosen.add(key)
    return chosen

"""Reads the entries of untrusted archives one by one, in bounded memory even if an archive lies about itself."""

from __future__ import annotations

import gzip
import os
import stat
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PureWindowsPath
from typing import IO, Any, cast

from contract.archives import MOST_PATH, ArchiveEntry, Refused, named, points_out

MOST_HEADER = 1024**2
"""The most bytes that may describe one entry of a tar."""
MOST_BEHIND = 64 * 1024**2
"""The most bytes behind the last entry of a tar.gz that are read on to the checksum at its end. An honest archive has some 10,000."""
CHUNK = 1024**2
PACK = "what `tar -C FOLDER -czf code.tar.gz .` makes"
KINDS = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFREG}
ZIP, GZIP = b"PK", b"\x1f\x8b"
OTHER_FORMS = {
    ZIP + b"\x03\x04": "a zip",
    ZIP + b"\x05\x06": "a zip",
    GZIP: "packed with gzip",
    b"\xfd7zXZ\0": "packed with xz",
    b"BZh": "packed with bzip2",
    b"\x28\xb5\x2f\xfd": "packed with Zstandard",
    b"\x04\x22\x4d\x18": "packed with LZ4",
    b"\x1f\x9d": "packed with compress",
    b"LZIP": "packed with lzip",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"version https://git-lfs.github.com/spec/": "the pointer of git-LFS to an archive",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
    b"<?xml": "an XML document",
}
"""How files begin that people name like an archive of another form."""
TAR_MAGIC = slice(257, 262), b"ustar"
READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
"""The methods of a zip that Python 3.10 knows, which the oldest image of a node has."""
OTHER_METHODS = {9: "Deflate64", 20: "Zstandard", 93: "Zstandard", 95: "xz", 98: "PPMd", 99: "encryption"}
OF_WINDOWS = {0, 6, 10, 11, 14}
"""The systems of a zip's maker whose names cannot have a backslash, which separates folders there: FAT, HPFS, NTFS and VFAT."""
UTF8_FLAG = 0x800
UNICODE_PATH = 0x7075
"""The extra field with which Info-ZIP, WinZip and WinRAR say a name in UTF-8."""


class TooLarge(ValueError):
    """An archive describes its entries in more bytes than a reader takes."""


class Metered:
    """Limits how many bytes of a file may be read until the next allowance.

    Tar and zip headers say how many bytes must be read into memory, and a header may lie.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = sys.maxsize
        self.last = b""
        """The bytes that were read last."""

    def read(self, size: int = -1) -> bytes:
        """Raises TooLarge when the caller asks for more than is left, and the file has more."""
        data: bytes = self._file.read(size if 0 <= size <= self.left else min(self.left, sys.maxsize - 1) + 1)
        if len(data) > self.left:
            raise TooLarge("its list of entries is larger than that of any valid archive")
        self.left -= len(data)
        self.last = data
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def entries(packed: IO[bytes], name: str, most_directory: int) -> Iterator[ArchiveEntry]:
    """Yields the entries of an archive: of a .zip by its name, of anything else as of a tar or tar.gz. A zip's list of entries may have
    `most_directory` bytes. Raises Refused, and what the readers of the formats raise."""
    if name.endswith(".zip"):
        yield from _zipped(packed, most_directory)
        return
    is_gzip = packed.read(len(GZIP)) == GZIP
    packed.seek(0)
    if not is_gzip:
        _check_form(packed, GZIP)
    yield from _tarred(packed, is_gzip=is_gzip)


def _check_form(packed: IO[bytes], own: bytes) -> None:
    """Raises Refused for a file that begins as those of another form do. `own`: how a packed file of its name would begin."""
    head, (place, magic) = packed.read(tarfile.BLOCKSIZE), TAR_MAGIC
    packed.seek(0)
    if head[place] == magic:  # what a tar begins with is the name of its first entry
        found = "a tar" if own == ZIP else ""
    else:
        found = next((form for start, form in OTHER_FORMS.items() if head.startswith(start)), "")
    if found and not head.startswith(own):
        raise Refused(f"is {found}, whatever its name says", PACK)


def _tarred(packed: IO[bytes], *, is_gzip: bool) -> Iterator[ArchiveEntry]:
    file = Metered(gzip.GzipFile(fileobj=packed) if is_gzip else packed)
    file.left = MOST_HEADER
    with tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar:
        for member in tar:
            file.left = sys.maxsize

            def content(member: tarfile.TarInfo = member) -> IO[bytes]:
                source = tar.extractfile(member)
                if source is None:
                    raise tarfile.ReadError(f"{member.name} has no content")
                return source

            kind = KINDS.get(member.type, stat.S_IFREG if member.isreg() else stat.S_IFCHR)
            yield ArchiveEntry(
                name=member.name,
                mode=kind | member.mode & 0o777,
                size=member.size,
                target=member.linkname,
                hard=member.islnk(),
                content=content,
                modified=member.mtime,
                sparse=member.issparse(),
            )
            # Otherwise tarfile's list of members would grow with the archive.
            tar.members = []  # type: ignore[attr-defined]
            file.left = MOST_HEADER
    if file.last.strip(b"\0"):  # tarfile silently takes a header that it cannot read for the end
        raise tarfile.ReadError("the bytes after its last readable entry are neither an entry nor its end")
    if is_gzip:
        _read_on(file)


def _read_on(file: Metered) -> None:
    """Reads a gzip to the checksum at its end, before which tarfile stops."""
    file.left = MOST_BEHIND
    try:
        while file.read(CHUNK):
            pass
    except TooLarge:
        return
    except gzip.BadGzipFile as problem:
        if "Not a gzipped file" not in str(problem):
            raise
        raise Refused("has other bytes after its end", PACK) from problem


def _zipped(packed: IO[bytes], most_directory: int) -> Iterator[ArchiveEntry]:
    file = Metered(packed)
    file.left = most_directory
    try:
        directory = zipfile.ZipFile(cast("IO[bytes]", file))
    except zipfile.BadZipFile:
        packed.seek(0)
        _check_form(packed, ZIP)
        raise
    with directory as whole:
        file.left = sys.maxsize
        for info in whole.infolist():
            name = _name(info)
            if info.flag_bits & 1:
                raise Refused(f"has the entry {named(name)}, which is encrypted", PACK)
            if info.compress_type not in READABLE:
                method = OTHER_METHODS.get(info.compress_type, f"method {info.compress_type}")
                raise Refused(f"has the entry {named(name)}, packed with {method}, which Python 3.10 cannot read", PACK)

            def content(info: zipfile.ZipInfo = info) -> IO[bytes]:
                return whole.open(info)

            mode = info.external_attr >> 16
            kind = stat.S_IFDIR if name.endswith("/") else stat.S_IFMT(mode) or stat.S_IFREG
            yield ArchiveEntry(
                name=name,
                mode=kind | (mode & 0o777 or 0o644),
                size=info.file_size,
                target=_target(content()) if kind == stat.S_IFLNK else "",
                content=content,
                light=info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
            )


def _name(info: zipfile.ZipInfo) -> str:
    """Returns an entry's name as the system of its maker meant it. Raises Refused for an absolute one of Windows."""
    name = _text(info)
    if info.create_system not in OF_WINDOWS:
        return name
    if PureWindowsPath(name).drive:
        raise points_out(name)
    return name.replace("\\", "/")


def _text(info: zipfile.ZipInfo) -> str:
    """Returns an entry's name as text: macOS writes UTF-8 without the flag that says so, and Python takes that for code page 437."""
    if info.flag_bits & UTF8_FLAG:
        return info.orig_filename
    raw = info.orig_filename.encode("cp437")
    try:
        return _unicode_path(info.extra, raw) or raw.decode()
    except UnicodeDecodeError:
        return info.orig_filename


def _unicode_path(extra: bytes, raw: bytes) -> str:
    """Returns the name that an extra field says for the name `raw`; empty where there is none."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        body, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == UNICODE_PATH and body[:1] == b"\1" and body[1:5] == zlib.crc32(raw).to_bytes(4, "little"):
            return body[5:].decode()
    return ""


def _target(link: IO[bytes]) -> str:
    """Reads where a symbolic link of a zip leads. Reads only a part of it, because the entry may be a zip bomb."""
    with link as source:
        return os.fsdecode(source.read(MOST_PATH + 1))

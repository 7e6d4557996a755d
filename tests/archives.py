"""Archives that are made in memory."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

Entry = tuple[str | tarfile.TarInfo, bytes | str]
UNIX, WINDOWS = 3, 0
"""Systems that make a zip."""


def tarred(*entries: Entry | tarfile.TarInfo, mode: str = "w:gz") -> bytes:
    """An archive of files (name and content) and of whatever else a TarInfo says."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
                continue
            name, content = entry
            body = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return packed.getvalue()


def packed(*names: str) -> bytes:
    """A .tar.gz of files of these names."""
    return tarred(*((name, f"# {name}") for name in names))


def zip_with(*entries: tuple[str | zipfile.ZipInfo, str | bytes]) -> bytes:
    """A .zip of names, or of what else a ZipInfo says, and contents."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as whole:
        for entry, content in entries:
            whole.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return body.getvalue()


def zipped(*names: str) -> bytes:
    """A .zip of files of these names."""
    return zip_with(*((name, f"# {name}") for name in names))


def said_to_unpack_to(size: int, name: str) -> bytes:
    """A .zip of one file, which its list of entries says to have `size` bytes, unpacked."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as whole:
        whole.writestr(name, "")
        whole.filelist[0].file_size = size
    return body.getvalue()


def zip_entry(name: str, mode: int = 0, *, system: int = UNIX) -> zipfile.ZipInfo:
    """One with a mode, as Unix has it, and the name as it stands."""
    made = zipfile.ZipInfo("x")
    made.filename, made.create_system, made.external_attr = name, system, mode << 16
    return made


def with_method(body: bytes, method: int) -> bytes:
    """A .zip whose last entry says to be packed with another method."""
    raw = bytearray(body)
    for header, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = raw.rindex(header) + place
        raw[start : start + 2] = method.to_bytes(2, "little")
    return bytes(raw)


def without_utf8_flag(body: bytes) -> bytes:
    """A .zip whose entries do not say that their names are in UTF-8, as those of macOS and of Linux do not."""
    raw = bytearray(body)
    for header, place in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        start = -1
        while (start := raw.find(header, start + 1)) >= 0:
            raw[start + place] &= ~0x08
    return bytes(raw)


def flipped(body: bytes, place: int) -> bytes:
    """The same bytes, but for one."""
    raw = bytearray(body)
    raw[place] ^= 0xFF
    return bytes(raw)


def program(name: str, content: str | bytes) -> Entry:
    """An executable file."""
    return header(name, mode=0o755), content


def tar_of(folder: Path, *entries: Entry | tarfile.TarInfo) -> Path:
    """A job's code archive in `folder`."""
    file = folder / "code.tar.gz"
    file.write_bytes(tarred(*entries))
    return file


def zip_of(folder: Path, *entries: tuple[str | zipfile.ZipInfo, str | bytes]) -> Path:
    file = folder / "code.zip"
    file.write_bytes(zip_with(*entries))
    return file


def header(name: str, **facts: Any) -> tarfile.TarInfo:
    """The header of an entry that says more than its name: `mode`, `mtime`, `type`."""
    made = tarfile.TarInfo(name)
    for fact, value in facts.items():
        setattr(made, fact, value)
    return made


def raw_header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header that announces a size, whatever comes behind it."""
    return header(name, size=size, type=kind).tobuf(tarfile.GNU_FORMAT)


def link(name: str, target: str, *, hard: bool = False) -> tarfile.TarInfo:
    return header(name, type=tarfile.LNKTYPE if hard else tarfile.SYMTYPE, linkname=target)


FILE = ("train.py", b"print()")
UNSAFE_TARS: dict[str, list[Entry | tarfile.TarInfo]] = {
    "an absolute path": [("/etc/evil", b"x")],
    "a path that climbs": [("a/../../evil", b"x")],
    "a link out": [link("evil", "../outside")],
    "an absolute link": [link("evil", "/etc/passwd")],
    "a file through a link made inside": [link("a/b/up", ".."), link("a/b/evil", "up/../..")],
    "a link that leads out only once another one exists": [link("a/evil", "x/../.."), link("a/x", "..")],
    "a hard link out": [link("evil", "../outside", hard=True)],
    "a hard link to an absolute path": [link("evil", "/etc/passwd", hard=True)],
    "a hard link to nothing": [link("evil", "train.py", hard=True)],
    "a hard link to a link": [FILE, link("soft", "train.py"), link("evil", "soft", hard=True)],
    "a device": [header("evil", type=tarfile.CHRTYPE)],
    "a pipe": [header("evil", type=tarfile.FIFOTYPE)],
    "the folder itself": [(".", b"evil")],
}

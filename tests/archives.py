"""Archives that are made in memory."""

from __future__ import annotations

import io
import tarfile


def tarred(*entries: tuple[str, bytes | str] | tarfile.TarInfo, mode: str = "w:gz") -> bytes:
    """An archive of files (name and content) and of whatever else a TarInfo says."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
                continue
            name, content = entry
            body = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return packed.getvalue()


def link(name: str, target: str, *, hard: bool = False) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = (tarfile.LNKTYPE if hard else tarfile.SYMTYPE), target
    return info

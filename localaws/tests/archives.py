"""Archives that are made in memory."""

from __future__ import annotations

import io
import tarfile
import zipfile


def tarred(*entries: tuple[str, bytes | str]) -> bytes:
    """A .tar.gz of names and contents."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in entries:
            body = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return packed.getvalue()


def zip_with(*entries: tuple[str, str | bytes]) -> bytes:
    """A .zip of names and contents."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as whole:
        for entry, content in entries:
            whole.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return body.getvalue()


def packed(*names: str) -> bytes:
    """A .tar.gz of files of these names."""
    return tarred(*((name, f"# {name}") for name in names))

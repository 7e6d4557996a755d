"""Unpacks a build context: `python3 unpack.py context.tar.gz folder`. What leaves the folder is refused by the reader itself."""

from __future__ import annotations

import stat
import sys
import tarfile
import zipfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """The Build machine has looked through the archive before; `data` refuses once more what points out of the folder."""
    folder.mkdir(parents=True)
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                place = Path(packed.extract(entry, folder))
                if stat.S_ISREG(mode := entry.external_attr >> 16):  # zipfile forgets who may execute what
                    place.chmod(mode & 0o777 | 0o600)
    else:
        with tarfile.open(archive) as packed_tar:
            packed_tar.extractall(folder, filter="data")
    if not (folder / "Dockerfile").is_file():
        raise SystemExit("The context has no Dockerfile at its root.")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))

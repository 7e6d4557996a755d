"""Containers in roots of their own, as tests run them: in the base image's, or in that of an image which buildah has built."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from localaws.containers import base, building, real, unpacked
from localaws.containers.unpacked import Unpacked
from localaws.testing.waiting import HANG_S

LACKS = real.lacks()
NEEDED = pytest.mark.skipif(bool(LACKS), reason=f"images are not built for real here: {LACKS}")
AWSS = "763104351884.dkr.ecr.eu-central-1.amazonaws.com/pytorch-training:2.8.0-gpu"
BASE_ROOT = Unpacked(base.PLACE / base.ROOT, {"Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]})


def started(root: Unpacked, note: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    """A container whose output is read; `note` is a file of the test's."""
    command = root.command(words, {**root.variables, "HOME": "/root"}, note=note, **options)
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ran(root: Unpacked, note: Path, *words: str, **options: Any) -> tuple[int, str]:
    """The exit code and what was printed."""
    with started(root, note, *words, **options) as process:
        out, _ = process.communicate(timeout=HANG_S)
    return process.returncode, out


class Builder:
    """Builds for real, each folder once."""

    def __init__(self, images: Path) -> None:
        self.images = images
        self._made: dict[object, str] = {}

    def manifest(self, folder: Path, arguments: Mapping[str, str], platform: str = "linux/amd64") -> str:
        key = (folder, *sorted(arguments.items()), platform)
        if key not in self._made:
            given = [f"{name}={value}" for name, value in arguments.items()]
            self._made[key] = building.build(self.images, folder, given, platform)
        return self._made[key]

    def digest(self, folder: Path, arguments: Mapping[str, str], platform: str = "linux/amd64") -> str:
        return f"sha256:{hashlib.sha256(self.manifest(folder, arguments, platform).encode()).hexdigest()}"

    def image(self, folder: Path, arguments: Mapping[str, str], platform: str = "linux/amd64") -> Unpacked:
        found = unpacked.built(self.images, self.digest(folder, arguments, platform))
        assert found is not None
        return found


def dockerfile(folder: Path, text: str, files: Iterable[tuple[str, str]] = ()) -> Path:
    """A folder to build from."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    for name, content in files:
        (folder / name).write_text(content)
    return folder


def configuration(images: Path, manifest: str) -> dict[str, Any]:
    """What the image says of itself, its history included."""
    digest = json.loads(manifest)["config"]["digest"]
    found: dict[str, Any] = json.loads((images / "blobs" / digest.removeprefix("sha256:")).read_text())
    return found

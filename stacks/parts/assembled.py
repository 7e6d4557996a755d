"""Assembles folders at synth without Docker: the contents of a function's, or a node's, archive."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii

ROOT = Path(__file__).parents[2]
LAMBDA, NODE, CONTRACT = ROOT / "lambda", ROOT / "node", ROOT / "contract"
LAYER, AGENT_LIBRARIES = ROOT / "build" / "layer", ROOT / "build" / "agent-libs" / "python"
SEARCH_LAYER = ROOT / "build" / "search-layer"
COMPILED = shutil.ignore_patterns("__pycache__", "*.pyc")
"""Bytecode differs from run to run, and would redeploy unchanged functions."""
FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""A zip keeps the modes of its sources, and Lambda reads its files as another user than their owner."""


class NotSetUp(RuntimeError):
    """A deployment needs something that this machine lacks; the message says how to make it."""


@jsii.implements(cdk.ILocalBundling)
class Assembled:
    """Copies files and folders to places in the asset: `{"contract": Path(...)}`; the place "." is the asset's root. Bytes in place of a
    path are the file itself."""

    def __init__(self, contents: Mapping[str, Path | bytes]) -> None:
        for source in contents.values():
            if isinstance(source, Path):
                existing(source)
        self._contents = dict(contents)

    def try_bundle(self, output_dir: str, *, image: cdk.DockerImage, **_options: Any) -> bool:  # noqa: ARG002
        """Assembles the asset; CDK calls it. Never leaves the work to Docker."""
        for place, source in sorted(self._contents.items()):
            target = Path(output_dir, place)
            if isinstance(source, bytes):
                target.write_bytes(source)
            elif source.is_dir():
                shutil.copytree(source, target, ignore=COMPILED, copy_function=shutil.copyfile, dirs_exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
        set_modes(Path(output_dir))
        return True

    def options(self) -> cdk.BundlingOptions:
        """Returns options for an asset whose hash must be the hash of its contents (AssetHashType.OUTPUT)."""
        return cdk.BundlingOptions(image=cdk.DockerImage.from_registry("never-pulled"), local=self)


def set_modes(folder: Path) -> None:
    """Makes everything readable for everybody, whatever the umask of whoever deploys, cloned or installed the sources."""
    folder.chmod(FOLDER_MODE)
    for path in folder.rglob("*"):
        path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)


def existing(path: Path) -> Path:
    """Returns `path`. Raises NotSetUp where it does not exist."""
    if not path.exists():
        raise NotSetUp(f"{path.relative_to(ROOT)} is missing: run `make setup`")
    return path


def files(folder: Path) -> list[Path]:
    """Lists the shipped files under `folder`, in the same order on every machine."""
    left_out = COMPILED(str(folder), [entry.name for entry in folder.iterdir()])
    wanted = sorted(entry for entry in folder.iterdir() if entry.name not in left_out)
    return [file for entry in wanted for file in (files(entry) if entry.is_dir() else [entry])]

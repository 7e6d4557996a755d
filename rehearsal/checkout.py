"""Puts the tree of a commit beside this one, so that both can be synthesised."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rehearsal.assembly import MADE

ROOT = Path(__file__).parent.parent


class NoCommit(Exception):
    """The repository has no such commit; the message names it."""


def check_out(commit: str, folder: Path, root: Path = ROOT) -> Path:
    """Puts the tree of a commit into the folder, with what this tree has built for deployments. Raises NoCommit."""
    named = f"{commit}^{{commit}}"
    found = subprocess.run(
        ["git", "rev-parse", "-q", "--verify", "--end-of-options", named],
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
    )
    if found.returncode:
        raise NoCommit(f"git has no commit {commit}")
    folder.mkdir(parents=True)
    with subprocess.Popen(["git", "archive", found.stdout.strip()], cwd=root, stdout=subprocess.PIPE) as git:
        subprocess.run(["tar", "-x", "-C", str(folder)], stdin=git.stdout, check=True)
    for made in MADE:
        place = folder / made
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(root / made)
    return folder

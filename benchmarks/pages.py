"""Writes the pages of docs/benchmarks, each with the commit that it was measured at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURED_AT = "Measured at commit"
DIRTY = "-dirty"
"""Follows the commit where files differ from it."""
NOTED = ".commit"
"""Ending of the file beside a part's results that says at which commit they were measured."""


def commit() -> str:
    """Returns the abbreviated hash of the commit that is checked out, with DIRTY where files differ from it; "unknown" without git."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=10", f"--dirty={DIRTY}"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found or "unknown"


def write_page(page: Path, text: str, commits: Iterable[str] = ()) -> None:
    """Writes a page, and beneath its title at which commits its figures were measured: now, unless `commits` says otherwise."""
    title, _, rest = text.partition("\n")
    shown = ", ".join(f"`{one}`" for one in sorted(set(commits)) or [commit()])
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"{title}\n\n{MEASURED_AT} {shown}.\n\n{rest.lstrip()}", "utf-8")


def note_commit(results: Path) -> None:
    """Writes down at which commit the results in this file were measured, for a page that is made of several."""
    results.with_suffix(NOTED).write_text(commit(), "utf-8")


def noted_commits(results: Iterable[Path]) -> set[str]:
    """Returns the commits at which the results in these files were measured."""
    notes = (one.with_suffix(NOTED) for one in results)
    return {note.read_text("utf-8") if note.exists() else "unknown" for note in notes}

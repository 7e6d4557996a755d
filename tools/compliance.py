"""Writes the table of docs/guides/compliance.md: what rule packs still find with the setting `compliance`, and why it stays."""

from __future__ import annotations

from pathlib import Path

from stacks.parts.compliance_findings import FINDINGS

PAGE = Path(__file__).parent.parent / "docs" / "guides" / "compliance.md"
BEGIN = "<!-- From here on written by `make docs` from stacks/parts/compliance_findings.py. -->"
"""Ends the part of the page that people write."""
HEAD = f"""{BEGIN}

| Rule | On | Why it stays |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    written, begin, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    if not begin:
        raise ValueError(f"{PAGE.name} has no line {BEGIN}")
    return {PAGE: written + table()}


def table() -> str:
    rows = [
        f"| {', '.join(f'{pack}-{one.rule}' for pack in one.packs)} | {one.on} | {one.reason} |" for one in FINDINGS
    ]
    return HEAD + "\n".join(rows) + "\n"

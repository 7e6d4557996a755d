"""Makes a report fit into an item of DynamoDB, whatever the job prints."""

from __future__ import annotations

import json
from dataclasses import replace

from contract.codec import compact
from contract.reports import Exit, NodeReport

MOST = 300_000
"""Bytes of a report; its item may have 409,600."""
MOST_TAIL = 120_000
"""Bytes of the lines of one `Exit`, of which a report has two."""
MOST_TEXT = 2_000
"""Characters of each sentence, of at most six bytes (`\\u0000`). A report has four."""


def document_of(report: NodeReport) -> bytes:
    """The report as JSON. Of one that is longer than `MOST` the oldest lines of output and the middle of long sentences are left out."""
    document = compact(report)
    if len(document) <= MOST:
        return document
    order = report.order and replace(report.order, reason=_short(report.order.reason))
    return compact(
        replace(
            report, note=_short(report.note), order=order, outcome=_fitted(report.outcome), exit=_fitted(report.exit)
        )
    )


def _fitted(ending: Exit | None) -> Exit | None:
    if ending is None:
        return None
    kept, left = list[str](), MOST_TAIL
    for line in reversed(ending.tail):
        left -= len(json.dumps(line, ensure_ascii=False).encode()) + 1
        if left < 0:
            break
        kept.insert(0, line)
    return replace(ending, reason=_short(ending.reason), tail=tuple(kept))


def _short(text: str) -> str:
    """The text's beginning and its end, which says most where a program has spoken."""
    half = MOST_TEXT // 2
    return text if len(text) <= MOST_TEXT else f"{text[:half]} [...] {text[-half:]}"

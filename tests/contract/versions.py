"""Documents as a version writes them, for the versions after it to read: `make documents` keeps those of this one.

A deploy and a rollback happen under running jobs: functions of one version meet documents of another.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from contract.codec import encode
from contract.commits import CheckpointSet, Commit, CommittedFile, SetPlan
from contract.grid import LineOutcome, Record
from contract.intents import Intent, LaunchAnswer, LaunchOutcome
from contract.jobs import Job
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase, Progress
from contract.sessions import AttemptSessions
from tests.builders import INTENT, JOB, LAUNCHED

FOLDER = Path(__file__).with_name("documents")
KINDS: dict[str, type[Any]] = {
    "job": Job,
    "intent": Intent,
    "report": NodeReport,
    "order": Order,
    "sessions": AttemptSessions,
    "commit": Commit,
    "plan": SetPlan,
    "set": CheckpointSet,
    "record": Record,
}
"""The first word of a document's name to what it is."""
REPORT = NodeReport(job="job-1", attempt=1, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=1.0)
ORDER = Order(kind=OrderKind.STOP, error="Interrupted", reason="a spot notice", by=1_800_000_120, author="rank 0")
FILE = CommittedFile(path="model.pt", size=10, sha256="ab" * 32, key="jobs/job-1/checkpoints/rank-0/abab/model.pt")
RECORD = Record(index=0, line=1, region="eu-central-1", training="t-0", outcome=LineOutcome.FAILED, reason="no")


def list_documents() -> Iterable[tuple[str, Any]]:
    """Yields name and value of each document: one for each word that an Enum of it has."""
    yield "job", JOB
    yield from ((f"report {one.value}", replace(REPORT, phase=one)) for one in Phase)
    yield (
        "report whole",
        replace(REPORT, progress=Progress(step=7), order=ORDER, exit=Exit(code=1, error="NodeLost", tail=("x",))),
    )
    yield from ((f"order {one.value}", replace(ORDER, kind=one)) for one in OrderKind)
    for outcome in LaunchOutcome:
        answer = LAUNCHED if outcome is LaunchOutcome.LAUNCHED else LaunchAnswer(outcome=outcome, at=1.0)
        yield (
            f"intent {outcome.value}",
            replace(INTENT, steps=(replace(INTENT.steps[0], answer=answer), *INTENT.steps[1:])),
        )
    yield from ((f"record {one.value}", replace(RECORD, outcome=one)) for one in LineOutcome)
    yield "sessions", AttemptSessions(since=1.0, until=3601.0)
    yield "commit", Commit(job="job-1", attempt=1, rank=0, step=7, created_at=1.0, final=False, files=(FILE,), number=3)
    yield "plan", SetPlan(number=3, step=7, names=2, named_at=1.0, opened_at=2.0, rank=0)
    yield "set", CheckpointSet(job="job-1", attempt=1, number=3, step=7, closed_at=3.0, parts=("a", ""))


def write_documents() -> dict[str, str]:
    return {name: encode(value).decode() for name, value in list_documents()}


def read_kept() -> dict[str, dict[str, str]]:
    """Returns the documents that were kept, by file; the newest file comes last."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}


def words_of(kind: type[Enum]) -> list[str]:
    return [str(one.value) for one in kind]


def main() -> None:
    """Keeps the documents of this version, if they differ from the newest ones that are kept."""
    documents, kept = write_documents(), read_kept()
    if kept and kept[max(kept)] == documents:
        return
    day = subprocess.run(
        ["git", "log", "-1", "--format=%cs"], capture_output=True, text=True, check=True
    ).stdout.strip()
    number = sum(name.startswith(day) for name in kept) + 1
    (FOLDER / f"{day}-{number}.json").write_text(json.dumps(documents, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

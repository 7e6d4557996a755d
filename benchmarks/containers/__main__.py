"""`make bench-containers`: examples/image_job as a job with its image, as a job without one, and as a line of a grid, in turn.

`python -m benchmarks.containers [ROUNDS]` writes medians and the summaries of the last round into docs/benchmarks/containers.md. Ends
with 1 where a run fails or the three do not end with the same metric.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.containers.page import Row, page
from benchmarks.pages import write_page
from contract import tags
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.services import ec2
from rehearsal import grid
from rehearsal.summary import Summary, summarise
from rehearsal.yard import StartedJob, Yard

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "containers.md"
EXAMPLE = ROOT / "examples" / "image_job"
ROUNDS = 3
LIMIT_S = 300.0
BOOT_S = 40.0
"""Every machine takes as long to boot, so that what differs is not the draw."""
CONDITIONS = Conditions(speed=20.0, boot_s=(BOOT_S, BOOT_S), throttled=0.0, metadata_lost=0.0)
STACKS = ("workflow", "builds", "grid", "images")


def main(given: Sequence[str]) -> int:
    rounds = int(given[0]) if given else ROUNDS
    rows, summaries = list[Row](), dict[str, Any]()
    lacking = real.lacks()
    with (
        tempfile.TemporaryDirectory() as folder,
        Yard(Path(folder) / "work", CONDITIONS, wanted=STACKS, real_images=not lacking) as yard,
    ):
        grid.build_image(yard, EXAMPLE)
        code = yard.upload(EXAMPLE, "image_job")
        imaged = json.loads((EXAMPLE / "job.json").read_text())
        plain = {name: value for name, value in imaged.items() if name not in ("image", "arguments")}
        plain |= {"code": code, "command": ["python", "train.py", *imaged["arguments"]]}
        manifest = grid.upload_manifest(yard, (EXAMPLE / "line.jsonl").read_text(), "line.jsonl")
        for number in range(rounds + 1):  # the first is not counted: it makes byte code, and fills caches
            for name, request in (("with an image", imaged), ("without", plain)):
                summary, row = once(yard, request, name, number)
                print(name, number, row, flush=True)
                summaries[name] = summary
                rows += [row] if number else []
            line = grid.start(yard, {"manifest": manifest}, f"line-{number}")
            line.wait(LIMIT_S)
            summaries["as a line"] = grid.summarise(line, wall_s=0.0)
    metrics = {name: metric(found) for name, found in summaries.items()}
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}"
    text = page(rows, summaries, rounds=rounds, lacking=lacking, machine=machine)
    write_page(PAGE, text)
    print(text)
    return 0 if len(set(metrics.values())) == 1 and None not in metrics.values() else 1


def once(yard: Yard, request: Mapping[str, Any], name: str, number: int) -> tuple[Summary, Row]:
    """Runs one job; its parts are those of its first node, in seconds of this computer. Raises RuntimeError where it fails."""
    began = time.monotonic()
    job = yard.start(request, f"{name.replace(' ', '-')}-{number}")
    ended = job.wait(LIMIT_S)
    if ended["status"] != "SUCCEEDED":
        raise RuntimeError(f"{job.name} ended as {ended['status']}: {ended.get('cause', '')}")
    job.settle()
    return summarise(job, wall_s=time.monotonic() - began), parts(job, name)


def parts(job: StartedJob, name: str) -> Row:
    """Reads the moments of the first node, whose training reports its steps."""
    at = job.reports(1)[0].timeline
    launched = min(one.launched_at for one in ec2.machines().all() if one.tags.get(tags.JOB) == job.name)
    return Row(
        name=name,
        boot_s=at["booted"] - launched,
        prepare_s=at["prepared"] - at["booted"],
        start_s=at["started"] - at["prepared"],
        step_s=at["first_step"] - at["started"],
        whole_s=at["first_step"] - launched,
    )


def metric(summary: Any) -> float | None:
    """The metric of a job's summary, or of the only line of a grid's."""
    if isinstance(summary, Summary):
        return summary.metric
    found: float | None = summary.results[0]["metrics"].get("metric") if summary.results else None
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Writes the cause of a failed execution as the Train machine writes it, by its own expression."""

from __future__ import annotations

from jsonata import Jsonata

from contract import links
from contract.jobs import Job
from stacks.parts import jsonata


def write_cause(job: Job, cause: str) -> str:
    """Returns the cause with the links of a job that ran in each of its regions."""
    found = {**links.of_job(job), "artifacts_by_region": {one: links.of_artifacts(job, one) for one in job.places}}
    parsed = Jsonata(jsonata.TOLD.removeprefix("{%").removesuffix("%}").strip())
    frame = parsed.create_frame()
    frame.bind("problem", {"error": "TrainingFailed", "cause": cause})
    frame.bind("links", found)
    return str(parsed.evaluate(None, frame))

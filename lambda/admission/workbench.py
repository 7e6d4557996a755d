"""Says in the output of Admit what a workbench is, where its work lies, and how it is opened."""

from __future__ import annotations

from contract.jobs import Job
from contract.workbench import FOLDER


def describe_bench(job: Job) -> dict[str, str]:
    """Returns lines for a person: the way in, where the work lies, and when the bench ends. Its instance is not known before Launch, whose
    output has the command of the tunnel; the token is in the log of the node alone."""
    assert job.workbench is not None
    return {
        "open": f"trainyard open {job.id}, or the command in the output of Launch, and then the address in the node's log",
        "work": _place_work(job),
        "ends": f"after {job.workbench.idle_minutes} minutes without activity, and after {job.max_hours:g} hours whatever happens",
    }


def _place_work(job: Job) -> str:
    for one in job.mounted:
        if one.at == FOLDER:
            return f"{FOLDER} is {one.file_system.address}: as large as that file system; nothing of it is copied"
    return (
        f"{FOLDER} is the job's checkpoint, committed every {job.checkpoint_minutes:g} minutes and at the end, in the region where it "
        f"runs; up to what is free of the node's disk of {job.volume_gb} GiB. Go on with resume_from: {job.id}"
    )

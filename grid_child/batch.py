"""Every Batch call of a child: whether a call ended its job."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError

from grid_child.clients import client
from grid_child.trouble import trouble_of


def ended_on_purpose(job: str, region: str) -> str:
    """In words who ended the job, or the array that it is part of, by TerminateJob or CancelJob; empty where no call did.

    SIGTERM alone says nothing: retirement of the task, a reclaim by Fargate Spot and a time-out send it too. Raises Trouble, or
    Unfit where the right is missing.
    """
    try:
        found = client("batch", region).describe_jobs(jobs=list(dict.fromkeys((job, job.partition(":")[0]))))
    except (ClientError, BotoCoreError) as problem:
        raise trouble_of(problem, "batch:DescribeJobs") from problem
    for one in found["jobs"]:
        how = "terminated" if one.get("isTerminated") else "cancelled" if one.get("isCancelled") else ""
        if how:
            return f"the Batch job {one['jobId']} was {how}: {one.get('statusReason') or 'no reason was given'}"
    return ""

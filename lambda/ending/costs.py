"""Says what a job has cost when its instances have ended."""

from __future__ import annotations

from typing import Any

from aws.state import State
from contract import money
from contract.jobs import Job
from ending.instances import Ended


def describe_cost(state: State, job: Job | None, ended: Ended) -> dict[str, Any]:
    """Returns what all attempts have cost at most, US dollars, and for how many seconds their nodes were billed. Raises ClientError or a
    botocore connection error."""
    ends = state.ends(job.id) if job else {}
    usd = money.spent_usd(job, ended.intents, ends, now=ended.at) if job else None
    return {
        "usd_at_most": "unknown" if usd is None else money.up_to_cents(usd),
        "billed_s": round(money.billed_s(ended.intents, ends, now=ended.at), 3),
    }

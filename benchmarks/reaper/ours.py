"""One pass of the deployed function, report-only, against `AWS_ENDPOINT_URL`; prints what it found as JSON.

With the argument `sixth` it is the pass that looks by instance profile as well, which is due every half hour.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from benchmarks.reaper.account import DEPLOYMENT, MACHINE, PROFILE, REGION
from contract.environments import ReaperEnvironment
from contract.timing import Timing
from contract.timings import ReaperTiming

NEVER_S = 1e12


def main() -> None:
    timing = Timing() if "sixth" in sys.argv else replace(Timing(), reaper_profile_every_s=NEVER_S)
    environment = ReaperEnvironment(
        deployment=DEPLOYMENT,
        table="state",
        home_region=REGION,
        regions=(REGION,),
        instance_profile=PROFILE,
        machine=MACHINE,
        grid_machine=MACHINE.replace("-train", "-grid"),
        search_machine=MACHINE.replace("-train", "-search"),
        topic=f"arn:aws:sns:{REGION}:123456789012:topic",
        report_only=True,
        max_hours=72.0,
        max_share=0.2,
        max_least=5,
        timing=timing.of(ReaperTiming),
    )
    os.environ.update(environment.write(), AWS_LAMBDA_FUNCTION_NAME="reaper", POWERTOOLS_METRICS_NAMESPACE="Trainyard")
    from reaper.handler import handler  # as Lambda imports it: with its environment in place

    context: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 900_000, aws_request_id="benchmark")
    print(json.dumps(handler({}, context)))


if __name__ == "__main__":
    main()

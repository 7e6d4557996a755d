"""What wakes the attendant: Train's token, the one-minute clock, urgent reports in the table's stream, changes of instances, and Admit.

Each kind of event has its function. No invocation waits while work of other jobs is behind it: a pass over many jobs is split among
invocations, and a job whose error waits for its explanation gets an invocation of its own.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from attendant.ends import announce_ends
from attendant.invocation import Invocation
from attendant.passes import run_pass, run_slice
from attendant.policy import Verdict
from attendant.sessions import try_sessions
from attendant.triggers import await_explanation, follow_instances, follow_reports, keep_token
from aws.ec2 import Ec2
from aws.state import State
from contract.codec import decode
from contract.environments import AttendantEnvironment
from contract.jobs import Job


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Handles one event. Returns how many attempts got each action; to Admit, which asks for one, a SessionTrial."""
    env = AttendantEnvironment.read()
    if event.get("action") == "try":
        return asdict(try_sessions(env, decode(Job, event["job"].encode())))
    invocation = Invocation(
        env=env,
        function=context.function_name,
        state=State(env.table),
        open_state=partial(State, env.table),
        ec2=Ec2,
        clock=time.time,
        sleep=time.sleep,
        chance=random.Random(),
        remaining_s=lambda: context.get_remaining_time_in_millis() / 1000,
    )
    return dict(Counter(verdict.action.value for verdict in dispatch(invocation, event)))


def dispatch(invocation: Invocation, event: Mapping[str, Any]) -> list[Verdict]:
    """Calls the function of the event's kind."""
    match event:
        case {"Records": [{"eventSource": "aws:sqs"}, *_] as records}:
            return follow_instances(invocation, records)
        case {"Records": [_, *_] as records}:
            return follow_reports(invocation, records)
        case {"action": "token"}:
            return keep_token(invocation, event)
        case {"action": "slice"}:
            return run_slice(invocation, event)
        case {"action": "await"}:
            return await_explanation(invocation, event)
        case {"action": "ends"}:
            announce_ends(invocation)
            return []
        case _:
            return run_pass(invocation)

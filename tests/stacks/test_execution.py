"""The machine of the property tests retries as the synthesised one does: what they prove is proven of this machine."""

from __future__ import annotations

from typing import Any

from contract.timing import Timing
from tests.properties.retrying import retriers, retriers_around


def as_synthesised(retry: dict[str, Any]) -> tuple[object, ...]:
    return (
        frozenset(retry["ErrorEquals"]),
        retry["MaxAttempts"],
        retry.get("IntervalSeconds", 1) if retry["MaxAttempts"] else 1,
        retry.get("BackoffRate", 2) if retry["MaxAttempts"] else 1,
        retry.get("MaxDelaySeconds", float("inf")),
        retry.get("JitterStrategy") == "FULL",
    )


def test_every_retry_of_the_machine_is_the_property_tests_retry(machine: dict[str, Any]) -> None:
    wanted = {
        state: [(one.errors, one.most, one.interval_s, one.backoff, one.longest_s, one.jitter) for one in entries]
        for state, entries in (retriers(Timing()) | retriers_around(Timing())).items()
    }
    found = {state: [as_synthesised(retry) for retry in machine["States"][state]["Retry"]] for state in wanted}
    assert found == wanted

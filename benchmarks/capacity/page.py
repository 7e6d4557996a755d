"""The page of the figures, and which of them are beyond what they may be."""

from __future__ import annotations

from typing import Any

from tests.fakes.aws import CALL_S
from tests.load.capacity_returns import ARRIVAL_S, ARRIVE_S, JOBS, NODES, RETURNS, WAIT_S
from tests.load.history import MOST_EVENTS, MOST_TRANSITIONS

MOST_PASS_S = 50.0
MINUTE = "a minute"
OFTEN = "two weeks, the clock dead for 80 hours"
"""Beyond what is promised: shown, and not held to the bound."""


def page(about: str, found: dict[str, Any]) -> str:
    """Sections of the parts that were run."""
    parts = {"history": _history, "waiting": _waiting, "training": _training}
    lines = [line for name, part in parts.items() if name in found for line in part(found[name])]
    return "\n".join(["# Waiting for capacity, and a thousand jobs", about, *lines]) + "\n"


def broken(found: dict[str, Any]) -> list[str]:
    """One line for each figure that is not what it must be."""
    wrong = list[str]()
    for name, one in found.get("history", {}).items():
        transitions, events = _beyond(found["history"], name)
        if name != OFTEN and (transitions > MOST_TRANSITIONS or events > MOST_EVENTS):
            wrong.append(f"{name}: {transitions} transitions and {events} events more than {MINUTE}")
        if one["status"] != "SUCCEEDED":
            wrong.append(f"{name}: {one['status']}")
    if one := found.get("waiting"):
        wrong += [f"{number} launches throttled in {region}" for region, number in one["throttled"].items() if number]
        wrong += [f"launched twice: {one['twice']}"] if one["twice"] else []
        wrong += [f"{one['launched']} jobs launched of {RETURNS}"] if one["launched"] != RETURNS else []
        wrong += one["problems"]
    if one := found.get("training"):
        wrong += [*one["surprises"], *one["left_over"]]
        wrong += [f"a pass took {one['longest_pass_s']:.0f} s"] if one["longest_pass_s"] > MOST_PASS_S else []
    return wrong


def _beyond(history: dict[str, Any], name: str) -> tuple[int, int]:
    one, short = history[name], history[MINUTE]
    return one["transitions"] - short["transitions"], one["events"] - short["events"]


def _history(found: dict[str, Any]) -> list[str]:
    rows = []
    for name, one in found.items():
        transitions, events = _beyond(found, name)
        cells = (name, one["transitions"], one["events"], transitions, events, one["entered"], one["tries"])
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return [
        "\n## One job that waits\n",
        "| how long | transitions | events | more than a minute | more events | entered | tries since |",
        "|---|---|---|---|---|---|---|",
        *rows,
        f"\nAllowed are {MOST_TRANSITIONS} transitions and {MOST_EVENTS} events more. Each lost heartbeat enters the state once more: a",
        "transition and six events. A clock that is dead for less than six hours costs none, and one that is dead for longer",
        "loses one each six hours: thirteen of them are beyond the bound, as in the last row.",
    ]


def _waiting(one: dict[str, Any]) -> list[str]:
    rows = [
        f"| {region} | {one['calls'][region]:,} | {one['throttled'][region]} | {one['least_calls'][region]:.1f} of 5 | "
        f"{one['least_instances'][region]:.0f} of 1,000 |"
        for region in one["calls"]
    ]
    return [
        f"\n## {JOBS:,} jobs of {NODES} nodes wait\n",
        f"For {WAIT_S / 3600:g} hours nothing is free. In the first {ARRIVE_S / 3600:g} a new job comes every",
        f"{ARRIVAL_S / 60:.0f} minutes, {one['arrived']} in all: while they ask, those that wait need no calls of their own. The clock",
        f"is doubled, late and missed: of {one['invocations']} invocations {one['killed']} were to be killed, and up to",
        f"{one['at_once']} ran at once. The buckets are EC2's (`tests/load/buckets.py`), and a launch without capacity takes from both.\n",
        "| region | launch calls | throttled | fewest calls left | fewest instances left |",
        "|---|---|---|---|---|",
        *rows,
        f"\nThe longest time without a try of a job: {one['longest_gap_s'] / 60:.0f} minutes. Then {RETURNS} clusters' capacity came back:",
        f"{one['launched']} jobs were launched within {one['returned_s'] / 60:.0f} minutes, {len(one['twice'])} of them twice.",
    ]


def _training(one: dict[str, Any]) -> list[str]:
    ends = ", ".join(f"{number} {state}" for state, number in one["ends"].items())
    calls = ", ".join(f"{service} {number:,}" for service, number in one["calls"].items())
    return [
        "\n## Jobs of four nodes that train for twenty minutes\n",
        f"{sum(one['ends'].values()):,} jobs: {ends}. {one['lost']} nodes were lost, and of the executions that were stopped",
        f"{one['unheard']} had their event lost: the reaper ended what they had left. Left over: {len(one['left_over'])}; against an",
        f"invariant: {len(one['surprises'])}. The longest pass of the attendant ended",
        f"{one['longest_pass_s']:.0f} s after its tick (allowed: {MOST_PASS_S:.0f} s).",
        f"A call takes {CALL_S * 1000:.0f} ms, which is assumed and was measured nowhere; before one of 500 up to 8 s pass.",
        f"Calls: {calls}.",
    ]

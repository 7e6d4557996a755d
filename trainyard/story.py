"""Tells what happened to a job, by the history of its execution: a line for each attempt, launch, interruption and end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.money import HOUR_S, LEAST_BILLED_S, up_to_cents
from pages.words import finite, usd

ADMIT, LAUNCH, WAIT, TRAIN, TERMINATE, PAUSE = "Admit", "Launch", "Wait for capacity", "Train", "Terminate", "Pause"
"""States of the Train machine that a story reads."""
OTHER_VERSION = "more is not known: its answer was written by another version"
LONGEST_WALK_S = 300.0
"""For how long one try to launch may last, of a job that waits for capacity: the time of the function that tries."""
MOST_CAUSE = 500
"""Characters that a line of the story shows of a cause; the end of the job has all of it."""


@dataclass(slots=True)
class Try:
    """One attempt of a job."""

    number: int
    region: str = ""
    instances: tuple[str, ...] = ()
    """In the order of ranks."""
    rung: str = ""
    """Type, zone and market of its nodes."""
    hourly_usd: float | None = None
    """What an hour costs at most; None where that is not known."""
    launched_at: float | None = None
    """From when it is counted: from the beginning of its launch, not its end; None where nothing was launched."""
    error: str = ""
    cause: str = ""
    ended_at: float | None = None
    """When Terminate was called; None before that."""
    is_billed: bool = False
    """Whether Terminate has said what it cost, with all attempts before it."""

    @property
    def ended(self) -> bool:
        return self.ended_at is not None


@dataclass(slots=True)
class Story:
    """What a history says of a job."""

    state: str = ""
    """The state that was entered last; empty before the first."""
    entered_at: float = 0.0
    """When it was entered (UTC epoch seconds)."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """Admit's answer; empty before it, and of a request that was refused."""
    tries: list[Try] = field(default_factory=list)
    cost: Mapping[str, Any] = field(default_factory=dict)
    """What the attempts that have ended cost at most, as Terminate says."""
    step: int = -1
    """Of the newest checkpoint, as Terminate says."""
    lines: list[tuple[float, str]] = field(default_factory=list)
    """When something happened (UTC epoch seconds), and what."""

    @property
    def attempt(self) -> Try | None:
        """The newest attempt; None before the first."""
        return self.tries[-1] if self.tries else None

    def cost_at_most(self, now: float) -> float | None:
        """US dollars that the job has cost at most until `now`, in whole cents; None where a price is not known."""
        spent = finite(self.cost.get("usd_at_most", 0.0))
        for one in self.tries:
            if spent is None or one.is_billed or one.launched_at is None:
                continue
            until = now if one.ended_at is None else one.ended_at
            seconds = max(LEAST_BILLED_S, until - one.launched_at)
            spent = None if one.hourly_usd is None else spent + one.hourly_usd * seconds / HOUR_S
        return None if spent is None else up_to_cents(spent)


def tell(events: Iterable[Mapping[str, Any]]) -> Story:
    """Reads the events of an execution of the Train machine, in their order. What it does not know it leaves out."""
    story = Story()
    for event in events:
        at, kind = event["timestamp"].timestamp(), str(event.get("type"))
        if "stateEnteredEventDetails" in event:
            _enter(story, str(event["stateEnteredEventDetails"].get("name", "")), at)
        elif "stateExitedEventDetails" in event:
            details = event["stateExitedEventDetails"]
            _exit(story, str(details.get("name", "")), parse_object(details.get("output")), at)
        elif kind == "TaskScheduled" and story.state == TERMINATE:
            payload = parse_object(event.get("taskScheduledEventDetails", {}).get("parameters")).get("Payload")
            _end_attempt(story, payload if isinstance(payload, dict) else {}, at)
    return story


def _enter(story: Story, state: str, at: float) -> None:
    if state == LAUNCH:
        story.tries.append(Try(len(story.tries) + 1))
        story.lines.append((at, f"attempt {len(story.tries)}: looks for nodes"))
    elif state == WAIT and story.state != WAIT:
        story.lines.append((at, "waits: no place of the ladder has capacity (waiting.json has the answers)"))
    elif state == PAUSE:
        begins = (
            f"goes on from step {story.step}" if story.step >= 0 else "begins again: there is no checkpoint with a step"
        )
        story.lines.append((at, f"attempt {len(story.tries) + 1} follows, and {begins}"))
    story.state, story.entered_at = state, at


def _exit(story: Story, state: str, answer: Mapping[str, Any], at: float) -> None:
    if state == ADMIT and "ladder" in answer:
        ladder = answer["ladder"]
        story.plan = answer
        story.step = _whole(answer.get("step"))
        places = f"{len(ladder)} places to try" if isinstance(ladder, list) else OTHER_VERSION
        story.lines.append((at, f"admitted: {places}"))
    elif state in (LAUNCH, WAIT) and answer.get("instances") and story.attempt:
        if not isinstance(answer["instances"], list):
            story.lines.append((at, f"attempt {story.attempt.number}: launched; {OTHER_VERSION}"))
            return
        _note_launch(story.attempt, answer)
        # A job may wait for weeks, and pays for the last of its tries alone.
        since = at - LONGEST_WALK_S if state == WAIT else 0.0
        story.attempt.launched_at = max(story.entered_at, since)
        cost = (
            f", {usd(up_to_cents(story.attempt.hourly_usd))} an hour at most"
            if story.attempt.hourly_usd is not None
            else ""
        )
        story.lines.append(
            (
                at,
                f"attempt {story.attempt.number}: launched {len(story.attempt.instances)} x {story.attempt.rung}{cost}",
            )
        )
    elif state == TERMINATE:
        cost = answer.get("cost")
        if isinstance(cost, dict) and "usd_at_most" in cost:
            story.cost = cost
            for one in story.tries:
                one.is_billed = True
        story.step = max(story.step, _whole(answer.get("step")))


def _note_launch(attempt: Try, answer: Mapping[str, Any]) -> None:
    rungs = answer.get("rungs")
    last = rungs[-1] if isinstance(rungs, list) and rungs and isinstance(rungs[-1], dict) else {}
    cost = answer.get("cost")
    hourly = cost.get("usd_an_hour_at_most") if isinstance(cost, dict) else None
    attempt.region = str(answer.get("region", ""))
    attempt.instances = tuple(map(str, answer["instances"]))
    attempt.rung = (
        f"{last.get('instance_type', 'node')} in {last.get('zone', attempt.region)}, {last.get('market', '')}".rstrip(
            ", "
        )
    )
    attempt.hourly_usd = finite(hourly)


def _end_attempt(story: Story, payload: Mapping[str, Any], at: float) -> None:
    newest = story.attempt
    if newest is None or newest.ended:  # a state is tried again, which says nothing new
        return
    newest.ended_at = at
    problem = payload.get("problem")
    if not isinstance(problem, dict):
        story.lines.append((at, f"attempt {newest.number}: the training is done, and its nodes end"))
        return
    newest.error, newest.cause = str(problem.get("error", "")), str(problem.get("cause", ""))
    first = newest.cause.partition("\n")[0][:MOST_CAUSE]
    story.lines.append((at, f"attempt {newest.number} ended: {newest.error}: {first}"))


def parse_object(text: object) -> dict[str, Any]:
    """Returns the object in a text of JSON; an empty one where there is none."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1

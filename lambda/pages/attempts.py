"""Makes the attempts of a job out of its walks, its ends and its reports: where each ran, what it did when, what it lost and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from contract import money
from contract.intents import Intent, Step
from contract.jobs import Rung
from contract.reports import NodeReport
from contract.shapes import find_missing
from pages import words
from pages.charts import percent
from pages.facts import JobFacts

MOMENTS = (
    ("booted", "boot", "boots"),
    ("prepared", "prepare", "prepares"),
    ("started", "meet", "waits for its peers"),
    ("failed", "train", "trains"),
)
"""Moments of a node's timeline with the kind and the words of the phase that ends with each."""
MOST_SPOTS = 120
"""Answers of EC2 on all time lines of a page."""
MOST_PLACE, MOST_CODE = 40, 60
"""Characters of a type, of a zone, and of a code."""
LEAST_SPAN_S = 60.0
"""A time line is not shorter, so that a job of seconds fills no whole line with its first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a time line."""

    kind: str
    words: str
    at: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A checkpoint, or an answer of EC2, on a time line."""

    at: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """From when to when a time line goes, UTC epoch seconds."""

    begin: float
    end: float

    def place(self, at: float) -> float:
        return (at - self.begin) / max(LEAST_SPAN_S, self.end - self.begin)

    def segment(self, kind: str, said: str, since: float, until: float) -> Segment:
        """Returns the part of the time line between two moments."""
        width = percent(self.place(until) - self.place(since))
        lasted = words.duration(max(0.0, until - since))
        return Segment(kind=kind, words=f"{said}: {lasted}", at=percent(self.place(since)), width=width)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptHistory:
    """One attempt, as a page shows it."""

    number: int
    begin: float
    end: float
    runs: bool
    walks: tuple[Intent, ...]
    reports: Mapping[int, NodeReport]
    error: str
    cause: str
    reached: int | None
    """The last step that is known; None where none is."""
    restored: int | None
    """The step from which it went on, -1 for a start from nothing; None where no node says so."""
    usd: float | None
    """What it cost at most; None where a price is not known."""

    @property
    def launched(self) -> Intent | None:
        return next((walk for walk in reversed(self.walks) if walk.launched), None)

    @property
    def half(self) -> Step | None:
        """The launch of which only some shapes came; it ends the attempt."""
        return next((walk.half for walk in reversed(self.walks) if walk.half), None)

    @property
    def begun(self) -> Step | None:
        """The launch, whole or half."""
        return self.launched.launched if self.launched else self.half

    @property
    def place(self) -> str:
        """Type, zone and market, in words, and what was missing there; empty where nothing was launched."""
        step = self.begun
        if step and step.answer and step.rung.shapes:
            came = step.rung.shapes[: step.answer.shape] if step is self.half else step.rung.shapes
            each = [f"{one.nodes:,} × {name_place(one.rung)}, {one.rung.market.value}" for one in came]
            missing = find_missing(step)
            lacking = [f"no {words.visible(missing.instance_type, MOST_PLACE)}"] if missing else []
            return "; ".join([*each, *lacking])
        return f"{name_place(step.rung)}, {step.rung.market.value}" if step else ""


def list_attempts(facts: JobFacts) -> list[AttemptHistory]:
    """Returns the attempts in their order, as far as anything is known of them."""
    numbers = sorted({walk.attempt for walk in facts.walks} | facts.ends.keys() | facts.reports.keys())
    begins = {one: _begin(facts, one) for one in numbers}
    known = {one: at for one, at in begins.items() if at is not None}
    last = numbers[-1] if numbers else 0
    found = list[AttemptHistory]()
    for number in numbers:
        begin = known.get(number, _first_moment(facts))
        bound = min((at for one, at in known.items() if one > number), default=_last_moment(facts))
        end = min(facts.ends[number].at, bound) if number in facts.ends else bound
        error, cause = _explain(facts, number, is_last=number == last)
        found.append(
            AttemptHistory(
                number=number,
                begin=begin,
                end=max(begin, end),
                runs=number == last and is_running(facts) and number not in facts.ends,
                walks=tuple(walk for walk in facts.walks if walk.attempt == number),
                reports=facts.reports.get(number, {}),
                error=error,
                cause=cause,
                reached=_find_reached(facts, number),
                restored=_find_restored(facts.reports.get(number, {})),
                usd=_price(facts, number, bound),
            )
        )
    return found


def is_running(facts: JobFacts) -> bool:
    """Whether the execution runs, as far as Step Functions says."""
    return facts.status is not None and facts.status.runs


def count_lost(one: AttemptHistory, following: AttemptHistory | None) -> int | None:
    """Returns how many steps an attempt made that the next one makes again; None where that is not known."""
    if following is None or one.reached is None or following.restored is None:
        return None
    return max(0, one.reached - max(0, following.restored))


def find_span(facts: JobFacts, attempts: Iterable[AttemptHistory]) -> TimeSpan:
    """Returns the span of the time line on which these attempts lie."""
    known = list(attempts)
    begin = min((one.begin for one in known), default=_first_moment(facts))
    return TimeSpan(begin=begin, end=max((one.end for one in known), default=begin))


def draw_attempt(one: AttemptHistory, span: TimeSpan, *, again_from: float | None = None) -> list[Segment]:
    """Returns the parts of an attempt on the time line: its walks, the phases of its first node, and, from `again_from` on, what was
    lost."""
    answer = one.begun.answer if one.begun else None
    since = answer.at if answer else one.begin
    up = min(max(since, one.begin), one.end)
    parts = [span.segment("ask", "asks for capacity", one.begin, up if answer else one.end)] if one.walks else []
    if one.half:
        parts.append(span.segment("save", "ends what was half of a launch", up, one.end))
    elif answer or one.reports:
        first = one.reports[min(one.reports)] if one.reports else None
        parts += draw_phases(first, span, up, one.end)
    if again_from is not None and up < again_from < one.end:
        parts.append(span.segment("lost", "is done again by the next attempt", again_from, one.end))
    return parts


def name_place(rung: Rung) -> str:
    """Returns type and zone of a rung, in words."""
    return f"{words.visible(rung.instance_type, MOST_PLACE)} in {words.visible(rung.zone, MOST_PLACE)}"


def list_answers(one: AttemptHistory, span: TimeSpan, *, most: int = MOST_SPOTS) -> list[Spot]:
    """Returns the answers of the places that were asked, on the time line: of those that lie on one spot the newest alone, and the newest
    `most` of all."""
    found = dict[str, Spot]()
    for step in (step for walk in one.walks for step in walk.steps):
        if step.answer and one.begin <= step.answer.at <= one.end:
            at, said = percent(span.place(step.answer.at)), step.answer.code or step.answer.outcome.value
            found[at] = Spot(
                at=at, words=f"{name_place(find_missing(step) or step.rung)}: {words.visible(said, MOST_CODE)}"
            )
    return list(found.values())[-most:]


def draw_phases(report: NodeReport | None, span: TimeSpan, begin: float, end: float) -> list[Segment]:
    """Returns the phases of a node between two moments. Its clock may be wrong: none begins before the one before it has ended."""
    parts, at = list[Segment](), begin
    timeline = report.timeline if report else {}
    for name, kind, said in MOMENTS:
        ended = words.finite(timeline.get(name, timeline.get("ended") if name == "failed" else None))
        until = end if ended is None else min(max(ended, at), end)
        if until > at:
            parts.append(span.segment(kind, said, at, until))
        at = until
        if ended is None:
            return parts
    if end > at:
        parts.append(span.segment("save", "saves and ends", at, end))
    return parts


def find_time_of(facts: JobFacts, attempt: int, step: int) -> float | None:
    """Returns about when an attempt was at a step, by the points of its curve on both sides; None where they do not say."""
    points = [one for one in facts.curve.points if one.attempt == attempt] if facts.curve else []
    for before, after in pairwise(points):
        if before.step <= step <= after.step:
            share = (step - before.step) / (after.step - before.step) if after.step > before.step else 0.0
            return before.at + share * (after.at - before.at)
    return next((one.at for one in points if one.step == step), None)


def _begin(facts: JobFacts, number: int) -> float | None:
    return min((walk.started_at for walk in facts.walks if walk.attempt == number), default=None)


def _first_moment(facts: JobFacts) -> float:
    known = facts.status.started_at if facts.status else None
    return known or (facts.job.admitted_at if facts.job else facts.now)


def _last_moment(facts: JobFacts) -> float:
    known = facts.status.ended_at if facts.status else None
    reported = words.finite((facts.report or {}).get("ended_at"))
    return (known or reported or facts.now) if not is_running(facts) else facts.now


def _explain(facts: JobFacts, number: int, *, is_last: bool) -> tuple[str, str]:
    """Returns error and cause of an attempt; empty where it runs, or ended well."""
    if number in facts.ends and facts.ends[number].error:
        return facts.ends[number].error, facts.ends[number].cause
    earlier = next((one for one in words.entries_of(facts.report, "recovered") if one.get("attempt") == number), None)
    if earlier is not None:
        return words.text_of(earlier, "error"), words.text_of(earlier, "cause")
    if is_last and facts.status and not facts.status.runs:
        return facts.status.error, facts.status.cause
    return "", ""


def _find_reached(facts: JobFacts, number: int) -> int | None:
    points = [one.step for one in facts.curve.points if one.attempt == number] if facts.curve else []
    reported = [one.progress.step for one in facts.reports.get(number, {}).values() if one.progress]
    return max([*points, *reported], default=None)


def _find_restored(reports: Mapping[int, NodeReport]) -> int | None:
    return reports[min(reports)].restored_step if reports else None


def _price(facts: JobFacts, number: int, bound: float) -> float | None:
    """Returns what an attempt cost at most: until its end, and until the next one began where that is not known."""
    walks = [walk for walk in facts.walks if walk.attempt == number]
    if facts.job is None or not walks:
        return None
    return money.spent_usd(facts.job, walks, {one: end.at for one, end in facts.ends.items()}, now=bound)

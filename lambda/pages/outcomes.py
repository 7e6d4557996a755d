"""Says how an execution ended, or what it does, and what a person does next."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aws.facts import GONE, Status
from contract.errors import InvalidRequest
from contract.execution_facts import ABORTED, SUCCEEDED, TIMED_OUT, explain_end
from contract.links import ARTIFACTS_LINKED, cut_links
from contract.reports import LAST_OUTPUT, Phase
from pages import words
from pages.advice import choose_next
from pages.attempts import AttemptHistory
from pages.facts import JobFacts
from pages.nodes import list_tails

MOST_LINES, MOST_LINE = 40, 600
"""Lines of a cause that are shown, and characters of each."""
MOST_ERROR = 120
"""Characters of the name of an error."""
MOST_CAUSE = 100_000
"""Characters of a cause that are searched for lines; Step Functions keeps a third of them."""
OUTPUT_HEAD = re.compile(rf"  (rank ([0-9]{{1,6}})(?: \([^()]*\))?): {LAST_OUTPUT}")
"""Line of a cause below which the last output of a rank stands, with its role in brackets in a job with roles."""
QUOTED = " " * 6
"""Begins each line of that output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an execution ended, or what it does."""

    word: str
    """For the title and the badge."""
    tone: str
    """good, bad, busy or unsure."""
    sentence: str
    following: str
    """What a person does next."""
    error: str = ""
    cause: tuple[str, ...] = ()
    """Its lines."""
    runs: bool = False


def judge_job(facts: JobFacts, attempts: list[AttemptHistory]) -> Outcome:
    """Returns how a job ended, or what it does."""
    facts = _leave_out_shown(facts, attempts)
    status = facts.status
    if status is None or status.name == GONE:
        return _judge_report(status, facts.report, "The job ended well, by its report.")
    if status.runs:
        return _judge_running(facts, attempts)
    if status.name == SUCCEEDED:
        kept = ARTIFACTS_LINKED if facts.job else ""
        number = attempts[-1].number if attempts else 1
        return Outcome(
            word="completed",
            tone="good",
            sentence=f"The training ended without an error in {words.count(number, 'attempt')}.",
            following=kept or "Open the execution for its output.",
        )
    found = judge_end(status, facts.report)
    if facts.job is None and found.error == InvalidRequest.__name__:
        return replace(found, word="refused", sentence="The request was refused before anything was created.")
    return found


def _leave_out_shown(facts: JobFacts, attempts: list[AttemptHistory]) -> JobFacts:
    """Returns the facts with a cause that has nothing of what has its own section of the page: links, and the last output of nodes."""
    ranks = {one.rank for one in list_tails(attempts[-1].reports)} if attempts else set[int]()

    def shorten(cause: str) -> str:
        return leave_out_output(cut_links(cause) if facts.job else cause, ranks)

    status, report = facts.status, facts.report
    return replace(
        facts,
        status=replace(status, cause=shorten(status.cause)) if status else None,
        report={**report, "cause": shorten(words.text_of(report, "cause"))} if report else report,
    )


def leave_out_output(cause: str, ranks: Collection[int]) -> str:
    """Returns a cause without the last output of these ranks, which is indented below its head; a line says where it is."""
    kept, inside = list[str](), False
    for line in cause.splitlines(keepends=True):
        if inside and line.startswith(QUOTED):
            continue
        head = OUTPUT_HEAD.fullmatch(line.rstrip())
        inside = head is not None and int(head[2]) in ranks
        kept.append(f"  {head[1]}: its last output is below\n" if head and inside else line)
    return "".join(kept)


def judge_run(
    status: Status | None, report: Mapping[str, Any] | None, *, busy: str, done: str, following: str
) -> Outcome:
    """Returns how a grid or a search ended, or what it does, with a sentence for each, and what follows an end that is none of an error."""
    if status is None or status.name == GONE:
        problem = words.entry_of(report, "problem")
        return _judge_report(status, {**report, **problem} if report is not None else None, done)
    if status.runs:
        return Outcome(word="running", tone="busy", sentence=busy, following="Nothing: it runs.", runs=True)
    if status.name == SUCCEEDED:
        return Outcome(word="completed", tone="good", sentence=done, following=following)
    found = judge_end(status, report)
    if found.error == InvalidRequest.__name__ and report is None:
        return replace(found, word="refused", sentence="The input was refused before anything was created.")
    return found


def judge_end(status: Status, report: Mapping[str, Any] | None) -> Outcome:
    """Returns how an execution ended that did not succeed. What it lacks of error and cause its report may have."""
    told = words.entry_of(report, "problem") or report
    error = status.error or words.text_of(told, "error")
    cause = status.cause or (words.text_of(told, "cause") if words.text_of(told, "error") == error else "")
    error, cause = explain_end(status.name, error, cause)
    name = words.visible(error, MOST_ERROR)
    word = {ABORTED: "stopped", TIMED_OUT: "timed out"}.get(status.name, f"failed, {name}")
    return Outcome(
        word=word,
        tone="bad",
        sentence={ABORTED: "The execution was stopped.", TIMED_OUT: "The execution ran out of its time."}.get(
            status.name, f"The execution failed with {name}."
        ),
        following=choose_next(error, status.name),
        error=error,
        cause=split_cause(cause),
    )


def split_cause(cause: str) -> tuple[str, ...]:
    """Returns the lines of a cause, each at most so long, and says what is not shown."""
    lines = [one for one in cause[:MOST_CAUSE].splitlines() if one.strip()]
    shown = [words.visible(one, MOST_LINE) for one in lines[:MOST_LINES]]
    left = len(lines) - MOST_LINES
    if left > 0 or len(cause) > MOST_CAUSE:
        shown.append(f"(cut: the cause has {words.count(len(cause), 'character')}, the execution has all of them)")
    return tuple(shown)


def _judge_report(status: Status | None, report: Mapping[str, Any] | None, done: str) -> Outcome:
    """Of an execution of which Step Functions says nothing."""
    silent = "Step Functions did not answer" if status is None else "Step Functions no longer has the execution"
    error = words.text_of(report, "error")
    if error:
        return Outcome(
            word=f"failed, {words.visible(error, MOST_ERROR)}",
            tone="bad",
            sentence=f"{silent}; the report says that it failed with {words.visible(error, MOST_ERROR)}.",
            following=choose_next(error),
            error=error,
            cause=split_cause(words.text_of(report, "cause")),
        )
    if report is not None:
        return Outcome(word="completed", tone="good", sentence=f"{done} {silent}.", following="")
    again = "Open the execution in the console, or load this page again in five minutes."
    following = again if status is None else choose_next("", GONE)
    return Outcome(word="unknown", tone="unsure", sentence=f"{silent}, and there is no report.", following=following)


def _judge_running(facts: JobFacts, attempts: list[AttemptHistory]) -> Outcome:
    word, sentence, following = "running", "The request is being checked.", "Nothing: it runs."
    waiting = bool(words.text_of(facts.waiting, "next_try_at"))  # the document has one only while the job waits
    last = attempts[-1] if attempts else None
    if waiting and (last is None or last.launched is None):
        until, tries = words.text_of(facts.waiting, "waits_until"), (facts.waiting or {}).get("tries")
        word = "waits for capacity"
        sentence = f"No place had capacity yet, after {words.number(tries)} tries. It waits until {until or words.UNKNOWN} at most."
        following = "Nothing, or stop it and allow more types, zones or regions: the launch answers below say what each place answered."
    elif last is not None and last.half is not None:
        sentence = (
            f"Attempt {last.number} launched machines for some of its roles only; they are ended, and another attempt looks for a place "
            "that has all."
        )
    elif last is None or last.launched is None:
        if facts.job is not None:
            sentence = f"Attempt {last.number if last else 1} asks EC2 for its machines."
    elif not last.reports:
        sentence = f"The machines of attempt {last.number} boot; no node has reported yet."
    else:
        sentence = _describe_training(facts, last)
    return Outcome(word=word, tone="busy", sentence=sentence, following=following, runs=True)


def _describe_training(facts: JobFacts, last: AttemptHistory) -> str:
    nodes = facts.job.nodes if facts.job else len(last.reports)
    train = sum(one.phase is Phase.TRAINING for one in last.reports.values())
    again = f" It went on from step {last.restored:,}." if last.restored is not None and last.restored >= 0 else ""
    reached = f", at step {words.number(last.reached)}" if last.reached is not None else ""
    return f"Attempt {last.number} runs: {train:,} of {words.count(nodes, 'node')} train{reached}.{again}"

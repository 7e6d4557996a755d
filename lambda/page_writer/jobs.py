"""Reads the facts of a job's page: from the home bucket, the table, and the buckets of the regions in which it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from aws.checkpoints import ClosedSet, FoundSets, find_closed_sets
from aws.clients import IN_PASSING
from aws.facts import Heard, Seen, Status
from aws.heard import heard
from aws.s3 import Bucket, HomeBucket
from aws.state import State
from contract.curves import Curve, extend, point_of
from contract.intents import Intent, ran_in
from contract.jobs import Job
from contract.keys import JobPrefix
from page_writer.reading import FactReader
from pages import words
from pages.facts import JobFacts
from pages.job import MOST_CHECKPOINTS

MOST_NODES = 1000
"""Nodes whose reports are read, of the newest attempts: those of 1,000 nodes have three megabytes at most."""
MOST_WALKS = 1000
"""Walks that are read, the newest of them: as many as a person could look at, and an intent of 240 rungs has 300 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSources:
    """Where the facts of jobs are."""

    deployment: str
    home: HomeBucket
    state: State
    node_role: str


def read_job(
    sources: JobSources, reader: FactReader, job: Job | None, name: str, status: Status, *, now: float
) -> JobFacts:
    """Returns the facts; `job` is None where it was not admitted. What cannot be read is in `unread`, and nothing of it raises."""
    state, prefix = sources.state, JobPrefix(name)
    if job is None:
        return JobFacts(
            name=name, deployment=sources.deployment, now=now, status=status, job=None, unread=tuple(reader.unread)
        )
    report = reader.json(sources.home, prefix.result)
    waiting = reader.json(sources.home, prefix.wait) if job.max_wait_hours else None
    walks = reader.attempt("launches", lambda: state.walks(name)[-MOST_WALKS:], list[Intent]())
    ends = reader.attempt("ends of attempts", lambda: state.endings(name), {})
    unhealthy = reader.attempt("unhealthy machines", lambda: state.unhealthy(name), [])
    nodes = _read_reports(sources, reader, name, walks)
    curve = reader.attempt("metric over steps", lambda: state.curve(name), Curve())
    return JobFacts(
        name=name,
        deployment=sources.deployment,
        now=now,
        status=status,
        job=job,
        report=report,
        waiting=waiting,
        walks=tuple(walks),
        ends=ends,
        reports={
            attempt: {rank: node.report for rank, node in sorted(of_attempt.items())}
            for attempt, of_attempt in nodes.items()
        },
        curve=_complete(curve, nodes, now),
        closed=_read_checkpoints(reader, job, walks),
        unhealthy=tuple(unhealthy),
        unread=tuple(reader.unread),
    )


def _read_reports(
    sources: JobSources, reader: FactReader, name: str, walks: Iterable[Intent]
) -> dict[int, dict[int, Heard]]:
    """Returns what is heard of each node, by attempt and rank, of the newest attempts."""
    launched = {
        walk.attempt: step.answer.instances
        for walk in walks
        if (step := walk.launched) is not None and step.answer is not None
    }
    found, left = dict[int, dict[int, Heard]](), MOST_NODES
    for attempt, ids in sorted(launched.items(), reverse=True):
        left -= len(ids)
        if left < 0 and found:
            reader.note("reports of nodes", f"those of attempts up to {attempt} are left out")
            break
        what = f"reports of nodes of attempt {attempt}"
        seen = reader.attempt(what, partial(_read_seen, sources, ids), list[Seen]())
        if garbled := sum(one.report is None for one in seen):
            reader.note(what, f"{words.count(garbled, 'report')} could not be read")
        found[attempt] = heard(seen, job=name, attempt=attempt, ids=ids)
    return dict(sorted(found.items()))


def _read_seen(sources: JobSources, ids: Sequence[str]) -> list[Seen]:
    return sources.state.reports(sources.node_role, ids)[0]


def _complete(curve: Curve, nodes: Mapping[int, Mapping[int, Heard]], now: float) -> Curve:
    """Returns the curve with the last word of rank 0, which the attendant may have kept only in part: it looks once a minute."""
    attempt = max(nodes, default=0)
    newest = nodes[attempt].get(0) if attempt else None
    point = point_of(newest.report.progress, attempt=attempt, at=now - newest.age_s) if newest else None
    return extend(curve, point) if point else curve


def _read_checkpoints(reader: FactReader, job: Job, walks: Iterable[Intent]) -> tuple[ClosedSet, ...]:
    """Returns the newest closed sets of every region in which the job ran, by attempt and number."""
    found = list[ClosedSet]()
    for place in (job.places[region] for region in sorted(ran_in(walks) & job.places.keys())):
        bucket = Bucket(place.bucket, place.region, IN_PASSING)
        what = f"checkpoints in {place.region}"
        read = reader.attempt(what, partial(find_closed_sets, bucket, job.id, most=MOST_CHECKPOINTS), FoundSets())
        found += read.closed
        if read.garbled:
            reader.note(what, f"{words.count(read.garbled, 'set')} could not be read")
    return tuple(sorted(found, key=lambda one: (one.attempt, one.number)))

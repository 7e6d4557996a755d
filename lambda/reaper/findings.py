"""The result of a pass, from which its metrics, its message and its answer are made."""

from __future__ import annotations

from dataclasses import dataclass, field

from aws_lambda_powertools import Logger

from aws.facts import Belonging
from contract import metrics
from reaper.policy import Rule, Verdict

logger = Logger(service="reaper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing, the verdict on it, and the time by AWS's clock."""

    thing: Belonging
    verdict: Verdict
    at: float


@dataclass(slots=True)
class Findings:
    """The result of all regions together."""

    seen: int = 0
    """The number of our instances that are pending, running, stopping or stopped, and of our trainings that run."""
    late: int = 0
    """Things past their deadline."""
    ended: list[Case] = field(default_factory=list)
    would_end: list[Case] = field(default_factory=list)
    """What a pass that is not report-only would end, at once or at a second look."""
    unknown: list[Case] = field(default_factory=list)
    """What is kept because too little is known."""
    news: list[Case] = field(default_factory=list)
    """Those of `unknown` that no message has named before."""
    refused: dict[str, tuple[Case, str]] = field(default_factory=dict)
    """By id, what AWS did not end, with its reason, or what still runs although it was ended before."""
    limited: list[Case] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """A region, or the list of regions, to the reason why it could not be read or acted on."""

    def note(self, case: Case) -> None:
        """Counts the case, and logs its verdict unless that is a keep which needs no attention."""
        thing, verdict = case.thing, case.verdict
        self.late += verdict.rule is Rule.DEADLINE
        if verdict.tell:
            self.unknown.append(case)
        if not verdict.quiet:
            logger.info(
                "judged",
                thing=thing.id,
                sort=thing.sort,
                region=thing.region,
                job=thing.job,
                action=verdict.action,
                rule=verdict.rule,
                reason=verdict.reason,
            )

    def fail(self, what: str, problem: object) -> None:
        logger.warning("failed", what=what, problem=str(problem))
        self.failed.setdefault(what, str(problem))

    def refuse(self, case: Case, problem: str) -> None:
        logger.warning("refused", thing=case.thing.id, region=case.thing.region, problem=problem)
        self.refused.setdefault(case.thing.id, (case, problem))

    def counts(self) -> dict[str, int]:
        """Returns the numbers by the names of their metrics."""
        return {
            metrics.PASSES: 0 if self.failed else 1,
            metrics.SEEN: self.seen,
            metrics.ENDED: len(self.ended),
            metrics.WOULD_END: len(self.would_end),
            metrics.TOLD: len(self.unknown),
            metrics.REFUSED: len(self.refused),
            metrics.LIMITED: len(self.limited),
            metrics.FAILED_REGIONS: len(self.failed),
        }

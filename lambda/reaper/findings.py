"""What a pass came to: the source of its metrics, its message and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from aws_lambda_powertools import Logger

from aws.facts import Belonging
from contract import metrics
from reaper.policy import Rule, Verdict

logger = Logger(service="reaper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing with what was decided about it, and when by AWS's clock."""

    thing: Belonging
    verdict: Verdict
    at: float


@dataclass(slots=True)
class Findings:
    """Of all regions together."""

    seen: int = 0
    """Instances of ours that run, begin to or are stopped, and trainings of ours that run."""
    late: int = 0
    """Things past their deadline."""
    ended: list[Case] = field(default_factory=list)
    would_end: list[Case] = field(default_factory=list)
    """In report-only mode: at once, or at a second look."""
    told: list[Case] = field(default_factory=list)
    """Kept for want of knowledge."""
    news: list[Case] = field(default_factory=list)
    """Those of `told` of which nobody has been told before."""
    refused: dict[str, tuple[Case, str]] = field(default_factory=dict)
    """By id, with AWS's reason, or that it runs on though it was told to end before."""
    limited: list[Case] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """What could not be looked at, or acted on, to the reason: a region, or the list of regions."""

    def note(self, case: Case) -> None:
        """One line of the log for each verdict that is not a silent keep."""
        thing, verdict = case.thing, case.verdict
        self.late += verdict.rule is Rule.DEADLINE
        if verdict.tell:
            self.told.append(case)
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
        """By the names of the metrics."""
        return {
            metrics.PASSES: 0 if self.failed else 1,
            metrics.SEEN: self.seen,
            metrics.ENDED: len(self.ended),
            metrics.WOULD_END: len(self.would_end),
            metrics.TOLD: len(self.told),
            metrics.REFUSED: len(self.refused),
            metrics.LIMITED: len(self.limited),
            metrics.FAILED_REGIONS: len(self.failed),
        }

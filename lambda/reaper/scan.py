"""Scans one kind of thing in one region page by page, and keeps only those that may need to be ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from botocore.exceptions import ClientError

from aws.facts import Belonging, Moment
from ending.policy import is_alive
from reaper.findings import Case
from reaper.kinds import ResourceKind
from reaper.marks import Section
from reaper.owners import Owners
from reaper.policy import ASKS_OWNER, Action, Rule, Rules, Suspect, is_ours, judge


class OutOfTime(Exception):
    """The function's time is nearly over."""


@dataclass(slots=True)
class Scan:
    """One kind of thing in one region, as one pass sees it."""

    kind: ResourceKind
    region: str
    section: Section
    """The marks that the pass before left."""
    seen: int = 0
    late: list[Case] = field(default_factory=list)
    """Those past their deadline: they end without a second look, even where the rest of the listing fails."""
    candidates: list[Belonging] = field(default_factory=list)
    """Those to mark, to name in a message, or to ask Step Functions about."""
    moment: Moment | None = None
    """AWS's time of the newest page."""
    problem: str = ""
    """Why the listing is not complete; empty where it is."""
    ended: dict[str, float] = field(default_factory=dict)
    """Ids that this pass ended, with the time."""

    def stream(self, owners: Owners, rules: Rules, has_time: Callable[[], bool]) -> None:
        """Reads the listing. After a ClientError, or when the time is over, only what is past its deadline may still end.
        Raises BotoCoreError."""
        try:
            for page in self.kind.pages():
                self.moment = page.moment
                for thing in page.things:
                    self._sort(thing, owners, rules, page.moment)
                if not has_time():
                    raise OutOfTime("the function's time is nearly over")
        except (ClientError, OutOfTime) as problem:
            self.problem = str(problem)

    def _sort(self, thing: Belonging, owners: Owners, rules: Rules, moment: Moment) -> None:
        if self.kind.counted and is_ours(thing, rules) and is_alive(thing):
            self.seen += 1
        owner = owners.known(thing.execution)
        verdict = judge(thing, owner, self.section.suspects.get(thing.id), moment.earliest, rules)
        if verdict.at_once:
            self.late.append(Case(thing=thing, verdict=verdict, at=moment.latest))
        elif not verdict.quiet:
            self.candidates.append(thing)

    def judge_candidates(self, owners: Owners, rules: Rules) -> Iterable[Case]:
        """Yields the candidates with their verdicts, each after a question about its execution where that matters; none if a listing
        failed."""
        if self.problem or self.moment is None:
            return
        for thing in self.candidates:
            suspect, now = self.section.suspects.get(thing.id), self.moment.earliest
            verdict = judge(thing, owners.known(thing.execution), suspect, now, rules)
            if verdict.rule in ASKS_OWNER:
                verdict = judge(thing, owners.ask(thing.execution), suspect, now, rules)
            yield Case(thing=thing, verdict=verdict, at=self.moment.latest)

    def ended_lately(self, case: Case, rules: Rules) -> bool:
        """Whether a pass ended it a moment ago, so that what AWS shows of it may be older than that."""
        before = self.section.ended.get(case.thing.id)
        return before is not None and case.at - before < rules.second_look_s

    def is_news(self, case: Case) -> bool:
        """Whether no message has named it yet as kept, for this reason, because too little is known."""
        return case.verdict.tell and self.section.reported.get(case.thing.id) is not case.verdict.rule

    def remember(self, cases: Iterable[Case]) -> Section:
        """Returns the marks after this scan. A complete scan drops the mark of what is no longer suspicious, unless its execution could
        not be asked for; an incomplete one drops none."""
        if self.problem or self.moment is None:
            return replace(self.section, ended=self.section.ended | self.ended)
        suspects: dict[str, Suspect] = {}
        reported: dict[str, Rule] = {}
        doomed = {case.thing.id for case in self.late}
        for case in cases:
            id_, verdict = case.thing.id, case.verdict
            before = self.section.suspects.get(id_)
            if verdict.action is not Action.KEEP:
                doomed.add(id_)
                known = before is not None and not (verdict.first or verdict.at_once)
                suspects[id_] = before if before and known else Suspect(rule=verdict.rule, since=case.at)
            elif verdict.rule is Rule.UNKNOWN_OWNER and before:
                suspects[id_] = before
            if verdict.tell:
                reported[id_] = verdict.rule
        ended = {id_: at for id_, at in self.section.ended.items() if id_ in doomed}
        looked_at = self.moment.latest if self.kind.every_s else 0.0
        return Section(looked_at=looked_at, suspects=suspects, reported=reported, ended=ended | self.ended)

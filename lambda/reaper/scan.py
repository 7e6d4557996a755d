"""One look at one kind of thing in one region: streams, and keeps only what is not plainly all right."""

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
from reaper.policy import ASKS_OWNER, Action, Rule, Rules, Suspect, judge


class OutOfTime(Exception):
    """The function's time is nearly over."""


@dataclass(slots=True)
class Scan:
    """What a pass knows of a kind in a region, and does about it."""

    kind: ResourceKind
    region: str
    section: Section
    """As the pass before left it."""
    seen: int = 0
    late: list[Case] = field(default_factory=list)
    """Past their deadline: they end without a second look, whatever becomes of the rest of the listing."""
    candidates: list[Belonging] = field(default_factory=list)
    """About which their execution has to be asked, or which have to be told of or marked."""
    moment: Moment | None = None
    """Of the newest page."""
    problem: str = ""
    """Why it is not whole."""
    ended: dict[str, float] = field(default_factory=dict)
    """What this pass told to end."""

    def stream(self, owners: Owners, rules: Rules, has_time: Callable[[], bool]) -> None:
        """Looks. What an error leaves is good for what is past its deadline, and for nothing else; BotoCoreError passes."""
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
        if self.kind.counted and thing.deployment == rules.deployment and is_alive(thing):
            self.seen += 1
        owner = owners.known(thing.execution)
        verdict = judge(thing, owner, self.section.suspects.get(thing.id), moment.earliest, rules)
        if verdict.at_once:
            self.late.append(Case(thing=thing, verdict=verdict, at=moment.latest))
        elif not verdict.quiet:
            self.candidates.append(thing)

    def judged(self, owners: Owners, rules: Rules) -> Iterable[Case]:
        """The candidates of a whole look, each with its execution asked for where that matters."""
        if self.problem or self.moment is None:
            return
        for thing in self.candidates:
            suspect, now = self.section.suspects.get(thing.id), self.moment.earliest
            verdict = judge(thing, owners.known(thing.execution), suspect, now, rules)
            if verdict.rule in ASKS_OWNER:
                verdict = judge(thing, owners.ask(thing.execution), suspect, now, rules)
            yield Case(thing=thing, verdict=verdict, at=self.moment.latest)

    def told_lately(self, case: Case, rules: Rules) -> bool:
        """A pass told it to end a moment ago: what EC2 shows may be older than that."""
        before = self.section.ended.get(case.thing.id)
        return before is not None and case.at - before < rules.second_look_s

    def is_news(self, case: Case) -> bool:
        """Whether nobody has been told yet that it was kept for want of knowledge, for this reason."""
        return case.verdict.tell and self.section.told.get(case.thing.id) is not case.verdict.rule

    def remember(self, cases: Iterable[Case]) -> Section:
        """The section after this look. A look that is not whole forgets nothing; in a whole one what is not suspicious any
        more loses its mark, unless its execution could not be asked for."""
        if self.problem or self.moment is None:
            return replace(self.section, ended=self.section.ended | self.ended)
        suspects: dict[str, Suspect] = {}
        told: dict[str, Rule] = {}
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
                told[id_] = verdict.rule
        ended = {id_: at for id_, at in self.section.ended.items() if id_ in doomed}
        looked_at = self.moment.latest if self.kind.every_s else 0.0
        return Section(looked_at=looked_at, suspects=suspects, told=told, ended=ended | self.ended)

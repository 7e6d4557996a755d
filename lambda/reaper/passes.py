"""One pass: reads every region, then asks for the owners, then judges. What is past its deadline ends first, and without a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.belongings import FILTER_VALUES
from aws.clients import BRISK
from aws.facts import Belonging
from aws.state import State
from contract.environments import ReaperEnvironment
from reaper.findings import Case, Findings
from reaper.kinds import kinds
from reaper.marks import Book, Section
from reaper.owners import UNASKED, Owners
from reaper.policy import ASKS_OWNER, Action, Rule, Rules, judge
from reaper.scan import OutOfTime, Scan
from reaper.words import when

logger = Logger(service="reaper")
RESERVE_S = 20.0
"""With less time left no further region or page is read: the rest is kept for verdicts, marks and the message."""
ASK_S = 10.0
"""With less time left no more executions are asked for."""
LAST_S = 5.0
"""With less time left nothing more is ended: the rest is kept for metrics and the message."""
FRESH_S = 30.0
"""Just before an end, an answer about an execution that is older than this is asked for again."""


@dataclass(slots=True)
class RegionPass:
    """What a pass knows of a region until it has read all of them."""

    name: str
    book: Book | None
    """None where the marks could not be read: then nothing is marked, and only what is past its deadline ends."""
    scans: list[Scan] = field(default_factory=list)
    sections: dict[str, Section] = field(default_factory=dict)
    news: list[Case] = field(default_factory=list)

    spent: int = 0
    """How many of the limit a pass of a moment ago used: a schedule that fires twice does not double the limit."""

    def section(self, kind: str) -> Section:
        return self.book.section(kind) if self.book else Section()


class ReaperPass:
    """One pass. `left` is what remains of the function's time in seconds, `writer` the invocation's id."""

    def __init__(
        self,
        env: ReaperEnvironment,
        *,
        report_only: bool,
        writer: str,
        clock: Callable[[], float],
        left: Callable[[], float],
    ) -> None:
        self.findings = Findings()
        self._env, self._rules = env, Rules.of(env)
        self._report_only, self._writer, self._left = report_only, writer, left
        self._state = State(env.table, BRISK)
        self._owners = Owners(
            (env.machine, env.grid_machine, env.search_machine), clock=clock, has_time=lambda: left() >= ASK_S
        )
        self._regions: list[RegionPass] = []

    def run(self) -> Findings:
        """Does all that can be done, whatever fails. The findings name what failed."""
        for name in self._list_regions():
            with self._going_on(name):
                self._read_region(name)
        doomed = [(scan, case) for region in self._regions for scan, case in self._judge(region)]
        chosen = self._limit(doomed)
        for region in self._regions:
            with self._going_on(region.name):
                self._settle(region, [(scan, case) for scan, case in chosen if scan.region == region.name])
        return self.findings

    # Facts

    def _list_regions(self) -> list[str]:
        """Returns the regions of the settings, and every other one where anything was ever launched."""
        regions = set(self._env.regions)
        with self._going_on("the list of regions"):
            regions |= self._state.launched_regions()
        return sorted(regions)

    def _read_region(self, name: str) -> None:
        if not self._has_time():
            raise OutOfTime("it was not read: the function's time was nearly over")
        region = RegionPass(name, self._book(name))
        self._regions.append(region)
        now = 0.0
        for kind in kinds(name, self._env):
            scan = Scan(kind, name, region.section(kind.name))
            if kind.every_s and now < scan.section.looked_at + kind.every_s:
                continue
            region.scans.append(scan)
            try:
                scan.stream(self._owners, self._rules, self._has_time)
            except BotoCoreError as problem:  # the region does not answer: other kinds would only cost their time-outs
                scan.problem = str(problem)
                raise
            finally:
                self._end_late(scan)
            if scan.problem:
                self.findings.fail(name, f"{kind.name}: {scan.problem}")
            now = scan.moment.latest if scan.moment else now
        if region.book:
            region.spent = region.book.ended_early(now - self._rules.second_look_s)

    def _book(self, region: str) -> Book | None:
        try:
            return Book(self._state, region, self._writer)
        except (ClientError, BotoCoreError) as problem:
            self.findings.fail(region, f"its marks could not be read: {problem}")
            return None

    def _end_late(self, scan: Scan) -> None:
        """Ends what is past its deadline, without a second look, and even where the rest of the listing failed."""
        self.findings.seen += scan.seen
        late = [case for case in scan.late if not scan.ended_lately(case, self._rules)]
        for case in late:
            self.findings.note(case)
        if self._report_only:
            self.findings.would_end += late
        else:
            self._end(scan, late)

    # Owners and verdicts

    def _judge(self, region: RegionPass) -> Iterator[tuple[Scan, Case]]:
        """Judges the candidates, and yields those that may end because this is their second look. Collects the region's marks."""
        for scan in region.scans:
            cases = list(scan.judge_candidates(self._owners, self._rules))
            for case in cases:
                self.findings.note(case)
                if self._report_only and case.verdict.action is not Action.KEEP:
                    self.findings.would_end.append(case)
            region.news += [case for case in cases if scan.is_news(case)]
            region.sections[scan.kind.name] = scan.remember(cases)
            for case in cases:
                if case.verdict.action is Action.TERMINATE and not scan.ended_lately(case, self._rules):
                    yield scan, case

    def _limit(self, doomed: Sequence[tuple[Scan, Case]]) -> list[tuple[Scan, Case]]:
        """Returns those that this pass may end: all past their deadline, then the oldest marks up to the limit. Others wait a pass."""
        late = [one for one in doomed if one[1].verdict.rule is Rule.DEADLINE]
        early = [one for one in doomed if one[1].verdict.rule is not Rule.DEADLINE]
        early.sort(key=lambda one: one[0].section.suspects[one[1].thing.id].since)
        most = max(0, self._rules.most(self.findings.seen) - sum(region.spent for region in self._regions))
        self.findings.limited = [case for _, case in early[most:]]
        return late + early[:most]

    # Acts

    def _settle(self, region: RegionPass, chosen: Sequence[tuple[Scan, Case]]) -> None:
        """Writes the marks, which claims what is to end, then ends it. Where another pass wrote first, only that one ends things."""
        if self._report_only or region.book is None:
            return
        for scan, case in chosen:
            section = region.sections[scan.kind.name]
            region.sections[scan.kind.name] = replace(section, ended=section.ended | {case.thing.id: case.at})
        if not region.book.write(region.sections, claim=bool(chosen)):
            logger.warning("another pass wrote first", region=region.name)
            return
        self.findings.news += region.news
        for scan in region.scans:
            mine = [case for of, case in chosen if of is scan]
            self._end(scan, mine)
            left_alone = {case.thing.id for case in mine} - scan.ended.keys()
            section = region.sections[scan.kind.name]
            ended = {id_: at for id_, at in section.ended.items() if id_ not in left_alone}
            region.sections[scan.kind.name] = replace(section, ended=ended)
        region.book.write(region.sections, claim=False)

    def _end(self, scan: Scan, cases: Sequence[Case]) -> None:
        """Reads the facts once more, a chunk at a time, and ends what still has to end. The findings name what AWS refused."""
        for start in range(0, len(cases), FILTER_VALUES):
            chunk = {case.thing.id: case for case in cases[start : start + FILTER_VALUES]}
            if self._left() < LAST_S:
                self.findings.fail(
                    scan.region, f"{len(cases) - start} could not be ended: the function's time was over"
                )
                return
            try:
                page = scan.kind.again(list(chunk))
            except (ClientError, BotoCoreError) as problem:
                self.findings.fail(
                    scan.region, f"the facts could not be read again before the end, so nothing was ended: {problem}"
                )
                return
            sure = [thing.id for thing in page.things if self._is_sure(scan, thing, chunk, page.moment.earliest)]
            refused = scan.kind.end(sure) if sure else {}
            for id_ in sure:
                if id_ in refused:
                    self.findings.refuse(chunk[id_], refused[id_])
                    continue
                scan.ended[id_] = page.moment.latest
                if before := scan.section.ended.get(id_):
                    self.findings.refuse(
                        chunk[id_], f"AWS was asked to end it at {when(before)}, and it is still there"
                    )
                else:
                    self.findings.ended.append(chunk[id_])

    def _is_sure(self, scan: Scan, thing: Belonging, chunk: dict[str, Case], now: float) -> bool:
        """Whether the newest facts, and a fresh answer about the execution, give the same verdict."""
        case = chunk.get(thing.id)
        if case is None:
            return False
        asks = case.verdict.rule in ASKS_OWNER
        owner = self._owners.ask(thing.execution, fresh_s=FRESH_S) if asks else UNASKED
        verdict = judge(thing, owner, scan.section.suspects.get(thing.id), now, self._rules)
        return verdict.action is Action.TERMINATE and verdict.rule is case.verdict.rule

    def _has_time(self) -> bool:
        return self._left() >= RESERVE_S

    @contextmanager
    def _going_on(self, what: str) -> Iterator[None]:
        """Notes an error and goes on with the other regions; the handler raises when all is done."""
        try:
            yield
        except Exception as problem:
            logger.exception("failed", what=what)
            self.findings.fail(what, f"{type(problem).__name__}: {problem}")

"""Makes two passes over a manifest: the first checks every line and finds out what it needs, the second writes the plan's lines.

Both passes handle a line in the same order: drafts (manifest, reading, sweeps) make trainings of it; wanted adds the settings;
then policy judges it (first pass only), lookups asks AWS about it (first pass only), choice decides where it runs, and request
makes the arguments for SageMaker.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from typing import IO, Any

from aws.facts import Object
from aws.service_models import training_model
from contract.environments import GridEnvironment, JobChecksEnvironment
from contract.grid import SHARD, Backend, GridPrefix, Line
from contract.request_rules import NO_RULES, RequestRules
from grid_plan import choice, cluster_lines, code, lookups, policy
from grid_plan.answers import Answers
from grid_plan.choice import Decision, Undecided, decide
from grid_plan.cluster_lines import ClusterSpec
from grid_plan.columns import TrainingSpec
from grid_plan.drafts import Draft, Drafts, batches, describe_source, digest
from grid_plan.job_columns import JOB_ONLY
from grid_plan.line_jobs import FactsSource, LineJob, LineJobs, Map
from grid_plan.manifest import UnreadableManifest
from grid_plan.pod_lines import build_pod_request, list_pod_problems, list_type_problems
from grid_plan.problems import Report
from grid_plan.request import GivenDefaults, GridRequest
from grid_plan.training_arguments import GridRun, build_arguments, code_folder
from grid_plan.wanted import Wanted, with_settings
from job_checks.lookups import FactsReader
from job_requests.tag_fields import list_required_problems
from refusals.addresses import Address

BATCH = 500
"""How many trainings have their questions asked together."""
MOST_WARNINGS = 4_000
"""The most characters of all warnings of a plan together."""


@dataclass(slots=True)
class Checked:
    """The result of the first pass."""

    report: Report = field(default_factory=Report)
    warnings: Report = field(default_factory=Report)
    answers: Answers = field(default_factory=Answers)
    lines: int = 0
    regions: Counter[str] = field(default_factory=Counter)
    costs: list[float] = field(default_factory=list)
    """Maximum cost of each batch in dollars, where every price is known."""
    unpriced: int = 0
    """Number of trainings whose price is unknown."""

    @property
    def cost_at_most_usd(self) -> float | None:
        return None if self.unpriced else round(math.fsum(self.costs), 2)


@dataclass(frozen=True, slots=True)
class Judged:
    """A training about which AWS is asked; where some fields are wrong, only the right ones."""

    draft: Draft
    training: Wanted
    right: bool


@dataclass(frozen=True, slots=True)
class JudgedJob:
    """A job on clusters of our own, whose form is judged."""

    draft: Draft
    spec: ClusterSpec
    job: LineJob
    right: bool


class Planner:
    """Reads one version of a manifest on behalf of one execution."""

    def __init__(
        self,
        request: GridRequest,
        run: GridRun,
        env: GridEnvironment,
        given: GivenDefaults,
        rules: RequestRules = NO_RULES,
        checks: JobChecksEnvironment | None = None,
    ) -> None:
        """`checks` is what Admit's checks are told; without it, of jobs on clusters of our own the form alone is judged."""
        self._checks = checks
        self._asked, self._run, self._env, self._rules = request, run, env, rules
        self._drafts = Drafts(request, env.limits, env.defaults, given, rules)
        self._types = training_model.instance_types()
        self._given, self._has_jobs = given, False
        self._seen: dict[bytes, int] = {}
        self._checkpoints: dict[str, int] = {}
        self.codes: dict[Address, tuple[str, Object]] = {}
        """Where the code of the lines that were made has to lie, the region, and the version that was checked."""

    def check(self, file: IO[bytes]) -> Checked:
        """Makes the first pass: looks everything up, changes nothing."""
        jobs = self._judge_jobs_by(FactsReader(self._checks)) if self._checks else None
        with ThreadPoolExecutor(lookups.AT_ONCE) as pool:
            return self._read_all(file, lambda batch, checked: self._check_batch(batch, checked, pool, jobs))

    def check_form(self, file: IO[bytes], source: FactsSource | None = None) -> Checked:
        """Makes the part of the first pass that asks AWS nothing: what it finds stands against a line whatever AWS answers. `source`
        answers about jobs on clusters of our own in its place."""
        jobs = self._judge_jobs_by(source) if source else None
        return self._read_all(file, lambda batch, checked: self._check_batch_form(batch, checked, jobs))

    def _judge_jobs_by(self, source: FactsSource) -> LineJobs:
        assert self._checks is not None
        return LineJobs(self._checks, self._env.train_machine, self._run, source)

    def _read_all(self, file: IO[bytes], check: Callable[[list[Draft], Checked], None]) -> Checked:
        checked = Checked()
        try:
            for batch in batches(self._allowed(self._drafts.read(file), checked), BATCH):
                check(batch, checked)
        except UnreadableManifest as problem:
            checked.report.add(f"manifest: {problem}")
        most = self._env.limits.max_lines
        if not checked.lines and not checked.report:
            checked.report.add(f"manifest: has no line of a training; allowed: 1 to {most:,} lines")
        self._check_cost(checked)
        if not self._has_jobs and not checked.report:
            for name in (one for one in JOB_ONLY if one in self._given.fields):
                checked.report.add(
                    f"defaults.{name}: is a field of jobs, and no line has the backend ec2; allowed: with such a line, or left out"
                )
        return checked

    def _check_batch_form(self, batch: list[Draft], checked: Checked, jobs: LineJobs | None) -> None:
        checked.lines += len(batch)
        judged = [self._judge(draft, checked) for draft in batch]
        self._check_jobs([one for one in judged if isinstance(one, JudgedJob)], checked, jobs, map)

    def lines(self, file: IO[bytes], answers: Answers) -> Iterator[Line]:
        """Makes the second pass over a checked manifest: equal answers give equal lines."""
        slots: Counter[str] = Counter()
        for index, draft in enumerate(self._drafts.read(file)):
            if draft.training is None or draft.problems:
                raise RuntimeError(f"Line {draft.line} was checked, and now is wrong: {draft.problems}")
            if isinstance(draft.training, ClusterSpec):
                line = self._build_job(draft, draft.training, index, slots[self._env.home_region])
            else:
                line = self._build_training(draft, draft.training, index, slots, answers)
            yield line
            slots[line.region] += 1

    def _build_job(self, draft: Draft, spec: ClusterSpec, index: int, slot: int) -> Line:
        return Line(
            index=index,
            line=draft.line,
            region=self._env.home_region,
            why=cluster_lines.UNKNOWN,
            slot=slot,
            request=cluster_lines.build_start(spec, index, self._run, self._env),
            source=describe_source(spec),
            most_usd=spec.most_usd,
            backend=Backend.EC2,
        )

    def _build_training(
        self, draft: Draft, spec: TrainingSpec, index: int, slots: Counter[str], answers: Answers
    ) -> Line:
        training = Wanted.of(spec, self._env)
        decision = decide(training, answers)
        self._note_code(training, decision, answers)
        return Line(
            index=index,
            line=draft.line,
            region=decision.region,
            why=decision.why,
            slot=slots[decision.region],
            request=self._build_request(training, decision, index, answers),
            source=describe_source(with_settings(spec, self._env)),
            hourly_usd=decision.hourly_usd,
            most_usd=decision.most_usd(training),
            backend=Backend.KUBERNETES if training.is_pods else Backend.SAGEMAKER,
        )

    def _build_request(self, training: Wanted, decision: Decision, index: int, answers: Answers) -> dict[str, Any]:
        if not training.is_pods:
            return build_arguments(training, decision, index, self._run)
        kind = answers.types[training.machine_type]
        return build_pod_request(training, decision, index, self._run, kind.gpus if kind else 0)

    def _note_code(self, training: Wanted, decision: Decision, answers: Answers) -> None:
        if training.code is None:
            return
        stand, source = answers.codes[training.code.key], Address.parse(training.code.address)
        folder = code_folder(self._run, decision.code, decision.region, self._env)
        found = Object(
            bucket=source.bucket,
            key=source.key,
            size=stand.size,
            version=stand.version,
            etag=stand.etag,
            archived=False,
        )
        self.codes[Address(folder.bucket, f"{folder.key}{code.FILE}")] = (decision.region, found)

    def _allowed(self, drafts: Iterator[Draft], checked: Checked) -> Iterator[Draft]:
        """Yields as many drafts as are allowed, and reads no further."""
        most = self._env.limits.max_lines
        for number, draft in enumerate(drafts):
            if number >= most:
                checked.report.add(
                    f"manifest: makes more than {most:,} trainings, sweeps included; "
                    f"allowed: up to {most:,} (grid.limits.max_lines in cdk.json)"
                )
                return
            yield draft

    def _check_batch(
        self, batch: list[Draft], checked: Checked, pool: ThreadPoolExecutor, jobs: LineJobs | None
    ) -> None:
        checked.lines += len(batch)
        every = [self._judge(draft, checked) for draft in batch]
        judged = [one for one in every if isinstance(one, Judged)]
        lookups.learn([one.training for one in judged], checked.answers, pool)
        costs = [self._check_place(one, checked) for one in judged]
        checked.costs.append(math.fsum(cost for cost in costs if cost is not None))
        self._check_jobs([one for one in every if isinstance(one, JudgedJob)], checked, jobs, pool.map)

    def _judge(self, draft: Draft, checked: Checked) -> Judged | JudgedJob | None:
        """Judges a draft without asking AWS; None for a line that makes nothing."""
        problems = list(draft.problems)
        judged: Judged | JudgedJob | None = None
        if isinstance(draft.training, ClusterSpec):
            judged = self._judge_job(draft, draft.training, problems)
        elif draft.training is not None:
            training = Wanted.of(draft.training, self._env)
            problems += policy.problems(training, self._types, excused=draft.wrong)
            problems += list_pod_problems(training) if training.is_pods and "backend" not in draft.wrong else []
            problems += [] if "tags" in draft.wrong else list_required_problems(training.spec.tags or {}, self._rules)
            problems += [] if problems else self._repeats(draft)
            wrong = draft.wrong | {re.split("[.:]", problem)[0] for problem in problems}
            judged = Judged(draft, training.without(wrong), right=not wrong)
            for warning in policy.warnings(training):
                checked.warnings.add(warning, draft.line)
        for problem in problems:
            checked.report.add(problem, draft.line)
        return judged

    def _judge_job(self, draft: Draft, spec: ClusterSpec, problems: list[str]) -> JudgedJob:
        """Adds what is wrong with the form of a job."""
        self._has_jobs = True
        request, found = cluster_lines.read_job(spec, self._run, self._env, self._rules)
        problems += found
        problems += [] if problems else self._repeats(draft)
        return JudgedJob(draft, spec, LineJob.of(spec, request), right=not problems)

    def _check_jobs(self, judged: list[JudgedJob], checked: Checked, jobs: LineJobs | None, each: Map) -> None:
        """Adds what Admit would say against the jobs, and counts those against which nothing stands."""
        if jobs:
            jobs.learn([one.job for one in judged], each)
        for one in judged:
            problems = jobs.list_problems(one.job) if jobs else []
            problems = problems or (self._count_job(one, checked) if one.right else [])
            for problem in problems:
                checked.report.add(problem, one.draft.line)

    def _count_job(self, judged: JudgedJob, checked: Checked) -> list[str]:
        """Counts what a job may cost; lists what is wrong with that."""
        most_usd = judged.spec.most_usd
        if most_usd is not None:
            checked.costs.append(most_usd)
        elif self._asked.max_cost_usd is not None:
            return [
                "max_cost_usd: the line has none, and what a job costs is not known before it starts, so the plan cannot keep to the "
                "input's; allowed: max_cost_usd in each line with the backend ec2, or none in the input"
            ]
        else:
            checked.unpriced += 1
        checked.regions[self._env.home_region] += 1
        for warning in judged.draft.warnings:
            checked.warnings.add(warning, judged.draft.line)
        return []

    def _repeats(self, draft: Draft) -> Iterator[str]:
        """Finds what two trainings must not share."""
        assert draft.training is not None
        if not self._asked.allow_duplicates:
            first = self._seen.setdefault(digest(draft.training), draft.line)
            if first != draft.line:
                yield f'is the same as line {first}; allowed: each training once, or "allow_duplicates": true in the input'
        if isinstance(draft.training, ClusterSpec):
            return
        if (folder := draft.training.checkpoint) and (draft.makes > 1 or folder in self._checkpoints):
            other = f"line {self._checkpoints[folder]}" if folder in self._checkpoints else "each training of the sweep"
            yield f"checkpoint: is that of {other} too; allowed: a folder for this training alone, or none"
        elif folder:
            self._checkpoints[folder] = draft.line

    def _check_place(self, judged: Judged, checked: Checked) -> float | None:
        """Decides by AWS's answers; returns the maximum cost in dollars, None where the line is wrong or its price unknown."""
        draft, training = judged.draft, judged.training
        try:
            decision = decide(training, checked.answers)
        except Undecided as undecided:
            for problem in undecided.problems:
                checked.report.add(problem, draft.line)
            return None
        if not judged.right:
            return None
        index = sum(checked.regions.values())
        for problem in training_model.problems(build_arguments(training, decision, index, self._run)):
            checked.report.add(f"request: SageMaker would reject it: {problem}", draft.line)
        for problem in list_type_problems(training, checked.answers) if training.is_pods else ():
            checked.report.add(problem, draft.line)
        checked.regions[decision.region] += 1
        for warning in choice.warnings(training, decision, checked.answers):
            checked.warnings.add(warning, draft.line)
        return self._cost(draft, training, decision, checked)

    def _cost(self, draft: Draft, training: Wanted, decision: Decision, checked: Checked) -> float | None:
        cost = decision.most_usd(training)
        if cost is None:
            checked.unpriced += 1
            unknown = f"the price of {training.spec.instance_type} in {decision.region} is unknown"
            if self._asked.max_cost_usd is None:
                checked.warnings.add(f"{unknown}, and SageMaker may not offer the type there", draft.line)
            else:
                may_be = "other types, or no max_cost_usd"
                checked.report.add(
                    f"instance_type: {unknown}, so the plan cannot keep to max_cost_usd; allowed: {may_be}", draft.line
                )
        return cost

    def _check_cost(self, checked: Checked) -> None:
        most, cost = self._asked.max_cost_usd, math.fsum(checked.costs)
        if most is not None and cost > most:
            checked.report.add(
                f"max_cost_usd: {most:,.2f} is less than {cost:,.2f}, which the trainings could cost until their time-outs "
                "at on-demand prices; allowed: a larger max_cost_usd, or fewer lines, instances or hours"
            )


def write(lines: Iterator[Line], prefix: GridPrefix, put: Callable[[str, bytes], None]) -> int:
    """Writes object by object; returns the number of lines."""
    count = 0
    for shard in batches(lines, SHARD):
        put(prefix.lines(shard[0].index), b"".join(_encoded(line) for line in shard))
        count += len(shard)
    return count


def _encoded(line: Line) -> bytes:
    """Encodes as contract.codec.encode does, which copies every value: for 10,000 lines the copies are half of the writing time."""
    members = {one.name: getattr(line, one.name) for one in fields(line)}
    return json.dumps(members, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"

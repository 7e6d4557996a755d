"""Whatever text stands in whatever field of whatever input: the answer is a refusal with the field's name, or what was asked for.

The places come from the schemas that the inputs are read by: a new field that takes a text is tried without a line here.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from contract.codec import encode
from contract.environments import LineCluster
from contract.errors import InvalidRequest
from grid_plan import job_columns
from grid_plan import request as grid_request
from grid_plan.cluster_lines import SAME
from grid_plan.planning import Planner
from grid_plan.spellings import trim
from grid_plan.training_arguments import GridRun
from image_build import request as image_request
from image_build.handler import handler as build
from job_requests import request as job_request
from refusals.wording import MOST, plain
from searches import request as search_request
from searches import study
from searches.request import write_line
from stacks.settings import BadSettings, Settings
from tests.builders import FILE_SYSTEMS, NOW
from tests.fakes.ec2_catalogue import Catalogue, Kind
from tests.functions.admission.account import ADMITTING, start
from tests.functions.admission.account import account as admitting
from tests.functions.grid_plan.account import ENVIRONMENT
from tests.functions.grid_plan.account import Account as PlanAccount
from tests.functions.image_build.account import account as building
from tests.functions.search.account import searched
from tests.odd_texts import ODD, Planter, list_names
from tools.refusals.grids.yard import HOME, LIMITS, execution
from tools.refusals.jobs import LEAST as JOB
from tools.refusals.jobs.preset import RULES
from tools.refusals.searches.yard import JOB as JOB_TEMPLATE
from tools.refusals.searches.yard import LEAST as SEARCH
from tools.settings import schema as read_settings_schema
from trainyard.checking import examine_grid, examine_search
from trainyard.offline import Supposed, judge_job, list_unknown

Fields = Mapping[str, Any]
KNOWN = Supposed(env=ADMITTING, account="123456789012", partition="aws", file_systems={HOME: FILE_SYSTEMS}, rules=RULES)
TYPES = {"instance_types": ["g5.xlarge"]}
JOBS: Mapping[str, Fields] = {
    "a command": JOB,
    "an image": {"image": "images:v1", **TYPES},
    "torchrun": {**JOB, "launcher": "torchrun"},
    "mpi": {**JOB, "launcher": "mpi", "image": "images:v1"},
    "roles": {**JOB, "roles": [{"name": "chief"}, {"name": "worker", "count": 2}]},
    "a workbench": {"workbench": {}, "owner": "ada", **TYPES},
}
LINE = {"image": "images:v1", "instance_type": "ml.g5.xlarge", "region": HOME, "data": "s3://data-eu/train/"}
LINES: Mapping[str, Fields] = {
    "sagemaker": LINE,
    "sagemaker, mpi": {**LINE, "distribution": "mpi", "program": "train.py"},
    "kubernetes": {**LINE, "backend": "kubernetes", "entrypoint": ["python", "train.py"]},
    "kubernetes, mpi": {**LINE, "backend": "kubernetes", "distribution": "mpi", "program": "train.py"},
    "ec2": {"backend": "ec2", "image": "images:v1", "command": ["python", "train.py"], **TYPES},
}
BUILDS: Mapping[str, Fields] = {
    "a context": {"context": "s3://yard-home/uploads/good.tar.gz", "repository": "images", "tag": "v1"},
    "a copy": {"copy": "public.ecr.aws/docker/library/python:3.12-slim", "repository": "images", "tag": "v1"},
}
SEARCHES: Mapping[str, Fields] = {
    "sagemaker": {**SEARCH, "places": [{"region": HOME}], "begin_with": [{"lr": 0.01}]},
    "ec2": {**SEARCH, "template": JOB_TEMPLATE, "objective": {"metric": "metric", "direction": "maximize"}},
}
FOLDERS = {"hyperparameters": "hp.", "environment": "env.", "tags": "tag.", "metrics": "metric."}
"""Fields of a line to the prefix of the columns that each hold one entry of them."""
OTHER_NAMES = {**{name: other for name, (other, _) in SAME.items()}, "code": "command", "copy": "copy"}
"""Fields to those in whose words their refusal may be."""
WHOLE = ("is longer than ", "characters; allowed", "bytes; allowed", "holds NUL bytes", "is not UTF-8", "request: ")
"""What a refusal says of an input, or of a line, whose fields cannot be told apart."""
JOB_SCHEMA, LINE_SCHEMA = job_request.schema(), job_columns.schema()
GRID_SCHEMA, SEARCH_SCHEMA, BUILD_SCHEMA = grid_request.schema(), search_request.schema(), image_request.schema()
MOST_SHORT = 10_000
DAILY = ("an apostrophe", "NUL", "half a surrogate", "line ends", "100 kB")
EACH_TEXT = pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=what, marks=() if what in DAILY else pytest.mark.at_length) for what, text in ODD.items()],
)


def settings_schema() -> dict[str, Any]:
    """The schema of the block of settings alone."""
    whole = read_settings_schema()
    context = whole["properties"]["context"]["properties"]["trainyard"]
    return {**whole, "properties": Planter(whole).resolve(context)["properties"]}


def put(schema: Mapping[str, Any], bases: Iterable[Fields], text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name of a field, and an input with the text in that field: of a long text the first input alone."""
    planted, every = list(Planter(schema).plant(text)), list(bases)
    yield from (
        (name, {**base, name: value})
        for base in every[: 1 if len(text) > MOST_SHORT else None]
        for name, value in planted
    )


def judge(field: str, given: object, lines: list[str]) -> bool:
    """Whether an input was accepted; fails where a refusal names no field, or where something was accepted that nothing can hold."""
    shown = f"{field[:99]!r}: {str(given)[:300]!a}"
    assert sum(map(len, lines)) < 2 * MOST, shown
    assert all(line.isprintable() for line in lines), f"{shown}: {lines}"
    if lines:
        names = {plain(field).lower(), plain(field)[:40].lower(), OTHER_NAMES.get(field, field)}
        text = "\n".join(lines)
        assert any(one in text.lower() for one in names) or any(one in text for one in WHOLE), f"{shown}: {text[:999]}"
        return False
    held = json.dumps(given, ensure_ascii=False)
    held.encode()
    assert "\\u0000" not in held, shown
    return True


def said(call: Callable[[], object]) -> list[str]:
    """The lines of a refusal; none of what is accepted."""
    try:
        call()
    except InvalidRequest as refused:
        return [line.removeprefix("- ") for line in str(refused).splitlines()[1:]]
    except BadSettings as refused:
        return str(refused).splitlines()
    return []


# jobs


@EACH_TEXT
def test_the_request_of_a_job_is_refused_by_its_field_or_accepted(text: str) -> None:
    for field, given in put(JOB_SCHEMA, JOBS.values(), text):
        judge(field, given, judge_job(given, "job-1", KNOWN, now=NOW).splitlines()[1:])
        list_unknown(given, KNOWN)


@EACH_TEXT
def test_what_check_accepts_of_a_request_admit_accepts_or_refuses_by_its_field(text: str) -> None:
    with admitting():
        for number, (field, given) in enumerate(put(JOB_SCHEMA, [JOBS["a command"], JOBS["an image"]], text)):
            if not judge_job(given, "job-1", KNOWN, now=NOW):
                judge(field, given, said(lambda given=given, number=number: start(given, f"job-{number}")))


# grids


class Planning:
    """Plan on an account with a cluster of Kubernetes."""

    def __init__(self) -> None:
        cluster, limits = LineCluster(name="lab", most_nodes=4), replace(LIMITS, instance_types=("ml.*",))
        self.env = replace(ENVIRONMENT, limits=limits, kubernetes=cluster)
        self.run = GridRun(grid="sweep-7", execution=execution()["arn"], started_at="2027", owner="")
        self.there = PlanAccount()
        self.there.keep_calls = False
        nothing: dict[str, Any] = {one: {} for one in ("subnets", "templates", "images")}
        sets: dict[str, Any] = {one: set[str]() for one in ("groups", "security_groups", "profiles")}
        kinds = {"g5.xlarge": Kind("g5.xlarge", gpu="A10G", count=1)}
        self.there.open_region(HOME, Catalogue(zones=(), **nothing, **sets, kinds=kinds))
        self.there.prices.hourly = {"g5.xlarge": 1.0}

    def planner(self) -> Planner:
        asked, given, problems = grid_request.read({"manifest": "s3://any/any"}, self.env.limits)
        assert problems == []
        return Planner(asked, self.run, self.env, given)

    def check(self, manifest: bytes) -> list[str]:
        """What stands against a manifest of one line; what is accepted without AWS is planned."""
        report = self.planner().check_form(io.BytesIO(manifest)).report
        if report:
            return list(report.reasons())
        planner = self.planner()
        checked = planner.check(io.BytesIO(manifest))
        if checked.report:
            return list(checked.report.reasons())
        for line in planner.lines(io.BytesIO(manifest), checked.answers):
            encode(line)
        return []


def write_csv(given: Fields) -> bytes:
    """The line as a table: a column for each field, or for each entry of a field of FOLDERS whose entries are texts."""
    cells = dict[str, str]()
    for name, value in given.items():
        prefix = FOLDERS.get(name)
        if prefix and isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
            cells |= {f"{prefix}{entry}": one for entry, one in value.items()}
        else:
            cells[name] = value if isinstance(value, str) else json.dumps(value)
    file = io.StringIO()
    csv.writer(file).writerows([cells.keys(), cells.values()])
    return file.getvalue().encode(errors="surrogatepass")


@EACH_TEXT
@pytest.mark.parametrize(
    "backend", [pytest.param(one, marks=pytest.mark.at_length if "mpi" in one else ()) for one in LINES]
)
def test_a_line_is_refused_by_its_field_or_planned(backend: str, text: str) -> None:
    planning = Planning()
    with planning.there.connected():
        assert planning.check(json.dumps(LINES[backend]).encode()) == []
        for field, given in put(LINE_SCHEMA, [LINES[backend]], text):
            judge(field, given, planning.check(json.dumps(given).encode()))


@EACH_TEXT
def test_a_row_is_refused_by_its_column_or_planned(text: str) -> None:
    planning = Planning()
    with planning.there.connected():
        for field, given in put(LINE_SCHEMA, [LINES["sagemaker"], LINES["ec2"]], text):
            lines = planning.check(write_csv(given))
            if trim(text):  # a cell without a text sets nothing, a column without a name is none
                judge(trim(field), trim(field), lines)


@EACH_TEXT
def test_the_input_of_a_grid_is_refused_by_its_field_or_read(text: str) -> None:
    settings = Settings.parse({"catalogue": True})
    for field, given in put(GRID_SCHEMA, [{}], text):
        whole = given if "query" in given else {"manifest": "s3://yard-home/uploads/manifest.csv", **given}
        lines = grid_request.read(whole, LIMITS)[2]
        judge(field, whole, lines)
        assert bool(examine_grid(given, settings).problems) is bool(lines)


# searches


@EACH_TEXT
@pytest.mark.parametrize("template", SEARCHES)
def test_the_input_of_a_search_is_refused_by_its_field_or_asked(
    template: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.parse({})
    with searched(monkeypatch) as there:
        assert there.problems(SEARCHES[template]) == []
        for field, given in put(SEARCH_SCHEMA, [SEARCHES[template]], text):
            examine_search(given, settings)
            checked = there.check(given)
            if judge(field, given, checked.problems):
                asked = study.ask(checked.wanted, (), checked.search.first, number=0, count=2)
                there.store.settle(replace(checked.search, id=f"tune-{abs(hash(str(given)))}"))
                there.store.ensure_questions("tune-7", 1, [write_line(checked.wanted, 0, one) for one in asked])


# image builds


@EACH_TEXT
def test_the_request_of_a_build_is_refused_by_its_field_or_planned(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with building(monkeypatch):
        for field, given in put(BUILD_SCHEMA, BUILDS.values(), text):
            event = {"action": "check", "request": json.loads(json.dumps(given))}
            judge(field, given, said(lambda event=event: build(event, None)))


# settings


@EACH_TEXT
def test_settings_are_refused_by_their_key_or_read(text: str) -> None:
    for field, given in put(settings_schema(), [{}], text):
        judge(field, given, said(lambda given=given: Settings.parse(given)))


STARTS: Mapping[str, tuple[Mapping[str, Any], Fields]] = {
    "a job": (JOB_SCHEMA, JOB),
    "a grid": (GRID_SCHEMA, {"manifest": "{data}/manifest.csv"}),
    "a search": (SEARCH_SCHEMA, SEARCH),
}


@EACH_TEXT
@pytest.mark.parametrize("started", STARTS)
def test_the_input_of_a_campaign_is_refused_by_its_field_or_read(started: str, text: str) -> None:
    schema, least = STARTS[started]
    for field, given in put(schema, [least], text):
        campaign = {"prefix": "uploads/a/", "suffix": "_READY", "input": given}
        judge(field, given, said(lambda campaign=campaign: Settings.parse({"campaigns": {"own": campaign}})))


@EACH_TEXT
def test_a_preset_is_refused_by_its_field_or_read(text: str) -> None:
    for field, given in put(JOB_SCHEMA, [{}], text):
        judge(field, given, said(lambda given=given: Settings.parse({"presets": {"own": given}})))


@EACH_TEXT
def test_the_build_of_a_watch_is_refused_by_its_field_or_read(text: str) -> None:
    watch = {"git": "https://github.com/owner/repository.git", "branch": "main"}
    hosts = {"git_hosts": {"github.com": ""}}
    for field, given in put(BUILD_SCHEMA, [{"repository": "images"}], text):
        settings = {**hosts, "watch": {"own": {**watch, "build": given}}}
        judge(field, given, said(lambda settings=settings: Settings.parse(settings)))


# what is tried


def list_fields(schema: Mapping[str, Any], shape: object) -> Iterator[str]:
    """The names of all fields below a part of a schema."""
    if isinstance(shape, list):
        yield from (name for one in shape for name in list_fields(schema, one))
    elif isinstance(shape, dict):
        for key, one in shape.items():
            yield from one if key == "properties" else ()
            below = schema["$defs"][one.rpartition("/")[2]] if key == "$ref" else one
            yield from list_fields(schema, below) if key not in ("examples", "default") else ()


@pytest.mark.parametrize(
    "schema",
    [JOB_SCHEMA, LINE_SCHEMA, GRID_SCHEMA, SEARCH_SCHEMA, BUILD_SCHEMA, settings_schema()],
    ids=["job", "line", "grid", "search", "build", "settings"],
)
def test_every_field_of_every_schema_gets_the_text(schema: Mapping[str, Any]) -> None:
    planted = list(Planter(schema).plant("~odd~"))
    assert schema["properties"].keys() <= {name for name, _ in planted}
    assert set(list_fields(schema, schema["properties"])) <= {
        name for _, value in planted for name in list_names(value)
    }

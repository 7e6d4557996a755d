"""`check` says what Admit and Plan would say, and nothing that they would not say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import names
from stacks.settings import BLOCK, Settings
from tests.builders import FILE_SYSTEMS, NOW
from tests.command_line.account import run
from tests.functions.admission.account import ADMITTING
from tools.refusals.jobs import LEAST, SECTIONS
from tools.refusals.jobs.preset import RULES
from trainyard.checking import examine
from trainyard.offline import Supposed, judge_job
from trainyard.settings import NO_ACCOUNT, find_settings
from trainyard.supposed import NOT_KNOWN, describe_admission, describe_grids, find_account

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
KNOWN = Supposed(
    env=ADMITTING,
    account="123456789012",
    partition="aws",
    file_systems={"eu-central-1": FILE_SYSTEMS},
    rules=RULES,
)
ROWS = [(section, row) for section in SECTIONS for row in section.rows if not row.closed]
HOME = "s3://trainyard-home-111122223333-eu-central-1/uploads"


def said(request: object, name: str = "job-1") -> list[str]:
    """The lines of a refusal."""
    return [line.removeprefix("- ") for line in judge_job(request, name, KNOWN, now=NOW).split("\n")[1:]]


def write(folder: Path, given: object, name: str = "job.json") -> Path:
    path = folder / name
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    return path


def test_no_line_is_one_that_admit_would_not_say() -> None:
    found = {
        (section.field, row.what): extra
        for section, row in ROWS
        if (extra := set(said(json.loads(json.dumps(row.input)), row.name)) - set(section.lines(row)))
    }
    assert found == {}


def test_most_of_what_admit_refuses_is_refused_without_aws_in_the_same_words() -> None:
    same = [row for section, row in ROWS if said(json.loads(json.dumps(row.input)), row.name) == section.lines(row)]
    assert len(same) > 0.75 * len(ROWS)


@pytest.mark.parametrize("section", [one for one in SECTIONS if one.taken is not None], ids=lambda one: one.field)
def test_a_value_that_admit_takes_is_taken(section: Any) -> None:
    least = {key: one for key, one in LEAST.items() if key not in section.without}
    assert said({**least, **section.beside, section.field: section.taken}, section.name) == []


@pytest.mark.parametrize(
    "more",
    [
        {"regions": "auto"},
        {"regions": ["eu-central-1"], "nodes": 4, "efa": True},
        {"market": "spot", "checkpoint_minutes": 10, "max_hours": 24},
        {"max_cost_usd": 1},
        {"image": "images:v1"},
        {"resume_from": "another"},
        {"reservation": "cr-00000000000000001"},
        {"machine_image": "graviton"},
        {"processes_per_node": 8, "launcher": "torchrun", "command": ["train.py"]},
    ],
    ids=str,
)
def test_what_only_aws_could_object_to_is_not_objected_to(more: dict[str, Any]) -> None:
    assert said({**LEAST, **more}) == []


def test_accelerators_of_any_machine_are_taken() -> None:
    request = {name: value for name, value in LEAST.items() if name != "instance_types"}
    assert said({**request, "accelerators": "H100:8"}) == []
    assert said({**request, "accelerators": "H100:x"}) != []


def test_a_p3_without_an_image_of_its_family_is_refused() -> None:
    (line,) = said({**LEAST, "instance_types": ["p3.2xlarge"]})
    assert "needs an image of family p3" in line
    known = replace(KNOWN, env=replace(ADMITTING, images={**ADMITTING.images, "p3": "/aws/service/p3"}))
    assert judge_job({**LEAST, "instance_types": ["p3.2xlarge"]}, "job-1", known, now=NOW) == ""


def test_every_problem_is_told_at_once_and_the_exit_code_is_2(tmp_path: Path) -> None:
    ran = run("check", write(tmp_path, {"command": "python 'train.py", "nodes": "2", "gpu": 1, "instance_types": []}))
    assert ran.code == 2
    fields = {line.split(":")[0].removeprefix("- ") for line in ran.err.splitlines()[1:]}
    assert fields == {"code", "command", "gpu", "instance_types", "nodes"}
    assert ran.err.startswith("The request would be refused for 5 reasons; nothing would be started.")


@pytest.mark.parametrize("file", sorted((EXAMPLES / "first_job").glob("*.json")), ids=lambda one: one.name)
def test_an_example_with_its_code_is_right(file: Path) -> None:
    ran = run("check", file, "--code", EXAMPLES / "ddp_digits")
    assert (ran.code, ran.err) == (0, "")
    assert "nothing stands against this job" in ran.out
    assert "not checked: Whether the regions offer" in ran.out


def test_a_folder_without_the_file_that_the_command_runs_is_told(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    write(code, "print()", "main.py")
    ran = run(
        "check", write(tmp_path, {"command": ["python", "train.py"], "instance_types": ["g5.xlarge"]}), "--code", code
    )
    assert ran.code == 2
    assert "command: runs train.py, which is not in" in ran.err


def test_requirements_that_pip_cannot_read_are_told_before_anything_is_uploaded(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    write(code, "print()", "train.py")
    write(code, "numpy=1.26=py311\n", "requirements.txt")
    ran = run("check", write(tmp_path, {"command": "python train.py", "instance_types": ["g5.xlarge"]}), "--code", code)
    assert ran.code == 2
    assert "requirements.txt" in ran.err
    assert "only conda reads" in ran.err


@pytest.mark.parametrize("name", ["a/b", "../b", "", "a" * 81])
def test_a_name_that_no_job_can_have_is_refused_beside_its_code(name: str) -> None:
    ran = run("check", EXAMPLES / "ddp_digits" / "job.json", "--code", EXAMPLES / "ddp_digits", f"--name={name}")
    assert (ran.code, "name: the execution is called" in ran.err) == ((2, True) if name else (0, False))


def test_json_has_the_problems_and_what_was_not_checked(tmp_path: Path) -> None:
    ran = run("check", write(tmp_path, {**LEAST, "code": f"{HOME}/a.zip", "nodes": 0}), "--json")
    (found,) = ran.documents
    assert (ran.code, found["is"], found["ok"]) == (2, "job", False)
    assert [line.split(":")[0] for line in found["problems"]] == ["nodes"]
    assert any("HOME" not in line for line in found["unknown"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('"job"', "is not a JSON object"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_no_request_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    ran = run("check", write(tmp_path, text))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert reason in ran.err


def test_a_file_that_is_not_there_or_not_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{}")
    for file, reason in (
        ("none.json", "there is no such file"),
        ("bytes.json", "is not text in UTF-8"),
        (".", "is a folder"),
    ):
        ran = run("check", tmp_path / file)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert reason in ran.err


def test_settings_of_another_file_are_what_counts(tmp_path: Path) -> None:
    settings = write(tmp_path, {"context": {BLOCK: {"limits": {"max_nodes": 2}}}}, "other.json")
    request = write(tmp_path, {**LEAST, "code": f"{HOME}/a.zip", "nodes": 3})
    assert run("check", request).code == 0
    ran = run("check", request, "--settings", settings)
    assert ran.code == 2
    assert "nodes: 3 is too large; allowed: a whole number from 1 to 2" in ran.err


OTHER_HOME = "s3://other-home-111122223333-us-east-1/uploads/a.zip"
TWO_REGIONS = {
    "deployment": "mine",
    "regions": [{"region": "eu-central-1", "cidr": "10.70.0.0/16"}, {"region": "us-east-1", "cidr": "10.71.0.0/16"}],
}


def test_code_in_the_home_bucket_of_the_deployment_that_the_options_name_is_taken(tmp_path: Path) -> None:
    settings = write(tmp_path, {"context": {BLOCK: TWO_REGIONS}}, "other.json")
    request = write(tmp_path, {**LEAST, "code": OTHER_HOME})
    named = ["--settings", settings, "--deployment", "other", "--region", "us-east-1"]
    ran = run("check", request, *named)
    assert (ran.code, ran.err) == (0, "")
    assert run("check", request, *named[:4]).code == 2
    assert run("check", request, "--settings", settings).code == 2


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--region", "mars", "--region: mars is not a region; allowed: the deployment's home region"),
        ("--region", "us-east-1", f"--region: {ROOT / 'cdk.json'} has no region us-east-1 that trains"),
        ("--deployment", "X_Y", "--deployment: X_Y is not the name of a deployment; allowed: 2 to 20"),
    ],
)
def test_an_option_of_which_no_settings_are_known_gets_no_verdict(
    tmp_path: Path, option: str, value: str, words: str
) -> None:
    ran = run("check", write(tmp_path, {**LEAST, "code": f"{HOME}/a.zip"}), option, value)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(words)


def test_a_refusal_never_allows_what_it_refuses(tmp_path: Path) -> None:
    request = write(tmp_path, {**LEAST, "code": "s3://trainyard-home-account-eu-central-1/uploads/a.zip"})
    ran = run("check", request)
    assert ran.code == 2
    assert "allowed: s3://trainyard-home-<number of the account>-eu-central-1/" in ran.err


def test_a_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = run("check", "job.json")
    assert (ran.code, ran.err) == (
        2,
        "the folder in which the command runs is no longer there; allowed: another one (cd)\n",
    )


def test_an_interrupt_of_a_check_is_no_word_about_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("trainyard.checking.examine", interrupt)
    ran = run("check", write(tmp_path, LEAST))
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_wrong_settings_are_told_as_a_synth_tells_them(tmp_path: Path) -> None:
    settings = write(tmp_path, {"context": {BLOCK: {"limits": {"max_node": 2}}}}, "other.json")
    ran = run("check", write(tmp_path, LEAST), "--settings", settings)
    assert ran.code == 2
    assert "max_node" in ran.err
    for wrong in ({}, {"context": {}}, {"context": {BLOCK: 1}}, {"context": 1}):
        ran = run("check", write(tmp_path, LEAST), "--settings", write(tmp_path, wrong, "none.json"))
        assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_cdk_json_of_another_app_is_no_deployments(tmp_path: Path) -> None:
    write(tmp_path, {"app": "other", "context": {}}, "cdk.json")
    assert find_settings(None, tmp_path).path == ROOT / "cdk.json"
    own = write(
        tmp_path, {"context": {BLOCK: {"deployment": "mine"}, "@aws-cdk/core:bootstrapQualifier": "mine"}}, "cdk.json"
    )
    found = find_settings(None, tmp_path)
    assert (found.path, found.block["deployment"], found.qualifier) == (own, "mine", "mine")


def test_the_account_is_that_of_the_names_in_the_request() -> None:
    for text, account in (
        (f'"{HOME}/a.zip"', "111122223333"),
        ('"arn:aws:secretsmanager:eu-central-1:444455556666:secret:trainyard/trainyard/a"', "444455556666"),
        ('"arn:aws:resource-groups:eu-central-1:777788889999:group/x"', "777788889999"),
        ('"123456789012.dkr.ecr.eu-central-1.amazonaws.com/trainyard/images:v1"', "123456789012"),
        ("eu-central-1,123456789012.dkr.ecr.eu-central-1.amazonaws.com/trainyard/images:v1\n", "123456789012"),
        ('"763104351884.dkr.ecr.eu-central-1.amazonaws.com/pytorch-training:2"', NO_ACCOUNT),
        ('"2123456789012.dkr.ecr.eu-central-1.amazonaws.com/trainyard/images:v1"', NO_ACCOUNT),
        ("{}", NO_ACCOUNT),
    ):
        assert find_account(text, "trainyard", "eu-central-1") == account


def test_a_bucket_of_another_deployment_is_refused(tmp_path: Path) -> None:
    ran = run("check", write(tmp_path, {**LEAST, "code": "s3://other-home-111122223333-eu-central-1/uploads/a.zip"}))
    assert ran.code == 2
    assert "is not in a bucket that jobs may read" in ran.err


def test_the_environments_are_those_of_a_deploy() -> None:
    settings = Settings.parse(json.loads((ROOT / "cdk.json").read_text())["context"][BLOCK])
    admission, grid = describe_admission(settings, "111122223333"), describe_grids(settings, "111122223333")
    assert (admission.limits, grid.limits) == (settings.limits, settings.grid.limits)
    assert admission.bucket == grid.bucket == names.home_bucket("trainyard", "111122223333", "eu-central-1")
    assert {name for name in ("agent", "agent_bucket", "agent_key", "attendant") if getattr(admission, name)} == set()
    assert grid.training_role == NOT_KNOWN


def test_the_input_of_a_grid_is_known_by_its_fields(tmp_path: Path) -> None:
    assert "nothing stands against this grid" in run("check", EXAMPLES / "grid" / "input.json").out
    ran = run("check", write(tmp_path, {"manifest": "s3://a-bucket/m.csv", "default": {}, "max_cost_usd": -1}))
    assert ran.code == 2
    assert ran.err.startswith("The grid would be refused for 2 reasons; nothing would be started.")


def test_a_query_is_refused_where_the_settings_have_no_catalogue_and_has_no_manifest_to_check(tmp_path: Path) -> None:
    query = write(tmp_path, {"query": "select region, address as data from data_sets"}, "grid.json")
    ran = run("check", query)
    assert ran.code == 2
    assert "- query: this deployment has no catalogue; allowed: manifest, or catalogue true in cdk.json" in ran.err
    assert "not checked: The rows of the query, and all that they name." in ran.out
    settings = json.loads((ROOT / "cdk.json").read_text())
    settings["context"][BLOCK]["catalogue"] = True
    assert run("check", query, "--settings", write(tmp_path, settings, "cdk.json")).code == 0


def test_a_query_that_names_a_file_is_refused_and_a_file_of_sql_is_said_to_belong_in_an_input(tmp_path: Path) -> None:
    ran = run("check", write(tmp_path, {"query": "query.sql"}, "grid.json"))
    assert ran.code == 2
    assert "- query: query.sql names a file; allowed: the SQL that it holds" in ran.err
    file = tmp_path / "query.SQL"
    file.write_text("select 1")
    ran = run("check", file)
    assert ran.code == 2
    assert f"{file}: is SQL; allowed: its text as `query` in the input of a grid" in ran.err


def test_the_input_of_a_search_is_known_by_its_fields(tmp_path: Path) -> None:
    wide = write(tmp_path, {"context": {BLOCK: ACCOUNT_WIDE}}, "cdk.json")
    given = (EXAMPLES / "search" / "search.json").read_text().replace("REPLACE-WITH-ACCOUNT", "111122223333")
    ran = run("check", write(tmp_path, given), "--settings", wide)
    assert "nothing stands against this search" in ran.out
    ran = run("check", write(tmp_path, {"template": {}, "search": {}, "trials": 0}))
    assert ran.code == 2
    assert "trials" in ran.err


def test_a_manifest_is_read_with_the_defaults_of_its_input(tmp_path: Path) -> None:
    manifest = write(
        tmp_path,
        "region,s3_location\neu-central-1,s3://trainyard-bytes-111122223333-eu-central-1/uploads/a/\n",
        "m.csv",
    )
    alone = run("check", manifest)
    assert alone.code == 2
    assert "line 2: image: is missing" in alone.err
    given = write(tmp_path, {"defaults": {"image": "images:v1", "instance_type": "ml.m5.large"}}, "input.json")
    assert run("check", manifest, "--input", given).code == 0
    assert run("check", manifest, "--input", write(tmp_path, {"sweeps": {}}, "wrong.json")).code == 2
    assert "is no manifest" in run("check", given, "--input", given).err


def test_one_bad_line_of_many_is_named(tmp_path: Path) -> None:
    line = {"region": "eu-central-1", "image": "images:v1", "instance_type": "ml.m5.large"}
    lines = [{**line, "hyperparameters": {"n": number}} for number in range(2000)]
    lines[1234]["region"] = "mars"
    manifest = write(tmp_path, "".join(json.dumps(one) + "\n" for one in lines), "m.jsonl")
    ran = run("check", manifest)
    assert ran.code == 2
    assert "- line 1235: region: mars is not" in ran.err


def test_no_manifest_is_read_from_a_place_that_is_not_there(tmp_path: Path) -> None:
    ran = run("check", tmp_path / "none.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_the_account_of_a_manifest_may_stand_in_its_input(tmp_path: Path) -> None:
    manifest = write(tmp_path, "region,image,instance_type\neu-central-1,images:v1,ml.m5.large\n", "m.csv")
    data = "s3://trainyard-bytes-111122223333-eu-central-1/uploads/a/"
    given = write(tmp_path, {"defaults": {"data": data}}, "input.json")
    ran = run("check", manifest, "--input", given)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, ""),
        ({"nodes": 2, "max_cost_usd": 5, "hyperparameters": {"lr": 0.1}}, ""),
        ({"nodes": "2"}, 'line 1: nodes: "2" is not a whole number'),
        ({"dry_run": True}, "line 1: dry_run: means nothing with the backend ec2"),
    ],
    ids=str,
)
def test_a_line_on_clusters_of_our_own_is_judged_by_its_fields(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    ran = run(
        "check", write(tmp_path, json.dumps({**LEAST, "code": f"{HOME}/a.zip", "backend": "ec2", **more}), "m.jsonl")
    )
    assert (ran.code, says in ran.err, len(ran.err.splitlines())) == ((2, True, 2) if says else (0, True, 0))


def test_a_search_that_resumes_another_one_lacks_nothing_but_is_judged(tmp_path: Path) -> None:
    assert run("check", write(tmp_path, {"resume": "lr", "trials": 9})).code == 0
    ran = run("check", write(tmp_path, {"resume": "lr", "trials": 0}))
    assert (ran.code, len(ran.err.splitlines())) == (2, 2)
    assert "- trials: 0 is too small" in ran.err


# Every example


SETTLED = {
    "REPLACE-WITH-ACCOUNT": "111122223333",
    "s3://REPLACE-WITH-UploadPrefix": HOME,
    "REPLACE-WITH-your-user-name": "ada",
}
"""What a person puts in the place of the placeholders."""
REGIONS = ("eu-central-1", "us-east-1", "us-west-2", "ap-northeast-1")
ACCOUNT_WIDE = {
    "regions": [{"region": one, "cidr": f"10.{place}.0.0/16"} for place, one in enumerate(REGIONS, 70)],
    "workbench": True,
}
"""Settings of a deployment in which all of them can run."""
OTHERS = {"build.json", "settings.json"}
"""What is no request of a job, a grid or a search."""
EVERY = [
    one
    for pattern in ("*.json", "*.jsonl", "manifest.csv")
    for one in sorted(EXAMPLES.rglob(pattern))
    if one.name not in OTHERS
]


@pytest.mark.parametrize("file", EVERY, ids=lambda one: str(one.relative_to(EXAMPLES)))
def test_every_example_is_right_once_its_placeholders_are_replaced(tmp_path: Path, file: Path) -> None:
    settings = write(tmp_path, {"context": {BLOCK: ACCOUNT_WIDE}}, "cdk.json")
    text = file.read_text()
    for placeholder, value in SETTLED.items():
        text = text.replace(placeholder, value)
    options: list[object] = ["--settings", settings]
    if file.suffix == ".json" and "command" in (given := json.loads(text)) and "code" not in given:
        options += ["--code", file.parent]
    if file.suffix != ".json" and (beside := file.with_name("input.json")).exists():
        options += ["--input", beside]
    ran = run("check", write(tmp_path, text, file.name), *options)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize("file", EVERY, ids=lambda one: str(one.relative_to(EXAMPLES)))
def test_an_example_as_it_stands_is_judged_without_a_word_about_an_account_that_is_not_known(file: Path) -> None:
    ran = run("check", file)
    assert ran.code in (0, 2)
    assert (ran.code == 2) == ran.err.startswith(("The request would be refused", "The grid would be refused"))
    assert NO_ACCOUNT not in ran.err


def test_a_document_of_another_version_is_no_request_and_is_refused_in_words(tmp_path: Path) -> None:
    """A person may take a job.json, or a report, of whatever version for the request that it was made of."""
    settings = find_settings(None, ROOT).parse()
    for version in sorted((ROOT / "tests" / "contract" / "documents").glob("*.json")):
        for document in json.loads(version.read_text()).values():
            found = examine(write(tmp_path, document), settings, code=None, given=None, name=None)
            assert found.problems


@pytest.mark.parametrize(
    ("given", "what"),
    [
        *((path, "the input of an image build") for path in sorted(EXAMPLES.rglob("build.json"))),
        *((path, "settings of a deployment") for path in sorted(EXAMPLES.rglob("settings.json"))),
        (ROOT / "cdk.json", "settings of a deployment"),
    ],
    ids=lambda one: str(one.relative_to(ROOT)) if isinstance(one, Path) else one,
)
def test_a_file_that_is_no_request_is_named_with_those_that_are(given: Path, what: str) -> None:
    ran = run("check", given)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"is {what}, which `check` does not read; allowed: the request of a job, the input of a grid" in ran.err


@pytest.mark.parametrize("given", [{}, {"comand": ["true"]}, {"repository": "images", "command": ["true"]}], ids=str)
def test_a_request_with_wrong_fields_alone_is_judged_as_one(tmp_path: Path, given: dict[str, Any]) -> None:
    assert "would be refused" in run("check", write(tmp_path, given)).err


def test_a_byte_order_mark_before_a_request_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(LEAST).encode())
    plain = run("check", write(tmp_path, dict(LEAST), "plain.json"))
    assert run("check", path).err == plain.err


@pytest.mark.parametrize("nodes", ["1" + "0" * 400, "9" * 400])
def test_a_number_that_no_float_can_be_is_refused_as_too_large(tmp_path: Path, nodes: str) -> None:
    text = json.dumps({**LEAST, "nodes": "@", "max_cost_usd": 5}).replace('"@"', nodes)
    ran = run("check", write(tmp_path, text))
    assert ran.code == 2
    assert f"- nodes: {nodes[:80]}... is too large; allowed: a whole number from 1" in ran.err


MISREAD = {"loss": "loss=([0-9.]+)"}
SEARCHED: dict[str, Any] = {
    "template": {"image": "images:v1", "instance_type": "ml.m5.large", "metrics": MISREAD},
    "search": {"lr": {"float": [0, 1]}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "trials": 1,
}
OF_LINES = '{"region": "eu-central-1", "image": "images:v1", "instance_type": "ml.m5.large", "metrics": {"loss": "loss=([0-9.]+)"}}\n'


@pytest.mark.parametrize(
    ("name", "given", "where"),
    [
        ("grid.json", {"defaults": {"metrics": MISREAD}}, "defaults.metrics.loss"),
        ("search.json", SEARCHED, "template.metrics.loss"),
        ("place.json", {**SEARCHED, "places": [{}, {"metrics": MISREAD}]}, "places.1.metrics.loss"),
        ("m.jsonl", OF_LINES, "line 1: metrics.loss"),
    ],
)
def test_an_expression_that_misreads_printed_numbers_is_warned_of_wherever_it_stands(
    tmp_path: Path, name: str, given: object, where: str
) -> None:
    ran = run("check", file := write(tmp_path, given, name))
    assert ran.code == 0
    assert f'  warning: {where}: loss=([0-9.]+) reads "loss=7.1e-05" as 7.1' in ran.out
    (document,) = map(json.loads, run("check", file, "--json").out.splitlines())
    assert [one for one in document["warnings"] if one.startswith(f"{where}: ")]


@pytest.mark.parametrize(
    ("name", "given", "where"),
    [
        ("grid.json", {"defaults": {"metrics": {"loss": "loss="}}}, "defaults.metrics.loss"),
        ("search.json", {**SEARCHED, "template": {"metrics": {"loss": "loss="}}}, "template.metrics.loss"),
        ("place.json", {**SEARCHED, "places": [{"metrics": {"loss": "loss="}}]}, "places.0.metrics.loss"),
        ("m.jsonl", OF_LINES.replace("([0-9.]+)", ""), "line 1: metrics.loss"),
        ("ec2.jsonl", OF_LINES.replace("([0-9.]+)", "").replace("{", '{"backend": "ec2", ', 1), "line 1: metrics.loss"),
    ],
)
def test_an_expression_without_a_group_is_refused_wherever_it_stands(
    tmp_path: Path, name: str, given: object, where: str
) -> None:
    ran = run("check", write(tmp_path, given, name))
    assert ran.code == 2
    assert f"{where}: loss= has no group" in ran.err

"""Lines on clusters of our own: what Plan makes of them, what it refuses, and that one word tells the two kinds apart."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from contract import names
from contract.errors import InvalidRequest
from contract.grid import Backend, GridPrefix, Line, training_name
from grid_plan.cluster_lines import write_arguments
from grid_plan.job_columns import schema
from job_requests.reading import read
from tests.builders import LIMITS
from tests.functions.grid_plan.account import Account, plan
from tools.refusals.grids.yard import ACCOUNT, BUCKET, DEFAULTS, HOME, MANIFEST, REGIONS, execution

LEAST = {"backend": "ec2", "instance_types": ["g5.xlarge"], "image": "images:v1"}
MACHINE = f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{names.machine('yard')}"


def planned(there: Account, *lines: Any, text: str = "", **given: Any) -> list[Line]:
    there.upload(text or "".join(json.dumps(one) + "\n" for one in lines))
    plan({"manifest": MANIFEST, **given})
    return there.lines()


def request_of(line: Line) -> dict[str, Any]:
    """The request that the execution gets."""
    found: dict[str, Any] = json.loads(line.request["input"])
    return found


def refused(there: Account, *lines: Any, **given: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as problem:
        planned(there, *lines, **given)
    return [one.removeprefix("- ") for one in str(problem.value).split("\n")[1:]]


def test_a_line_becomes_an_execution_of_the_train_machine(there: Account) -> None:
    (line,) = planned(there, LEAST | {"nodes": 2, "launcher": "torchrun", "command": ["train.py"]}, owner="ada")
    run = execution()
    assert line.backend is Backend.EC2
    assert (line.region, line.request["stateMachineArn"]) == (HOME, MACHINE)
    assert line.training == training_name("yard", run["arn"], run["started_at"], 0)
    assert names.JOB_PATTERN.fullmatch(line.training)
    assert request_of(line) == {
        "instance_types": ["g5.xlarge"],
        "image": "images:v1",
        "nodes": 2,
        "launcher": "torchrun",
        "command": ["train.py"],
        "owner": "ada",
        "grid_line": {"execution": run["arn"], "index": 0},
    }


def test_what_is_not_known_before_admit_is_said_in_the_plan(there: Account) -> None:
    (line,) = planned(there, LEAST)
    assert "not known before it starts" in line.why
    assert line.hourly_usd is None
    assert there.grid().cost_at_most_usd is None


def test_admit_takes_every_request_that_plan_makes(there: Account) -> None:
    lines = planned(
        there,
        LEAST | {"hyperparameters": {"lr": 0.1}, "region": "auto"},
        LEAST | {"accelerators": "H100:8", "instance_types": None},
    )
    assert [read(request_of(one), LIMITS)[1] for one in lines] == [[], []]


def test_lines_that_differ_in_one_word_ask_for_the_same(there: Account) -> None:
    same = {
        "region": "auto",
        "instance_count": 2,
        "program": "train.py",
        "environment": {"SEED": "7"},
        "hyperparameters": {"lr": 0.1, "e": 3},
        "volume_gb": 50,
        "max_hours": 2,
        "distribution": "mpi",
        "processes_per_host": 2,
        "metrics": {"metric": "metric=(.*)"},
    }
    defaults = DEFAULTS | {"environment": {"SHARED": "1"}}
    sagemaker, cluster = planned(there, same, same | {"backend": "ec2"}, defaults=defaults)
    assert (sagemaker.backend, cluster.backend) == (Backend.SAGEMAKER, Backend.EC2)
    assert request_of(cluster) == {
        "regions": "auto",
        "nodes": 2,
        "command": ["python", "train.py"],
        "arguments": ["-e", "3", "--lr", "0.1"],
        "environment": {"SHARED": "1", "SEED": "7"},
        "volume_gb": 50,
        "max_hours": 2,
        "launcher": "mpi",
        "processes_per_node": 2,
        "image": "images:v1",
        "instance_types": ["g5.xlarge"],
        "grid_line": {"execution": execution()["arn"], "index": 1},
    }


def test_a_line_of_csv_has_the_columns_of_a_request(there: Account) -> None:
    text = (
        "backend,instance_types,image,nodes,max_cost_usd,mounts,hp.lr,efa,processes_per_node,launcher,command,notify\n"
        'ec2,g5.xlarge g5.2xlarge,images:v1,2,40,"[{""from"": ""fsx:corpus"", ""at"": ""/data""}]",0.1,auto,auto,mpi,'
        '"[""python"", ""t.py""]",done failed\n'
    )
    (line,) = planned(there, text=text)
    request = request_of(line)
    assert request["instance_types"] == ["g5.xlarge", "g5.2xlarge"]
    assert request["mounts"] == [{"from": "fsx:corpus", "at": "/data"}]
    assert (request["nodes"], request["max_cost_usd"], request["efa"]) == (2, 40, "auto")
    assert request["arguments"] == ["--lr", "0.1"]
    assert request["notify"] == ["done", "failed"]
    assert there.grid().cost_at_most_usd == 40


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ["python", "t.py"], "code": f"s3://{BUCKET}/uploads/c.zip"}, ["python", "t.py", "--lr", "0.1"]),
        ({"command": "python t.py", "code": f"s3://{BUCKET}/uploads/c.zip"}, "python t.py --lr 0.1"),
    ],
)
def test_without_an_image_hyperparameters_are_words_of_the_command(there: Account, fields: Any, words: Any) -> None:
    (line,) = planned(
        there, {"backend": "ec2", "instance_types": ["g5.xlarge"], "hyperparameters": {"lr": 0.1}, **fields}
    )
    assert request_of(line)["command"] == words
    assert "arguments" not in request_of(line)


def test_a_program_runs_as_the_toolkit_runs_it(there: Account) -> None:
    lines = planned(there, LEAST | {"program": "src/train.py"}, LEAST | {"program": "run.sh"})
    assert [request_of(one)["command"] for one in lines] == [["python", "src/train.py"], ["./run.sh"]]


def test_a_sweep_makes_a_job_for_every_combination(there: Account) -> None:
    lines = planned(there, LEAST | {"sweep": {"depth": [1, 2]}}, sweep={"lr": [0.1, 0.2]})
    assert [request_of(one)["arguments"] for one in lines] == [
        ["--depth", depth, "--lr", rate] for rate in ("0.1", "0.2") for depth in ("1", "2")
    ]
    assert [request_of(one)["grid_line"]["index"] for one in lines] == [0, 1, 2, 3]


def test_failed_lines_can_be_started_again_as_they_are_written(there: Account) -> None:
    line = LEAST | {"command": ["python", "t.py"], "sweep": {"lr": [0.1, 0.2]}, "environment": {"A": "1"}}
    first = planned(there, line, defaults={"max_hours": 3})
    there.s3.write(BUCKET, GridPrefix("sweep-7").root + "kept", b"")
    there.upload("".join(json.dumps(one.source) + "\n" for one in first))
    plan({"manifest": MANIFEST}, execution("again"))
    again = there.lines("again")

    def bare(one: Line) -> dict[str, Any]:
        return {name: value for name, value in request_of(one).items() if name != "grid_line"}

    assert [bare(one) for one in again] == [bare(one) for one in first]


def test_defaults_of_the_other_backend_do_not_apply(there: Account) -> None:
    defaults = DEFAULTS | {"nodes": 2, "accelerators": "A10G:1", "mounts": [{"from": "efs:home", "at": "/home/x"}]}
    sagemaker, cluster = planned(
        there,
        {"region": "eu-central-1", "data": "s3://data-eu/train/"},
        {"backend": "ec2", "instance_types": ["g5.xlarge"], "nodes": 1},
        defaults=defaults,
    )
    assert sagemaker.request["ResourceConfig"]["InstanceCount"] == 1
    assert "accelerators" not in request_of(cluster)
    assert (request_of(cluster)["nodes"], len(request_of(cluster)["mounts"])) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value", "may_be"),
    [
        ("channels", {"a": "s3://data-eu/x/"}, "mounts"),
        ("checkpoint", "s3://x/y", "resume_from"),
        ("mpi_options", "-x A", "variables of mpirun in environment"),
        ("kms_key", "alias/x", "nothing"),
        ("volume_kms_key", "alias/x", "nothing"),
        ("network_isolation", True, "false"),
        ("encrypt_traffic", True, "false"),
        ("subnets", ["subnet-0123456789"], "nothing"),
        ("security_groups", ["sg-0123456789"], "nothing"),
        ("owner", "ada", "owner in the input"),
        ("dry_run", True, "nothing"),
        ("grid_line", {"execution": "x", "index": 0}, "nothing"),
        ("workbench", {"idle_minutes": 60}, "nothing; a person starts each workbench"),
    ],
)
def test_what_a_job_cannot_have_is_refused_by_name(there: Account, field: str, value: Any, may_be: str) -> None:
    (reason,) = refused(there, LEAST | {field: value})
    assert reason.startswith(f"line 1: {field}: means nothing with the backend ec2; allowed: {may_be}")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"nodes": 0}, "nodes: 0 is too small"),
        ({"nodes": 10**6}, "nodes: 1000000 is too large"),
        ({"launcher": "mpi"}, "launcher: mpi starts a command"),
        ({"nodes": 2, "command": ["deepspeed", "t.py"]}, "command: deepspeed would not join the 2 nodes"),
        (
            {"launcher": "torchrun", "command": ["deepspeed", "t.py"]},
            "launcher: torchrun starts the command on its own",
        ),
        ({"processes_per_node": 2}, "processes_per_node: the request has no launcher"),
        ({"instance_types": None}, "instance_types: is missing"),
        ({"instance_type": "ml.g5.xlarge"}, "instance_type: is another name of instance_types"),
        ({"max_cost_usd": "40"}, 'max_cost_usd: "40" is not a number'),
        ({"wibble": 1}, "wibble: there is no such field"),
        ({"region": "Frankfurt"}, 'region: "Frankfurt" does not have the right form'),
        ({"hyperparameters": [1]}, "hyperparameters: a list is not an object"),
        ({"backend": "batch"}, "backend: batch is not one of them"),
    ],
)
def test_a_wrong_line_is_refused_in_the_words_of_a_request(there: Account, fields: Any, says: str) -> None:
    reasons = refused(there, LEAST | fields)
    assert any(one.startswith(f"line 1: {says}") for one in reasons), reasons
    assert there.changes == []


def test_every_wrong_line_is_named_before_anything_starts(there: Account) -> None:
    reasons = refused(there, LEAST | {"nodes": 0}, LEAST, {"region": "mars-1"}, LEAST | {"nodes": 0}, defaults=DEFAULTS)
    assert [one.partition(":")[0] for one in reasons] == ["lines 1 and 4", "line 3"]


def test_a_field_of_jobs_on_a_line_of_sagemaker_names_the_backend(there: Account) -> None:
    (reason,) = refused(there, {"region": "eu-central-1", "nodes": 2}, defaults=DEFAULTS)
    assert (
        reason == "line 1: nodes: is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out"
    )


def test_a_cap_of_the_grid_needs_one_for_each_job(there: Account) -> None:
    (reason,) = refused(there, LEAST, LEAST | {"max_cost_usd": 5}, max_cost_usd=10)
    assert reason.startswith("line 1: max_cost_usd: the line has none")


def test_the_cap_of_a_grid_counts_both_backends(there: Account) -> None:
    one = {"region": "us-east-1", "data": "s3://data-us/train/", "max_hours": 1}
    cluster = LEAST | {"max_cost_usd": 5}
    (reason,) = refused(there, one, cluster, defaults=DEFAULTS, max_cost_usd=6)
    assert reason.startswith("max_cost_usd: 6.00 is less than 6.40")
    planned(there, one, cluster, defaults=DEFAULTS, max_cost_usd=7)
    assert there.grid().cost_at_most_usd == 6.4


@pytest.mark.parametrize("defaults", [{"hyperparameters": [1]}, {"sweep": {"lr": [1]}}, {"hyperparameters": {"": 1}}])
def test_wrong_hyperparameters_of_the_defaults_are_refused_whatever_the_backend(there: Account, defaults: Any) -> None:
    for backend in Backend:
        reasons = refused(there, LEAST, defaults={"backend": backend.value, **defaults})
        assert [one for one in reasons if one.startswith("defaults.")], reasons


def test_equal_jobs_are_refused_as_equal_trainings_are(there: Account) -> None:
    (reason,) = refused(there, LEAST, dict(reversed(LEAST.items())))
    assert reason.startswith("line 2: is the same as line 1")


def test_data_and_metrics_are_warned_of(there: Account) -> None:
    planned(there, LEAST | {"data": "s3://data-eu/train/", "metrics": {"loss": "(x)"}})
    assert [one.split(":")[1].strip() for one in there.grid().warnings] == ["data", "metrics"]


def test_a_plan_that_is_made_twice_is_the_same(there: Account) -> None:
    first = planned(there, LEAST, LEAST | {"nodes": 2})
    plan({"manifest": MANIFEST})
    assert there.lines() == first


def test_a_request_that_no_execution_takes_is_refused(there: Account) -> None:
    big = {"backend": "ec2", "environment": {f"A{number}": "x" * 90_000 for number in range(3)}}
    (reason,) = refused(there, LEAST, defaults=big)
    assert reason.startswith("line 1: request: has 27")


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (0.1, "0.1"),
        (1, "1"),
        (True, "True"),
        ("true", "true"),
        ("a b", "a b"),
        ([1, 2], "[1, 2]"),
        ({"a": 1}, '{"a": 1}'),
        ("", ""),
    ],
)
def test_hyperparameters_become_the_words_of_awss_toolkit(value: Any, word: str) -> None:
    assert write_arguments({"lr": value}) == ["--lr", word]


def test_the_schema_of_a_line_takes_both_backends() -> None:
    shape = jsonschema.Draft202012Validator(schema())
    assert shape.is_valid(LEAST | {"nodes": 2, "mounts": [], "hyperparameters": {"lr": 1}})
    assert shape.is_valid({"region": "auto", "instance_type": "ml.g5.xlarge"})
    assert not shape.is_valid(LEAST | {"wibble": 1})


def test_lines_of_both_backends_share_the_pace_of_the_home_region(there: Account) -> None:
    home = {"region": HOME, "data": "s3://data-eu/train/"}
    lines = planned(there, home, LEAST, home | {"max_hours": 2}, LEAST | {"nodes": 2}, defaults=DEFAULTS)
    assert [one.slot for one in lines] == [0, 1, 2, 3]
    assert there.grid().regions == {HOME: 4}
    assert set(REGIONS) > {HOME}


WRONG = [{"entrypoint": "python train.py"}, {"market": "spot-then-on-demand"}, {"max_hours": "x"}, {"region": "Mars"}]


@pytest.mark.parametrize("wrong", WRONG)
def test_defaults_that_are_wrong_for_sagemaker_are_refused_with_its_lines(there: Account, wrong: Any) -> None:
    defaults = {**DEFAULTS, "backend": "ec2", **wrong}
    reasons = refused(there, {"backend": "sagemaker", "region": HOME}, defaults=defaults, max_cost_usd=0.01)
    assert any(one.startswith(f"line 1: defaults.{next(iter(wrong))}:") for one in reasons), reasons


@pytest.mark.parametrize("word", ["ec2 ", " ec2", "\u200bec2"])
def test_marks_around_the_backend_change_nothing(there: Account, word: str) -> None:
    one, other = planned(there, LEAST | {"backend": word}, {"nodes": 2}, defaults=LEAST | {"backend": word})
    assert one.backend is other.backend is Backend.EC2


def test_defaults_of_jobs_without_a_job_are_refused(there: Account) -> None:
    reasons = refused(there, {"region": HOME}, defaults=DEFAULTS | {"max_cost_usd": 5, "nodes": 4})
    assert sorted(reasons) == [
        f"defaults.{name}: is a field of jobs, and no line has the backend ec2; allowed: with such a line, or left out"
        for name in ("max_cost_usd", "nodes")
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"max_cost_usd": 10**400}, "max_cost_usd"),
        ({"program": "a.py", "entrypoint": ["b"]}, "entrypoint"),
        ({"program": ""}, "program"),
        ({"metrics": "x"}, "metrics"),
        ({"command": "", "hyperparameters": {"a": 1}}, "command"),
    ],
)
def test_what_only_looks_right_is_refused_and_is_no_traceback(there: Account, fields: Any, field: str) -> None:
    reasons = refused(there, LEAST | fields)
    assert any(f": {field}" in one for one in reasons), reasons


def test_a_hyperparameter_that_is_nested_without_end_is_a_text(there: Account) -> None:
    deep = "[" * 1200 + "]" * 1200
    (line,) = planned(there, LEAST | {"hyperparameters": {"a": deep}})
    assert request_of(line)["arguments"] == ["-a", deep]


def test_a_line_that_takes_no_hyperparameter_of_the_defaults_takes_none_again(there: Account) -> None:
    (line,) = planned(there, LEAST | {"hyperparameters": {}}, defaults={"hyperparameters": {"lr": 1}})
    assert line.source["hyperparameters"] == {}
    assert "arguments" not in request_of(line)


def test_addresses_in_one_cell_are_several(there: Account) -> None:
    (line,) = planned(there, LEAST | {"data": "s3://data-eu/train/ s3://data-us/train/"})
    assert request_of(line)["data"] == ["s3://data-eu/train/", "s3://data-us/train/"]


def test_hyperparameters_behind_the_text_of_a_shell_are_warned_of(there: Account) -> None:
    planned(there, LEAST | {"command": ["bash", "-c", "python t.py"], "hyperparameters": {"lr": 1}})
    (warning,) = there.grid().warnings
    assert "a shell runs its last word" in warning

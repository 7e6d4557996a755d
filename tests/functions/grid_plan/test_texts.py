"""What a person wrote as text is what the program gets, on every backend: as an argument, as a variable, and as a tag."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.environments import LineCluster
from contract.errors import InvalidRequest
from contract.grid import Backend, Line
from localaws.services.sagemaker_container import plain
from tests.functions.grid_plan.account import Account, judging, plan
from tools.refusals.grids.yard import HOME, MANIFEST, execution

ODD = [
    "6e51234", "3.10", "1e5", "1e-4", "1E5", "0x10", "0o17", "010", "+1", "1_000", "1.0", "1", "-0", "-0.0", "00",
    ".5", "1.", "True", "true", "TRUE", "False", "false", "yes", "no", "on", "off", "Y", "n", "null", "Null", "None",
    "~", "NaN", "nan", "Infinity", "-Infinity", "inf", "9007199254740993", "123456789012345678901234567890",
    "0.1000000000000000055", "1e400", "-1e-400", " spaces kept ", " 1", "1 ", "\t1", "1\n", "", '"quoted"', '""',
    "'a'", "[1,2]", "[1, 2]", '["a"]', "[]", '{"a":1}', '{"b": 1, "a": 2}', "{}", "[null]", "[" * 1200,
    "[" * 1100 + "]" * 1100, "\u0661\u0662", "\uff11", "\u00b2", "\u2028", "\u200b", "\u202e", "e\u0301",
    "\U0001f600", "$HOME", "$(HOME)", "$$", "$$(A)", "`id`", "%PATH%", "{{ x }}", "{% x %}", "{lr}", "--lr", "-",
    "--", "a=b", "#1", "//", "\\", "\\n", '\\"', "\\ud800", '"\\ud800"', "2026-10-11", "12:30:45", "1:30", "0b1",
    "0.1e", "1,5", "1.2.3", "=1", "@x", "-x", "\x01", "\x7f",
]  # fmt: skip
"""Texts that some reader takes for something else."""
WRITABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
TEXTS = st.one_of(
    WRITABLE, NUMBERS.map(repr), st.from_regex(r"-?0?[0-9]{1,30}(\.[0-9]{0,9})?([eE][+-]?[0-9]{1,6})?", fullmatch=True)
)
PROGRAM = {"program": "train.py", "region": HOME, "image": "images:v1", "instance_type": "ml.g5.xlarge"}


@pytest.fixture(scope="module")
def there() -> Iterator[Account]:
    """An account with a cluster of Kubernetes."""
    cluster = LineCluster(name="lab", most_nodes=4)
    with pytest.MonkeyPatch.context() as patch, judging(patch, kubernetes=cluster) as made:
        yield made


def planned(there: Account, manifest: str, **given: Any) -> tuple[list[Line], list[str]]:
    """The plan's lines and its warnings, under a name that no plan had."""
    name = f"texts-{len(there.calls)}"
    there.upload(manifest)
    warnings = plan({"manifest": MANIFEST, **given}, execution(name))["warnings"]
    return there.lines(name), warnings


def write_jsonl(*lines: Any) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)


def read_arguments(line: Line) -> list[str]:
    """The words behind the program, as the kernel gives them to it."""
    match line.backend:
        case Backend.EC2:
            return list(json.loads(line.request["input"])["arguments"])
        case Backend.KUBERNETES:
            (training,) = line.request["job"]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
            words = [one.replace("$$", "$") for one in training["command"]]  # as the kubelet does
            return list(words[words.index("train.py") + 1 :])
    own = {
        name: plain(text) for name, text in line.request["HyperParameters"].items() if not name.startswith("sagemaker_")
    }
    return [word for name, value in sorted(own.items()) for word in (f"--{name}", str(value))]


def train_everywhere(there: Account, texts: list[str]) -> list[list[str]]:
    """What the program of a line with these hyperparameters gets on each backend."""
    hyperparameters = {f"h{place:03}": text for place, text in enumerate(texts)}
    manifest = write_jsonl(*(PROGRAM | {"backend": one.value, "hyperparameters": hyperparameters} for one in Backend))
    lines, _ = planned(there, manifest)
    assert {one.backend for one in lines} == set(Backend)
    return [read_arguments(one) for one in lines]


def wanted(texts: list[str]) -> list[str]:
    return [word for place, text in enumerate(texts) for word in (f"--h{place:03}", text)]


def test_a_program_gets_every_odd_text_as_it_was_written_on_every_backend(there: Account) -> None:
    for start in range(0, len(ODD), 90):
        texts = ODD[start : start + 90]
        assert train_everywhere(there, texts) == [wanted(texts)] * 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXTS, min_size=1, max_size=60))
def test_a_program_gets_any_text_as_it_was_written_on_every_backend(there: Account, texts: list[str]) -> None:
    assert train_everywhere(there, texts) == [wanted(texts)] * 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(NUMBERS, st.booleans()), min_size=1, max_size=60))
def test_a_program_gets_one_and_the_same_text_of_a_number_on_every_backend(there: Account, numbers: list[Any]) -> None:
    hyperparameters = {f"h{place:03}": one for place, one in enumerate(numbers)}
    manifest = write_jsonl(*(PROGRAM | {"backend": one.value, "hyperparameters": hyperparameters} for one in Backend))
    lines, warnings = planned(there, manifest)
    assert [read_arguments(one) for one in lines] == [wanted(list(map(str, numbers)))] * 3
    assert warnings == []


@pytest.mark.parametrize("backend", list(Backend))
def test_a_cell_of_a_table_is_what_the_program_gets(there: Account, backend: Backend) -> None:
    cells = [one for one in ODD if one and len(one) < 100 and "\x01" not in one]
    body = io.StringIO()
    table = csv.writer(body, quoting=csv.QUOTE_ALL)
    table.writerow(["backend", *PROGRAM, *(f"hp.h{place:03}" for place in range(len(cells)))])
    table.writerow([backend.value, *PROGRAM.values(), *cells])
    ((line,), _) = planned(there, body.getvalue())
    assert read_arguments(line) == wanted(cells)


def test_variables_and_tags_are_what_was_written_on_every_backend(there: Account) -> None:
    variables = {f"V{place}": text for place, text in enumerate(one for one in ODD if len(one) < 100)}
    tags = {"version": "3.10", "commit": "6e51234", "flag": "true"}
    line = PROGRAM | {"environment": variables, "tags": tags}
    lines, _ = planned(there, write_jsonl(*(line | {"backend": one.value} for one in Backend)))
    by_backend = {one.backend: one.request for one in lines}
    assert by_backend[Backend.SAGEMAKER]["Environment"].items() >= variables.items()
    job = json.loads(by_backend[Backend.EC2]["input"])
    assert (job["environment"], job["tags"]) == (variables, tags)
    (training,) = by_backend[Backend.KUBERNETES]["job"]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"][
        "containers"
    ]
    given = {one["name"]: one["value"].replace("$$", "$") for one in training["env"] if "value" in one}
    assert given.items() >= variables.items()
    sent = {one["Key"]: one["Value"] for one in by_backend[Backend.SAGEMAKER]["Tags"]}
    assert sent.items() >= tags.items()


@pytest.mark.parametrize("text", [one for one in ODD if len(one) < 100])
def test_a_command_and_its_arguments_are_what_was_written(there: Account, text: str) -> None:
    if not text.strip():
        pytest.skip("no program is called so")
    line = {**PROGRAM, "program": None, "entrypoint": ["python", text], "arguments": ["--x", text]}
    lines, _ = planned(there, write_jsonl(*(line | {"backend": one.value} for one in (Backend.SAGEMAKER, Backend.EC2))))
    algorithm, job = lines[0].request["AlgorithmSpecification"], json.loads(lines[1].request["input"])
    assert algorithm["ContainerEntrypoint"] == job["command"] == ["python", text]
    assert algorithm["ContainerArguments"] == job["arguments"] == ["--x", text]


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("3.10", "3.1"),
        ("6e51234", "inf"),
        ("true", "True"),
        ("null", '""'),
        ('"quoted"', "quoted"),
        ('["a"]', "['a']"),
        ('{"b": 1, "a": 2}', "a=2,b=1"),
        (" 1", "1"),
        ("-0", "0"),
    ],
)
def test_a_text_that_the_toolkit_of_an_image_would_read_is_sent_as_it_is_and_the_plan_says_what_arrives(
    there: Account, text: str, arrives: str
) -> None:
    line = {**PROGRAM, "program": None, "hyperparameters": {"x": text}}
    ((found,), warnings) = planned(there, write_jsonl(line))
    assert found.request["HyperParameters"] == {"x": text}
    (told,) = [one for one in warnings if "arrives as" in one]
    assert f": {text} arrives as {arrives} if the image has AWS's toolkit" in told


@pytest.mark.parametrize("text", ["sgd", "0.1", "1e-05", "7", "True", "None", "0x10", "[1, 2]", "a b", "none"])
def test_a_text_that_arrives_unchanged_is_no_warning(there: Account, text: str) -> None:
    for program in ("train.py", None):
        _, warnings = planned(there, write_jsonl({**PROGRAM, "program": program, "hyperparameters": {"x": text}}))
        assert [one for one in warnings if "arrives" in one] == []


@pytest.mark.parametrize(("value", "arrives", "elsewhere"), [(None, '""', "null"), (["a"], "['a']", '["a"]')])
def test_what_the_toolkit_writes_otherwise_than_the_other_backends_is_said(
    there: Account, value: Any, arrives: str, elsewhere: str
) -> None:
    ((_, other), warnings) = planned(
        there,
        write_jsonl(*(PROGRAM | {"backend": one, "hyperparameters": {"x": value}} for one in ("sagemaker", "ec2"))),
    )
    assert read_arguments(other) == ["-x", elsewhere]
    (warning,) = [one for one in warnings if "arrives" in one]
    assert f"hyperparameters.x: {elsewhere} arrives as {arrives}" in warning


def test_what_the_toolkit_reads_itself_is_sent_as_it_was_written(there: Account) -> None:
    given = {"sagemaker_container_log_level": "10.0", "sagemaker_x": "true"}
    ((found,), warnings) = planned(there, write_jsonl(PROGRAM | {"hyperparameters": given}))
    assert found.request["HyperParameters"].items() >= given.items()
    assert warnings == []


def test_texts_of_failed_lines_are_started_again_as_they_were_written(there: Account) -> None:
    texts = [one for one in ODD if len(one) < 100][:90]
    first = PROGRAM | {"hyperparameters": {f"h{place:03}": text for place, text in enumerate(texts)}}
    (lines, _) = planned(there, write_jsonl(*(first | {"backend": one.value} for one in Backend)))
    (again, _) = planned(there, write_jsonl(*(one.source for one in lines)))
    assert [read_arguments(one) for one in again] == [read_arguments(one) for one in lines] == [wanted(texts)] * 3


@pytest.mark.parametrize("backend", ["sagemaker", "kubernetes"])
@pytest.mark.parametrize("fields", [{"hyperparameters": {"sep": ":"}}, {"sweep": {"sep": [",", ":"]}}])
def test_a_word_at_which_mpirun_begins_another_program_is_refused(there: Account, backend: str, fields: Any) -> None:
    with pytest.raises(InvalidRequest, match="distribution: mpi would read the word : of the program's arguments"):
        planned(there, write_jsonl(PROGRAM | {"backend": backend, "distribution": "mpi", **fields}))

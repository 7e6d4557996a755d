"""What `manifest` prints is read by kubectl as it was meant: every text as that text, whatever YAML makes of it without quotes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.settings import BLOCK, Settings
from tests.command_line.account import run
from tests.command_line.kubectl import LACKS, read_with, unpack_kubectl
from trainyard.manifests import list_cluster_objects, list_line, write_yaml

LINE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "examples" / "mpi_digits" / "line.jsonl").read_text())
SETTINGS = Settings.parse({"kubernetes": {"cluster": "lab", "max_nodes": 4}})
WORDS = (
    "y",
    "n",
    "yes",
    "no",
    "on",
    "off",
    "true",
    "false",
    "null",
    "nan",
    ".nan",
    "inf",
    ".inf",
    "-.inf",
    "+.inf",
    "none",
)
NUMBERS = (
    "1e-05", "1E5", "12e3", "1.e+3", "6e51234", "0o17", "017", "08", "0x1F", "0b101", "1_000", "1_0.5", "190:20:30", "1:30.5",
    "-1", "+1", "-0", "0.", ".5", "-.5e3", "3.10", "1.0", "00", "1e", "e1", "0x", "0o8", "9" * 40, "1,000", "1__0",
    "2001-01-01", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43", "12:00",
)  # fmt: skip
SYNTAX = (
    "", " ", "~", "<<", "=", "-", "- a", "?", "? a", ":", "a: b", "a:", ": a", "a #b", "#", "&a", "*a", "!", "!!int 3", "!a b", "|", "|-",
    ">", ">2", "'", "''", '"', '""', "'a", '"a', "%", "%YAML 1.1", "@a", "`a`", "{", "}", "{{ a }}", "{% a %}", "[", "]", "[a]", "{a: b}",
    ",", "---", "--- a", "...", "a\n---\nb", "a\n...\n", "\\", "\\n", "a\\", "\\x41", "\\u0041", "$(A)", "${A}", "$A",
)  # fmt: skip
LETTERS = (
    "\u00a0", "\u00ad", "\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029", "\u202e", "\u2066", "\u3000", "\ufeff", "\ufffd",
    "\ufffe", "\uffff", "\ud7ff", "\ue000", "e\u0301", "\u05d0\u05d1", "\U0001f600", "\U0001f469\u200d\U0001f4bb",
    "\U000fffff", "\U0010ffff",
)  # fmt: skip
CONTROLS = tuple(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
LONG = ("x" * 10_000, "a b " * 5_000, "a\n" * 2_000, " " * 500, "\u00e4" * 3_000, f"{'a' * 119} b", f"{'a' * 120} b c")


def list_odd_texts() -> list[str]:
    """Returns texts of which each means something else somewhere in YAML, and some thousand put together of their parts."""
    cases = [turn(one) for one in WORDS for turn in (str, str.upper, str.capitalize)]
    parts = [*cases, *NUMBERS, *SYNTAX, *LETTERS, *CONTROLS]
    around = [
        one for part in parts for one in (f" {part}", f"{part} ", f"\t{part}", f"{part}\n", f"a{part}b", f"\n{part}")
    ]
    dice = random.Random(54)
    mixed = ["".join(dice.choices(parts, k=dice.randint(2, 9))) for _ in range(2_000)]
    return list(dict.fromkeys([*parts, *LONG, *around, *mixed]))


TEXTS = list_odd_texts()
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}}


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_kubectl(tmp_path_factory.mktemp("kubectl"))


@pytest.mark.skipif(bool(LACKS), reason=LACKS)
def test_kubectl_reads_thousands_of_odd_texts_as_values_and_as_names_as_they_are(kubectl: Path) -> None:
    assert len(TEXTS) > 3_000
    odd: dict[str, Any] = {**OBJECT, "values": TEXTS, "data": dict(zip(TEXTS, reversed(TEXTS), strict=True))}
    (found,) = read_with(kubectl, write_yaml([odd]))
    changed = [(given, read) for given, read in zip(TEXTS, found["values"], strict=True) if given != read]
    assert not changed, f"{len(changed)} of {len(TEXTS)} values: {changed[:9]}"
    changed = [(given, found["data"].get(given)) for given in TEXTS if odd["data"][given] != found["data"].get(given)]
    assert not changed, f"{len(changed)} of {len(TEXTS)} names: {changed[:9]}"


@pytest.mark.skipif(bool(LACKS), reason=LACKS)
def test_kubectl_reads_numbers_truths_and_nothing_as_what_they_are(kubectl: Path) -> None:
    plain = {**OBJECT, "plain": [0, -1, 2**53, 0.5, 1e-05, 1e21, True, False, None, [], {}, [[]], {"a": {}}]}
    assert read_with(kubectl, write_yaml([plain])) == [plain]


@pytest.mark.skipif(bool(LACKS), reason=LACKS)
@pytest.mark.parametrize(
    "some", [TEXTS[:100], ["x", *NUMBERS], [one for one in SYNTAX if one], [*LETTERS, *CONTROLS[1:]]]
)
def test_a_line_with_odd_arguments_is_the_object_that_a_child_would_send(kubectl: Path, some: list[str]) -> None:
    line = {name: value for name, value in LINE.items() if name not in ("program", "hyperparameters")}
    some = [one for one in some if one != ":"]  # mpirun would begin another program there, so a line is refused
    objects = list_line({**line, "entrypoint": ["train"], "arguments": some}, SETTINGS, None, 1)
    assert (read_with(kubectl, write_yaml(objects)) == objects) is True  # a diff of such objects takes minutes


@pytest.mark.skipif(bool(LACKS), reason=LACKS)
def test_kubectl_reads_what_a_cluster_needs_as_it_was_built(kubectl: Path) -> None:
    objects = list_cluster_objects(
        Settings.parse({"deployment": "yes", "kubernetes": {"cluster": "lab", "max_nodes": 4}})
    )
    assert read_with(kubectl, write_yaml(objects)) == json.loads(json.dumps(objects))


def test_every_text_is_printed_in_quotes_names_too_and_nothing_else_is() -> None:
    printed = write_yaml([{**OBJECT, "y": ["n", 1e-05, 3, True, None, "a b", "a\nb"]}])
    scalars = [one for one in yaml.parse(printed) if isinstance(one, yaml.ScalarEvent)]
    bare = [one.value for one in scalars if one.style != '"']
    assert bare == ["1.0e-05", "3", "true", "null"]
    assert len(scalars) - len(bare) == 2 * 2 + 3 + 1 + 3


@pytest.mark.skipif(bool(LACKS), reason=LACKS)
def test_the_command_prints_every_object_whole_however_long_its_texts_are(kubectl: Path, tmp_path: Path) -> None:
    line = {**LINE, "hyperparameters": {f"a{number}": "\U0001f600 x" * 400 for number in range(50)}}
    (tmp_path / "line.json").write_text(json.dumps(line))
    settings = {"context": {BLOCK: {"kubernetes": {"cluster": "lab", "max_nodes": 4}}}}
    (tmp_path / "cdk.json").write_text(json.dumps(settings))
    ran = run("manifest", tmp_path / "line.json", "--settings", tmp_path / "cdk.json")
    assert (ran.code, ran.out.isascii()) == (0, True)
    assert (read_with(kubectl, ran.out) == list_line(line, SETTINGS, None, 0)) is True


def test_a_long_text_stands_on_one_line_as_a_person_would_copy_it() -> None:
    command = "python train.py --lr 1e-05 " * 40
    assert json.dumps(command) in write_yaml([{"command": command}])

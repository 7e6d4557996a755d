"""What the agent takes from PROGRESS_FILE, and what it says of a file, or of a value, that it does not understand."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from agent.progress import LIMIT, TORN_S, Named, ProgressFile
from contract.reports import Progress


@pytest.mark.parametrize(
    "text", ["", "{", '{"step": 5', "[]", "5", '{"step": "5"}', '{"step": true}', "{}", "\x00", "[" * 5000]
)
def test_torn_progress_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress").write_text(text)
    file = ProgressFile(tmp_path / "progress")
    assert file.read() is None
    assert file.checkpoint_step() == -1


def test_a_torn_file_does_not_take_back_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    path.write_text('{"step": 5, "checkpoint": 4, "unknown": []}')
    assert file.checkpoint_step() == 4
    named = file.named
    assert named is not None
    assert (named.step, named.count, named.at) == (4, 1, path.stat().st_mtime)
    path.write_text('{"step": 6, "chec')
    assert (file.checkpoint_step(), file.named) == (4, named)


def test_a_checkpoint_keeps_the_time_at_which_it_was_first_named(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    for step, named in ((5, 4), (6, 4), (9, 8), (10, 8)):
        path.write_text(json.dumps({"step": step, "checkpoint": named}))
        os.utime(path, (1000.0 + step, 1000.0 + step))
        file.read()
    assert file.named == Named(step=8, at=1009.0, count=2, period_s=4.0)


@pytest.mark.parametrize("checkpoint", ["true", "4.5", '"4"', "null", "[4]"])
def test_what_is_no_whole_number_names_no_checkpoint(tmp_path: Path, checkpoint: str) -> None:
    path = tmp_path / "progress"
    path.write_text(f'{{"step": 5, "checkpoint": {checkpoint}}}')
    assert ProgressFile(path).named is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_metric_that_is_no_number_is_left_out(tmp_path: Path, number: str) -> None:
    (tmp_path / "progress").write_text(f'{{"step": 5, "metric": {number}, "import_s": {number}}}')
    progress = ProgressFile(tmp_path / "progress").read()
    assert progress is not None
    assert (progress.step, progress.metric, progress.import_s) == (5, None, 0.0)


@pytest.mark.parametrize(
    ("written", "diverged"),
    [
        ("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf"), ("1e999", "inf"), ('"nan"', "nan"), ('"-inf"', "-inf"),
        ('"Infinity"', "inf"), ('"NaN"', "nan"), ("0.5", ""), ("null", ""), ('"0.5"', ""), ('"nano"', ""), ('""', ""), ("true", ""),
        ("[NaN]", ""), ('{"mean": NaN}', ""), ("9" * 400, ""),
    ],
)  # fmt: skip
def test_a_training_that_diverged_is_told_from_one_that_reports_no_metric(
    tmp_path: Path, written: str, diverged: str
) -> None:
    (tmp_path / "progress").write_text(f'{{"step": 5, "metric": {written}}}')
    progress = ProgressFile(tmp_path / "progress").read()
    assert progress is not None
    assert progress.diverged == diverged


def test_a_training_that_found_back_has_its_metric(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "progress")
    (tmp_path / "progress").write_text('{"step": 5, "metric": NaN}')
    file.read()
    (tmp_path / "progress").write_text('{"step": 6, "metric": 0.5}')
    assert file.read() == Progress(step=6, metric=0.5)


class Page:
    """A progress file, what is noted of it, and a clock."""

    def __init__(self, path: Path) -> None:
        self.path, self.notes, self.now = path, list[str](), 0.0
        self.file = ProgressFile(path, note=self.notes.append, monotonic=lambda: self.now)

    def read(self, text: str | bytes) -> Progress | None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.file.read()


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path / "progress.json")


@pytest.mark.parametrize(("number", "step"), [("20.0", 20), ("2e1", 20), ("0.0", 0), ("-0.0", 0), ("1e17", 10**17)])
def test_a_float_without_a_fraction_is_a_step(page: Page, number: str, step: int) -> None:
    assert page.read(f'{{"step": {number}, "checkpoint": {number}, "world_size": {number}}}') == Progress(
        step=step, world_size=step
    )
    assert (page.file.checkpoint_step(), type(page.file.checkpoint_step())) == (step, int)
    assert page.notes == []


def test_the_same_checkpoint_as_a_float_is_not_named_again(page: Page) -> None:
    page.read('{"step": 20, "checkpoint": 20}')
    page.read('{"step": 21, "checkpoint": 20.0}')
    assert page.file.named is not None
    assert page.file.named.count == 1


ODD = {
    "text": '"20"', "NumPy's": '"np.float32(0.5)"', "a fraction below none": "-0.5", "NaN": "NaN", "infinite": "Infinity",
    "below": "-Infinity", "too large for a float": "1e999", "true": "true", "false": "false", "list": "[20]", "deep": "[" * 90 + "]" * 90,
    "object": '{"mean": 1}', "empty": '""', "half of a pair": r'"\ud83d"', "several lines": r'"a\nb"',
}  # fmt: skip
NO_STEP = {
    **ODD,
    "negative": "-5",
    "fraction": "20.5",
    "huge": "9" * 300,
    "19 digits": "1" + "0" * 18,
    "1e300": "1e300",
}


@pytest.mark.parametrize("metric", [*(one for one in ODD.values() if one != "-0.5"), "9" * 400])
def test_a_metric_that_is_no_number_costs_the_metric_alone(page: Page, metric: str) -> None:
    progress = page.read(f'{{"step": 5, "metric": {metric}, "world_size": 2, "checkpoint": 4}}')
    assert progress is not None
    assert replace(progress, diverged="") == Progress(step=5, world_size=2)
    assert page.file.checkpoint_step() == 4
    (note,) = page.notes
    assert note.startswith("PROGRESS_FILE metric is ")
    assert "; allowed: a finite number. " in note
    assert len(note) < 200
    assert note.isprintable()


@pytest.mark.parametrize("step", NO_STEP.values(), ids=NO_STEP.keys())
def test_a_step_that_is_none_costs_the_step_alone(page: Page, step: str) -> None:
    """The checkpoint that is named beside it stands for it: the training is at least so far."""
    assert page.read(f'{{"step": {step}, "checkpoint": 4, "metric": 0.5}}') == Progress(step=4, metric=0.5)
    assert page.file.checkpoint_step() == 4
    (note,) = page.notes
    assert note.startswith("PROGRESS_FILE step is ")
    assert "; allowed: a whole number from 0, of at most 18 digits. " in note


@pytest.mark.parametrize("checkpoint", NO_STEP.values(), ids=NO_STEP.keys())
def test_a_checkpoint_that_is_no_step_names_none(page: Page, checkpoint: str) -> None:
    assert page.read(f'{{"step": 5, "checkpoint": {checkpoint}}}') == Progress(step=5)
    assert page.file.named is None
    assert [note.split(" is ")[0] for note in page.notes] == ["PROGRESS_FILE checkpoint"]


@pytest.mark.parametrize(
    ("field", "value"), [("world_size", '"8"'), ("world_size", "-1"), ("import_s", "-1"), ("import_s", '"3"')]
)
def test_another_value_that_is_not_allowed_costs_itself_alone(page: Page, field: str, value: str) -> None:
    assert page.read(f'{{"step": 5, "metric": 1, "{field}": {value}}}') == Progress(step=5, metric=1.0)
    assert [note.split(" is ")[0] for note in page.notes] == [f"PROGRESS_FILE {field}"]


@pytest.mark.parametrize("field", ["metric", "checkpoint", "world_size", "import_s"])
def test_null_is_no_value_and_no_mistake(page: Page, field: str) -> None:
    assert page.read(f'{{"step": 5, "{field}": null, "epoch": "three", "loss": NaN}}') == Progress(step=5)
    assert page.notes == []


@pytest.mark.parametrize("text", ["{}", '{"epoch": 3, "loss": 0.5}', '{"step": null}'])
def test_a_file_without_a_step_is_said(page: Page, text: str) -> None:
    assert page.read(text) is None
    assert page.notes[0].startswith("PROGRESS_FILE step is missing; ")


def test_what_is_wrong_is_said_once_a_field(page: Page) -> None:
    for n in range(50):
        page.read(f'{{"step": {n}, "metric": "0.{n}", "checkpoint": {n}.5}}')
    assert [note.split(" is ")[0] for note in page.notes] == ["PROGRESS_FILE checkpoint", "PROGRESS_FILE metric"]
    assert page.read('{"step": 50, "metric": 0.5}') == Progress(step=50, metric=0.5)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "Expecting value"), (b"step=20", "Expecting value"), (b"{'step': 20}", "double quotes"), (b"20", "it is 20"),
        (b"[]", "a list"), (b'{"step": 20', "delimiter"), (b'{"step": 20}\n{"step": 21}', "Extra data"), (b"\xff\xfe\xff", "codec"),
        (b"[" * 60_000, "recursion"), (b'{"step": ' + b"1" * 5000 + b"}", "digits"),
        (b'{"step": 20, "x": "' + b"x" * LIMIT + b'"}', "more than 65536 bytes"),
    ],
)  # fmt: skip
def test_a_file_that_stays_without_json_is_said_and_one_that_is_being_written_is_not(
    page: Page, document: bytes, why: str
) -> None:
    assert page.read('{"step": 19}') == Progress(step=19)
    for page.now in (0.0, TORN_S - 1):
        assert page.read(document) == Progress(step=19)
    assert page.notes == []
    for page.now in (TORN_S, 2 * TORN_S, 3 * TORN_S):
        assert page.read(document) == Progress(step=19)
    (note,) = page.notes
    assert note.startswith("PROGRESS_FILE is not understood: ")
    assert why in note
    assert note.endswith("Replace it with a JSON object by renaming")


def test_a_file_that_is_written_in_place_all_the_time_is_not_said_to_be_torn(page: Page) -> None:
    for n in range(100):
        page.now = 1.0 * n
        page.read('{"step": ' if n % 2 else f'{{"step": {n}}}')
    assert page.notes == []


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_is_no_file_is_said_and_never_followed(page: Page, tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").write_text('{"step": 5}')
    if kind == "link":
        page.path.symlink_to(tmp_path / "other")
    else:
        page.path.mkdir()
    assert page.file.read() is None
    assert page.file.read() is None
    (note,) = page.notes
    assert note.startswith("PROGRESS_FILE cannot be read: ")


def test_a_pipe_is_not_waited_for(page: Page) -> None:
    os.mkfifo(page.path)
    assert page.file.read() is None


def test_a_file_that_is_not_there_yet_is_no_mistake(page: Page) -> None:
    page.now = 2 * TORN_S
    assert page.file.read() is None
    assert page.notes == []

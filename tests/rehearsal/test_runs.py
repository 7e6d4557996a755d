"""The folders of a rehearsal and its name: a folder of any name is a job, and two runs in one checkout share nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal import runs
from rehearsal.runs import KEPT, LATEST, Run, Unwritable, job_name

ADMITTED = re.compile("[A-Za-z0-9_-]{1,80}")
"""What Admit takes as a job's id."""


@pytest.mark.parametrize(
    "folder",
    [
        "tmp.7n0",
        "mein jöb",
        " two  spaces ",
        "-dash",
        "--",
        "",
        ".",
        "日本語",
        "a" * 300,
        "ä" * 300,
        "x_y",
        "a\nb",
        "..",
        "a/b",
    ],
)
def test_a_folder_of_any_name_makes_a_name_that_admit_takes(folder: str) -> None:
    name = job_name(folder)
    assert ADMITTED.fullmatch(name)
    assert name[0].isalnum(), "a dash first would be an option to most commands"


def test_what_can_be_read_of_the_folder_stays() -> None:
    assert job_name("mein jöb").startswith("mein-job-")
    assert job_name("tmp.7n0").startswith("tmp-7n0-")


def test_a_folder_whose_name_has_nothing_to_keep_is_a_job() -> None:
    assert job_name("日本語").startswith("job-")


def test_two_starts_within_a_second_have_different_names() -> None:
    assert len({job_name("digits", now=1.0) for _ in range(20)}) == 20


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return {"out": tmp_path / "out", "work": tmp_path / "work"}


@pytest.fixture
def started() -> Iterator[list[Run]]:
    found: list[Run] = []
    yield found
    for run in found:
        run.close()


def test_two_runs_have_folders_of_their_own_and_latest_is_the_newer(
    places: dict[str, Path], started: list[Run]
) -> None:
    started += [Run("one", **places), Run("two", **places)]
    (started[0].out / "summary.json").write_text("one")
    (started[1].out / "summary.json").write_text("two")
    assert (places["out"] / LATEST / "summary.json").read_text() == "two"
    assert (started[0].out / "summary.json").read_text() == "one"
    assert started[0].work != started[1].work


def test_a_run_that_lives_keeps_its_folders_however_old_it_is(places: dict[str, Path], started: list[Run]) -> None:
    started.append(Run("alive", **places))
    for number in range(KEPT + 3):
        Run(f"over-{number}", **places).close()
    assert started[0].out.is_dir()
    assert started[0].work.is_dir()


def test_of_runs_that_are_over_the_newest_stay(places: dict[str, Path]) -> None:
    for number in range(KEPT + 3):
        Run(f"over-{number:02d}", **places).close()
    left = sorted(path.name for path in places["out"].iterdir() if not path.is_symlink())
    assert left == [f"over-{number:02d}" for number in range(3, KEPT + 3)]
    assert [path.name for path in places["work"].iterdir()] == [f"over-{KEPT + 2:02d}"]


def test_a_run_that_was_killed_is_over(places: dict[str, Path]) -> None:
    code = "import os, sys; from pathlib import Path; from rehearsal.runs import Run; \
run = Run('killed', out=Path(sys.argv[1]), work=Path(sys.argv[2])); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(places["out"]), str(places["work"])], cwd=runs.ROOT, check=False)
    assert (places["work"] / "killed").is_dir()
    Run("next", **places).close()
    assert not (places["work"] / "killed").exists()


def test_no_other_user_of_the_computer_reads_a_run(places: dict[str, Path]) -> None:
    Run("one", **places).close()
    for folder in places.values():
        assert (folder / "one").stat().st_mode & 0o777 == 0o700


def test_a_person_s_own_files_in_the_results_folder_stay(places: dict[str, Path]) -> None:
    mine = places["out"] / "notes"
    mine.mkdir(parents=True)
    for number in range(KEPT + 3):
        Run(f"over-{number}", **places).close()
    assert mine.is_dir()


def test_a_file_where_the_results_belong_is_a_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(Unwritable, match=r"out/one: .*must be a folder") as refused:
        Run("one", out=tmp_path / "out", work=tmp_path / "work")
    assert "\n" not in str(refused.value)


def test_a_folder_called_latest_is_not_replaced(places: dict[str, Path]) -> None:
    (places["out"] / LATEST / "mine").mkdir(parents=True)
    with pytest.raises(Unwritable, match=r"latest: .*must be a link"):
        Run("one", **places)
    assert (places["out"] / LATEST / "mine").is_dir()
    assert not list(places["out"].glob(f".{LATEST}-*"))

"""Tests that failed in a lane run once more, alone, by a real pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tools.rerun import main
from tools.summary import Part, read

TESTS = """
import pathlib, pytest
def is_second_run():
    mark = pathlib.Path("mark")
    try:
        return mark.exists()
    finally:
        mark.touch()
def test_disturbed():
    print("what the first run said")
    assert is_second_run()
@pytest.mark.parametrize("way", ["a b", "x/y[z]"])
def test_wrong(way): assert False
def test_good(): pass
"""
STORY = """
import pathlib, pytest
told = []
@pytest.mark.skip
def test_skipped(): pass
def test_beginning(): told.append("once upon a time")
def test_beside(): told.clear()
def test_end():
    disturbed = not pathlib.Path("mark").exists()
    pathlib.Path("mark").touch()
    assert told and not disturbed
def test_after(): told.clear()
"""
DISTURBED = "test_lane.py::test_disturbed"


@pytest.fixture
def lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results, beside tests of which one passes only alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\njunit_logging = all\n")
    (tmp_path / "test_lane.py").write_text(TESTS)
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def run_lane(results: Path, chosen: str, *, name: str = "unit", place: str = "test_lane.py") -> Part:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={results / name}.xml"]
    ended = subprocess.run(
        [*command, "-o", "junit_family=xunit1", "-k", chosen, place], capture_output=True, check=False, timeout=HANG_S
    )
    (results / name).write_text(f"{ended.returncode}\n")
    return read(results, name)


def test_a_test_that_passes_alone_is_listed_as_flaky_with_both_outputs(lane: Path) -> None:
    assert run_lane(lane, "disturbed or good").failed == (DISTURBED,)
    assert main([str(lane), "unit"]) == 0
    part = read(lane, "unit")
    assert (part.failed, part.flaky, part.is_good) == ((), (DISTURBED,), True)
    (kept,) = (lane / "flaky").iterdir()
    assert "what the first run said" in (kept / "first.txt").read_text()
    assert "1 passed" in (kept / "second.txt").read_text()


def test_a_test_that_fails_alone_too_stays_red_whatever_its_name_has(lane: Path) -> None:
    assert len(run_lane(lane, "wrong").failed) == 2
    main([str(lane), "unit"])
    part = read(lane, "unit")
    assert (len(part.failed), part.flaky, part.is_good) == (2, (), False)
    assert len(list((lane / "flaky").iterdir())) == 2


def test_a_test_runs_again_behind_what_its_file_had_told_before_it(lane: Path) -> None:
    """It leaves out what the lane skipped or left out, and what the lane ran later."""
    Path("test_lane.py").write_text(STORY)
    story, second = run_lane(lane, "not beside"), lane / "flaky" / "unit-0-test_lane-py-test_end" / "second.txt"
    assert story.failed == ("test_lane.py::test_end",)
    main([str(lane), "unit"])
    assert read(lane, "unit").flaky == ("test_lane.py::test_end",)
    assert "2 passed" in second.read_text()


def test_nothing_runs_again_when_more_tests_failed_than_may_be_flaky(
    lane: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_lane(lane, "wrong or disturbed")
    run_lane(lane, "wrong", name="nodes")
    main([str(lane), "unit", "nodes"])
    assert read(lane, "unit").flaky == ()
    assert capsys.readouterr().out == "Nothing is run again: 5 tests failed, more than 3.\n"


def test_a_test_of_security_is_never_run_again(lane: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Path("tests/security")
    place.mkdir(parents=True)
    Path("test_lane.py").rename(place / "test_lane.py")
    run_lane(lane, "disturbed", place="tests/security/test_lane.py")
    main([str(lane), "unit"])
    assert read(lane, "unit").flaky == ()
    assert "is a test of security" in capsys.readouterr().out


@pytest.mark.parametrize("code", [2, 3, 137])
def test_a_part_that_was_cut_off_makes_nothing_run_again(
    lane: Path, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run_lane(lane, "disturbed")
    (lane / "unit").write_text(f"{code}\n")
    main([str(lane), "unit"])
    assert read(lane, "unit").flaky == ()
    assert capsys.readouterr().out == "Nothing is run again: unit did not end as tests do.\n"


def test_a_part_that_fails_without_a_test_keeps_others_from_running_again(
    lane: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_lane(lane, "disturbed")
    (lane / "lint").write_text("1\n")
    main([str(lane), "lint", "unit"])
    assert read(lane, "unit").flaky == ()
    assert capsys.readouterr().out == "Nothing is run again: lint failed without naming a test.\n"


def test_when_nothing_failed_nothing_is_said(lane: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_lane(lane, "good")
    main([str(lane), "unit"])
    assert capsys.readouterr().out == ""

"""Lines of a part whose tests run beside others, and the screen of each test that failed, of a real pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tools.summary import main

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
@pytest.mark.parametrize("number", range(20))
def test_good(number): print("all is well")
def test_a_node_that_is_lost_is_replaced(tmp_path):
    print("what the node said")
    assert "lost" == "replaced"
@pytest.fixture
def broken(): raise OSError("no such disk")
def test_a_disk_is_mounted(broken): pass
"""
LOST = "test_lane.py::test_a_node_that_is_lost_is_replaced"
DISK = "test_lane.py::test_a_disk_is_mounted"


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of results, and the lines that the part told while it ran."""
    folder = tmp_path_factory.mktemp("lane")
    (folder / "test_lane.py").write_text(TESTS)
    run = f"{sys.executable} -m pytest -p tools.lane --lane=unit -p no:cacheprovider --rootdir=."
    command = f"{run} --junit-xml=unit.xml -o junit_family=xunit1 test_lane.py 3>&1 > unit.log 2>&1; echo $? > unit"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    return folder, told.stdout.splitlines()


def test_each_line_names_its_part(lane: tuple[Path, list[str]]) -> None:
    _, told = lane
    assert told[0] == "unit: 22 tests"
    assert [line for line in told if not line.startswith("unit: ")] == []


def test_a_failure_has_a_line_of_its_own_and_what_passed_has_none(lane: tuple[Path, list[str]]) -> None:
    failed = [line for line in lane[1] if "FAILED" in line]
    assert failed == [f"unit: FAILED {LOST}", f"unit: FAILED {DISK}"]


def test_how_far_it_is_is_told_at_each_tenth(lane: tuple[Path, list[str]]) -> None:
    far = [line for line in lane[1] if " of 22 after " in line]
    assert len(far) >= 10  # and each minute, on a computer on which these tests take minutes
    assert far[-1].endswith(f", last {DISK}")


def test_what_pytest_prints_is_in_the_log_and_not_among_the_lines(lane: tuple[Path, list[str]]) -> None:
    folder, told = lane
    assert "what the node said" in (folder / "unit.log").read_text()
    assert not any("what the node said" in line for line in told)


def test_nobody_who_reads_the_lines_changes_no_result(tmp_path: Path) -> None:
    (tmp_path / "test_lane.py").write_text("def test_good(): pass\n")
    run = f"{sys.executable} -m pytest -q -p tools.lane --lane=unit -p no:cacheprovider --rootdir=. test_lane.py"
    command = f"exec 3> >(exec true); wait $!; {run}"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_failed_test_is_a_screen_of_its_sentence_what_was_found_and_where_to_look(
    lane: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = lane
    assert main(["test", str(folder), "checks", "unit"]) == 1
    lines = capsys.readouterr().out.splitlines()
    screen = lines[lines.index(f"FAILED {LOST}") : lines.index(f"FAILED {DISK}") - 1]
    assert screen[1] == "  a node that is lost is replaced"
    assert "    AssertionError: assert 'lost' == 'replaced'" in screen
    assert screen[-3].startswith("  at test_lane.py:")
    assert Path(screen[-2].removeprefix("  its files: ")).name.startswith("test_a_node_that_is_lost")
    assert screen[-1] == f"  everything that was printed: {folder}/unit.log"


def test_a_fixture_that_broke_is_told_as_a_failure_is(
    lane: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["test", str(lane[0]), "checks", "unit"])
    lines = capsys.readouterr().out.splitlines()
    assert "    OSError: no such disk" in lines[lines.index(f"FAILED {DISK}") :]


def test_of_a_part_that_did_not_end_as_tests_do_the_end_of_its_log_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unit").write_text("4\n")
    (tmp_path / "unit.log").write_text("ERROR: file or directory not found: tests/none\n")
    assert main(["test", str(tmp_path), "checks", "unit"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "unit ended with exit status 4"
    assert "    ERROR: file or directory not found: tests/none" in lines


def test_a_hundred_failures_are_five_screens_and_a_hundred_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = '<testcase file="test_x.py" name="test_{0}"><failure>E   {0}</failure></testcase>'
    (tmp_path / "unit").write_text("1\n")
    (tmp_path / "unit.xml").write_text(f"<suite>{''.join(map(case.format, range(100)))}</suite>")
    main(["test", str(tmp_path), "checks", "unit"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("FAILED ") for line in lines) == 5
    assert sum(line.lstrip().startswith("FAILED ") for line in lines) == 105

"""Where the time of the tests went, by the results of a real pytest in a lane."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tools.costs import main, read_costs, write_tables

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest, time
def use(seconds):
    begun = time.process_time()
    while time.process_time() - begun < seconds: pass
@pytest.fixture
def dear(): use(0.3)
@pytest.mark.parametrize("case", ["a", "b"])
def test_dear(dear, case): pass
def test_cheap(): pass
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("costs")
    (folder / "room").mkdir()
    (folder / "room" / "test_uses.py").write_text(TESTS)
    run = f"{sys.executable} -m pytest -p tools.lane --lane=unit -p no:cacheprovider --rootdir=. room"
    subprocess.run(
        ["bash", "-c", f"{run} --junit-xml=unit.xml -o junit_family=xunit1 3>&1 > unit.log"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        timeout=HANG_S,
    )
    return folder


def test_a_fixture_counts_for_the_test_that_made_it(results: Path) -> None:
    used = {one.test.partition("::")[2]: one.processor_s for one in read_costs(results)}
    assert min(used["test_dear[a]"], used["test_dear[b]"]) >= 0.2
    assert used["test_cheap"] < used["test_dear[a]"]


def test_the_dearest_comes_first_with_its_cases_together(results: Path) -> None:
    lines = list(write_tables(list(read_costs(results)), 1))
    (test,) = [line for line in lines if "::" in line]
    assert test.endswith("       2  room/test_uses.py::test_dear")
    assert [line.split()[-1] for line in lines if "room" in line][1] == "room"


def test_results_without_processor_time_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "unit.xml").write_text('<suite><testcase file="test_x.py" name="test_a" time="2.5"/></suite>')
    assert [(one.processor_s, one.wall_s) for one in read_costs(tmp_path)] == [(0.0, 2.5)]


def test_without_results_a_line_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == f"{tmp_path} has no results: run make test first\n"


def test_a_part_that_was_killed_while_it_wrote_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "nodes.xml").write_text('<suite><testcase file="test_y.py" na')
    (tmp_path / "unit.xml").write_text('<suite><testcase file="test_x.py" name="test_a"/></suite>')
    assert [one.part for one in read_costs(tmp_path)] == ["unit"]

"""The last words of `make test`, on results that pytest wrote."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tools.summary import main, read

LANES = ["checks", "lint", "unit", "--", "rehearsals", "deployed", "local"]
TESTS = """
import pytest
def test_good(): pass
@pytest.mark.parametrize("fault", ["node-lost"])
def test_bad(fault): assert False
@pytest.fixture
def broken(): raise OSError
def test_with_a_broken_fixture(broken): pass
@pytest.mark.skip
def test_skipped(): pass
"""


def ended(folder: Path, name: str, code: int) -> None:
    (folder / name).write_text(f"{code}\n")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest itself writes about a file with a test of each kind."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "test_kinds.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "test_kinds.py"]
    subprocess.run(
        [*command, "--junit-xml=results.xml", "-o", "junit_family=xunit1"],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=HANG_S,
    )
    return (folder / "results.xml").read_text()


def test_both_lanes_are_told_with_what_failed_in_each(
    tmp_path: Path, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(tmp_path, "lint", 2)
    for part in ("unit", "deployed"):
        ended(tmp_path, part, 1)
        (tmp_path / f"{part}.xml").write_text(results)
    ended(tmp_path, "local", 0)
    assert main(["test", str(tmp_path), *LANES]) == 1
    failed = [
        "            FAILED test_kinds.py::test_bad[node-lost]",
        "            FAILED test_kinds.py::test_with_a_broken_fixture",
    ]
    assert capsys.readouterr().out.splitlines()[-9:] == [
        "",
        "checks      lint failed; unit failed (1 passed, 2 failed, 1 skipped)",
        *failed,
        "rehearsals  deployed failed (1 passed, 2 failed, 1 skipped); local passed",
        *failed,
        "make test: not passed: lint, unit, deployed",
        "2 passed, 4 failed",
    ]


def test_a_part_that_was_never_started_fails_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("lint", "unit", "deployed"):
        ended(tmp_path, part, 0)
    assert main(["test", str(tmp_path), *LANES]) == 1
    assert "local not run" in capsys.readouterr().out


def test_when_everything_passes_the_last_line_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("lint", "unit", "deployed", "local"):
        ended(tmp_path, part, 0)
    assert main(["test", str(tmp_path), *LANES]) == 0
    assert capsys.readouterr().out.endswith("make test: everything passed\n0 passed, 0 failed\n")


def write_results(folder: Path, part: str, code: int, results: str, *flaky: str) -> None:
    ended(folder, part, code)
    (folder / f"{part}.xml").write_text(results)
    (folder / f"{part}.flaky").write_text("".join(f"{test}\n" for test in flaky))


BOTH = "test_kinds.py::test_bad[node-lost]", "test_kinds.py::test_with_a_broken_fixture"


def test_tests_that_passed_alone_are_named_and_fail_nothing(
    tmp_path: Path, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_results(tmp_path, "unit", 1, results, *BOTH)
    assert main(["test", str(tmp_path), "checks", "unit"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "checks  unit passed (3 passed, 1 skipped, 2 flaky)"
    assert lines[-4:] == [
        *(f"flaky: {test}" for test in BOTH),
        "make test: everything passed, 2 of it in a second run",
        "3 passed, 0 failed",
    ]


def test_more_flaky_tests_than_are_allowed_in_all_parts_together_are_red(
    tmp_path: Path, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("unit", "nodes"):
        write_results(tmp_path, part, 1, results, *BOTH)
    assert main(["test", str(tmp_path), "checks", "unit", "nodes"]) == 1
    assert "make test: not passed: 4 tests are flaky, more than 3\n" in capsys.readouterr().out


def test_one_test_that_failed_twice_is_red_beside_one_that_passed_alone(
    tmp_path: Path, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_results(tmp_path, "unit", 1, results, BOTH[0])
    assert main(["test", str(tmp_path), "checks", "unit"]) == 1
    said = capsys.readouterr().out
    assert f"FAILED {BOTH[1]}\n" in said
    assert "make test: not passed: unit\n2 passed, 1 failed\n" in said


def test_a_part_that_was_interrupted_is_red_whatever_passed_alone(tmp_path: Path, results: str) -> None:
    write_results(tmp_path, "unit", 2, results, *BOTH)
    assert main(["test", str(tmp_path), "checks", "unit"]) == 1


def test_the_slowest_tests_are_named_with_their_seconds(
    tmp_path: Path, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = re.sub(r'(name="test_good"[^>]*time=")[0-9.]+', r"\g<1>1230.04", results)
    write_results(tmp_path, "unit", 1, slow)
    main(["test", str(tmp_path), "checks", "unit"])
    lines = capsys.readouterr().out.splitlines()
    first = lines[lines.index("slowest tests, in seconds with their fixtures:") + 1]
    assert first.split() == ["1230.0", "test_kinds.py::test_good"]


@pytest.mark.parametrize("torn", ["", "<testsuites><testsuite"])
def test_a_part_that_was_killed_while_it_wrote_is_told_by_its_exit_status(tmp_path: Path, torn: str) -> None:
    ended(tmp_path, "unit", 137)
    (tmp_path / "unit.xml").write_text(torn)
    assert read(tmp_path, "unit").words == "unit failed"

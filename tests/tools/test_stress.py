"""The suite beside busy processes: what is run, what is told, and that none of the processes is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localaws.testing.waiting import until
from tools import stress
from tools.summary import Part

ROOT = Path(__file__).parents[2]
MAKEFILE = """
unit nodes:
\t@echo $@ $(SIDE_BY_SIDE) >> calls
\t@echo {code} > build/test/$@
\t@printf '%s' '<suite><testcase file="test_x.py" name="test_a"/>{case}</suite>' > build/test/$@.xml
"""
RED = '<testcase file="test_x.py" name="test_$@"><failure>E   late</failure></testcase>'


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Makefile whose parts write results as pytest does."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_makefile(folder: Path, *, code: int = 0, case: str = "") -> None:
    (folder / "Makefile").write_text(MAKEFILE.format(code=code, case=case))


def test_a_run_without_a_failure_is_green_and_its_results_are_kept(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_makefile(checkout)
    assert stress.main(["1 2", "unit", "nodes"]) == 0
    assert {place.name for place in (checkout / "build" / "stress").iterdir()} == {"1", "2"}
    assert (checkout / "build" / "stress" / "2" / "nodes.xml").exists()
    rows = capfd.readouterr().out.splitlines()[-2:]
    assert [(row.split()[0], *row.split()[-2:]) for row in rows] == [("1", "2", "0"), ("2", "2", "0")]


def test_what_failed_is_named_with_the_loads_beside_which_it_did(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_makefile(checkout, code=1, case=RED)
    assert stress.main(["1 3", "unit"]) == 1
    assert "FAILED beside 1, 3: test_x.py::test_unit" in capfd.readouterr().out.splitlines()


def test_a_part_that_never_ended_is_a_failure(checkout: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (checkout / "Makefile").write_text("unit:\n\t@exit 2\n")
    assert stress.main(["1", "unit"]) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "FAILED beside 1: unit"


def test_the_processes_are_busy_beside_the_parts_and_end_with_them() -> None:
    with stress.keep_busy(2) as started:
        assert until(lambda: all(ticks(one.pid) > 0 for one in started))
    assert [one.returncode for one in started] == [-signal.SIGKILL] * 2


def test_an_interrupt_leaves_none_of_them() -> None:
    started = list[subprocess.Popen[bytes]]()

    def interrupt() -> None:
        with stress.keep_busy(2) as running:
            started.extend(running)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert [one.returncode for one in started] == [-signal.SIGKILL] * 2


def test_nor_does_a_kill_that_nobody_can_catch() -> None:
    program = "from tools import stress\nwith stress.keep_busy(1) as (one,): print(one.pid, flush=True); input()"
    runner = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert runner.stdout is not None
    process = int(runner.stdout.readline())
    assert until(lambda: is_busy(process))
    runner.kill()
    runner.communicate()
    assert until(lambda: not is_busy(process))


def is_busy(process: int) -> bool:
    try:
        return stress.BUSY.encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return False


def ticks(process: int) -> int:
    """Processor time that the process has had in its own code."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])


def test_the_parts_are_told_to_go_on_side_by_side(checkout: Path) -> None:
    write_makefile(checkout)
    stress.run_beside(1, ["unit", "nodes"])
    calls = (checkout / "calls").read_text().splitlines()
    assert sorted(call.split()[:2] for call in calls) == [["nodes", "1"], ["unit", "1"]]


def test_a_row_counts_what_passed_in_all_parts() -> None:
    run = stress.Run(4, 12.25, 7.4, [Part("unit", 0, 10), Part("nodes", 1, 5, 0, ("test_x.py::test_y",))])
    assert list(stress.write_table([run])) == [
        "busy processes  load average  minutes  passed  failed",
        "             4           7.4     12.2      15       1",
        "FAILED beside 4: test_x.py::test_y",
    ]

"""The Makefile itself, in a folder with a difficult name, on programs that only write down how they are called."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S, until

ROOT = Path(__file__).parents[2]
PINS = ("requirements.txt", "tools/uv.txt", "uv.lock")
PROGRAMS = ("mypy", "pyrefly", "ruff", "shellcheck", "uv", "npm", "npx", "git")
NOTE = '#!/bin/sh\necho "${0##*/} $*" >> "$CALLS"\n'
FAILS = 'case "$*" in *"not rehearsal"*) exit 1;; esac\n'
LASTS = 'case "$*" in *"-m pytest"*) echo $$ >> "$CALLS.pids"; exec sleep 300;; esac\n'


class Checkout:
    """The Makefile and what it calls; nothing in it is set up, or everything is."""

    def __init__(self, folder: Path, name: str = "-mein jöb x") -> None:
        self.root = folder / name
        self.root.mkdir()
        shutil.copy(ROOT / "Makefile", self.root)
        shutil.copytree(
            ROOT / "tools",
            self.root / "tools",
            ignore=lambda _, names: {*names} - {"__init__.py", "screens.py", "summary.py"},
        )
        for file in (*ROOT.glob("package*.json"), *ROOT.glob("*/*requirements.txt"), *map(ROOT.joinpath, PINS)):
            (self.root / file.relative_to(ROOT)).parent.mkdir(exist_ok=True)
            (self.root / file.relative_to(ROOT)).touch()
        for prerequisite in (
            "rehearsal/prepare.py",
            "node/services.txt",
            "localaws/machines/image.py",
            "localaws/machines/requirements-ami.in",
            "node/compiled.txt",
        ):
            (self.root / prerequisite).parent.mkdir(parents=True, exist_ok=True)
            (self.root / prerequisite).touch()

    def set_up(self, python: str = "") -> None:
        programs = self.root / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name in (*PROGRAMS, "python"):
            (programs / name).write_text(NOTE + (python if name == "python" else ""))
            (programs / name).chmod(0o755)
        for stamp in re.findall(r"^((?:\.venv|node_modules|build)/\S+):", (ROOT / "Makefile").read_text(), re.M):
            (self.root / stamp).parent.mkdir(parents=True, exist_ok=True)
            (self.root / stamp).touch()
        for stamp in self.root.rglob("*"):
            os.utime(stamp, (0, 0))  # none is older than another

    def make(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["make", f"PYTHON={sys.executable}", *arguments],
            cwd=self.root,
            env={"PATH": os.environ["PATH"], "CALLS": str(self.root / "calls")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A suite that a script runs in the background ignores it, and so would all that it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run_make(self, *arguments: str) -> tuple[int, str]:
        make = self.make(*arguments)
        said, _ = make.communicate(timeout=HANG_S)
        return make.returncode, said

    @property
    def calls(self) -> str:
        return (self.root / "calls").read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_part_that_fails_stops_neither_lane_and_the_last_lines_tell_of_both(checkout: Checkout) -> None:
    checkout.set_up(FAILS)
    code, said = checkout.run_make("test")
    assert code != 0
    for part in (
        "not rehearsal",
        "rehearsal and deployed",
        "tests/security tests/stacks -p tools.lane --lane=security\n",
    ):
        assert part in checkout.calls
    assert "localaws/tests" not in checkout.calls
    assert said.splitlines()[-5:-1] == [  # the last line is of make: Error 1
        "checks      lint passed; types passed; unit failed; nodes passed; security passed",
        "rehearsals  rehearsal-tests passed",
        "make test: not passed: unit",
        "0 passed, 0 failed",
    ]


def test_what_failed_in_a_lane_runs_again_only_after_all_lanes(checkout: Checkout) -> None:
    checkout.set_up(FAILS)
    checkout.run_make("test-all")
    calls = checkout.calls.splitlines()
    runs = [number for number, call in enumerate(calls) if "-m pytest" in call]
    (again,) = (number for number, call in enumerate(calls) if "tools.rerun" in call)
    parts = "lint types unit nodes security rehearsal-tests tool-tests local-aws own-deployments image-rehearsals"
    assert calls[again] == f"python -m tools.rerun build/test {parts}"
    assert len(runs) == 8
    assert runs[-1] < again


@pytest.mark.parametrize(
    ("target", "runs"),
    [
        ("test", ["rehearsal and deployed and not at_length"]),
        ("test-tools", ["rehearsal and deployed and at_length"]),
        ("test-all", ["rehearsal and deployed"]),
    ],
)
def test_what_shares_the_deployment_runs_in_two_halves_or_as_a_whole(
    checkout: Checkout, target: str, runs: list[str]
) -> None:
    checkout.set_up()
    checkout.run_make(target)
    marks = re.findall(r"-m (rehearsal and deployed.*?) and not faults", checkout.calls)
    assert marks == runs


def test_when_everything_passes_the_last_line_says_so(checkout: Checkout) -> None:
    checkout.set_up()
    code, said = checkout.run_make("test")
    assert (code, said.splitlines()[-2:]) == (0, ["make test: everything passed", "0 passed, 0 failed"])


def test_a_part_alone_fails_as_its_program_does(checkout: Checkout) -> None:
    checkout.set_up(FAILS)
    assert checkout.run_make("unit")[0] != 0
    assert checkout.run_make("local-aws")[0] == 0


PARTS = {
    "not rehearsal and not at_length": "unit",
    "at_length and not rehearsal": "tool-tests",
    "rehearsal and not deployed": "own-deployments",
    "rehearsal and images": "image-rehearsals",
}
"""By what the call of pytest has alone."""


@pytest.mark.parametrize("fails", PARTS)
def test_whatever_part_fails_all_others_run_and_the_end_names_it(checkout: Checkout, fails: str) -> None:
    checkout.set_up(f'case "$*" in *"{fails}"*) exit 1;; esac\n')
    code, said = checkout.run_make("test-all")
    assert code != 0
    for called in (
        "ruff check",
        "pyrefly",
        "tests/security",
        "localaws/tests",
        "not deployed",
        "at_length and",
        "rehearsal and deployed",
    ):
        assert called in checkout.calls
    assert said.splitlines()[-3:-1] == [f"make test-all: not passed: {PARTS[fails]}", "0 passed, 0 failed"]


def test_a_part_of_the_tests_runs_without_the_rest(checkout: Checkout) -> None:
    checkout.set_up()
    code, _ = checkout.run_make("test", "ARGS=tests/functions/reaper")
    assert code == 0
    assert checkout.calls.splitlines() == ["python -m pytest tests/functions/reaper"]


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interrupt_leaves_nothing_running(checkout: Checkout) -> None:
    checkout.set_up(LASTS)
    make = checkout.make("test")
    pids = checkout.root / "calls.pids"
    while not pids.exists() or len(pids.read_text().split()) < 3:  # the first part with pytest of each lane
        assert make.poll() is None, make.communicate()[0]
        time.sleep(0.02)
    os.killpg(make.pid, signal.SIGINT)
    make.communicate(timeout=HANG_S)
    assert make.returncode != 0
    until(lambda: not group_lives(make.pid))  # the kernel keeps an ended process in it for a moment


@pytest.mark.parametrize("target", ["synth", "deploy", "destroy", "bake-image"])
def test_a_deploy_installs_neither_pytorch_nor_the_local_aws_nor_tools(checkout: Checkout, target: str) -> None:
    code, said = checkout.run_make("-n", target)
    assert code == 0
    assert "-r requirements.txt" in said
    assert not re.findall(r"--only-group|machines\.image|build/checkov", said)


@pytest.mark.parametrize("target", ["rehearse", "rehearse-grid"])
def test_a_rehearsal_installs_no_tools_of_development(checkout: Checkout, target: str) -> None:
    code, said = checkout.run_make("-n", target)
    assert code == 0
    assert "--only-group rehearsal" in said
    assert "localaws.machines.image build/ami" in said
    assert not re.findall(r"--only-group (?:dev|checkov)|build/checkov", said)


def test_a_folder_that_no_path_can_name_is_refused_with_a_line(tmp_path: Path) -> None:
    code, said = Checkout(tmp_path, "a:b").run_make("-n", "rehearse")
    assert code != 0
    (line,) = said.splitlines()
    assert "The folder's name has a colon" in line


def test_whatever_rehearses_or_measures_says_at_its_end_what_to_read_next() -> None:
    recipes = re.findall(r"^((?:bench|rehearse)[a-z-]*):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert len(recipes) >= 15
    assert [target for target, recipe in recipes if "Next: " not in recipe.splitlines()[-1]] == []


def test_what_is_to_be_read_next_is_there() -> None:
    pages = set(re.findall(r"Next: [^\n]*?(docs/[a-z/-]+\.md)", (ROOT / "Makefile").read_text()))
    assert len(pages) >= 10
    assert [page for page in sorted(pages) if not (ROOT / page).is_file()] == []


@pytest.mark.parametrize("target", ["setup-rehearsal", "rehearse", "rehearse-grid", "synth"])
def test_what_is_set_up_already_goes_through_to_its_last_line(checkout: Checkout, target: str) -> None:
    checkout.set_up()
    code, said = checkout.run_make(target)
    assert (code, "rror" in said) == (0, False)
    assert "Next: " in said or target == "synth"

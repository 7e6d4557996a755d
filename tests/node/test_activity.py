"""For how long a training has shown no progress: what counts as a sign of it, what does not, and from when on it is counted."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from agent import activity
from agent.activity import Activity
from agent.attempt import WORK
from agent.checkpoints import Checkpoints
from agent.commits import Artifacts
from agent.progress import ProgressFile
from agent.reports import Reporter
from agent.saver import Saver
from contract.reports import Phase
from localaws.testing.waiting import until
from tests.node.ordering import once_it_trains
from tests.node.world import FAST, Site

MOST_S = 3600.0


class Training:
    """A training whose clock a test moves; every look is the test's own."""

    def __init__(self, root: Path, *, begins: bool = True) -> None:
        self.file, self.folder = root / "progress.json", root / "checkpoints"
        self.folder.mkdir()
        self.time, self.heard_at, self.busy_since = 1000.0, 1000.0, None
        self.activity = Activity(
            ProgressFile(self.file), self.folder, committing=lambda: self.busy_since, commit_most_s=MOST_S, now=lambda: self.time
        )  # fmt: skip
        self.activity.expect()
        if begins:
            self.activity.begin(lambda: self.heard_at)

    busy_since: float | None

    def tells(self, **said: object) -> None:
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(said))
        beside.replace(self.file)

    def after(self, seconds: float) -> float | None:
        self.time += seconds
        self.activity.update()
        return self.activity.idle_s


@pytest.fixture(autouse=True)
def no_looks_but_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LOOK_S", 3600.0)


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def test_nothing_is_counted_before_the_training_begins_and_after_its_end(tmp_path: Path) -> None:
    training = Training(tmp_path, begins=False)
    assert training.activity.idle_s is None
    training.activity.begin(lambda: training.heard_at)
    assert training.after(60) == 60
    training.activity.end()
    assert training.activity.idle_s is None


def test_a_training_that_says_nothing_is_counted_from_its_beginning(training: Training) -> None:
    assert (training.after(60), training.after(60)) == (60, 120)


@pytest.mark.parametrize(
    "then", [{"step": 2}, {"step": 0}, {"step": 1, "metric": 0.5}, {"step": 1, "checkpoint": 1}], ids=str
)
def test_whatever_new_the_progress_file_says_is_progress(training: Training, then: dict[str, object]) -> None:
    """A lower step too: the trainer has begun anew by itself."""
    training.tells(step=1)
    assert training.after(60) == 0
    training.tells(**then)
    assert training.after(60) == 0
    assert training.after(60) == 60


def test_a_step_between_the_start_and_the_first_look_is_the_trainings_though_it_prints_on(tmp_path: Path) -> None:
    training = Training(tmp_path, begins=False)
    training.tells(step=1)
    training.activity.begin(lambda: training.time)
    assert training.after(60) == 0
    assert training.after(60) == 60


def test_a_progress_file_that_says_the_same_again_is_no_progress(training: Training) -> None:
    training.tells(step=1)
    training.after(60)
    training.tells(step=1)
    os.utime(training.file)
    assert training.after(60) == 60


@pytest.mark.parametrize("text", ["", "{", '{"step": "many"}', '{"metric": 5}', "[]"])
def test_a_progress_file_that_cannot_be_read_is_no_progress(training: Training, text: str) -> None:
    training.tells(step=1)
    training.after(60)
    training.file.write_text(text)
    assert training.after(60) == 60


def test_output_is_progress_while_there_is_no_progress_file(training: Training) -> None:
    training.heard_at = training.time + 50
    assert training.after(60) == 10


def test_output_is_none_once_there_is_one(training: Training) -> None:
    """A trainer whose collective hangs goes on to warn of it."""
    training.tells(step=1)
    training.after(60)
    training.heard_at = training.time + 50
    assert training.after(60) == 60


def test_a_file_that_cannot_be_read_yet_does_not_silence_the_output(training: Training) -> None:
    training.file.write_text("{")
    training.heard_at = training.time + 50
    assert training.after(60) == 10


@pytest.mark.parametrize("has_file", [True, False])
def test_a_checkpoint_that_is_being_written_is_progress(training: Training, has_file: bool) -> None:
    if has_file:
        training.tells(step=1)
    training.after(60)
    for size in (1, 2, 3):
        (training.folder / "model.pt.tmp").write_bytes(b"x" * size)
        assert training.after(600) == 0
    assert training.after(60) == 60


def test_a_checkpoint_that_rests_is_none(training: Training) -> None:
    (training.folder / "deep").mkdir()
    (training.folder / "deep" / "model.pt").write_bytes(b"x")
    training.after(60)
    assert training.after(60) == 60


def test_what_lay_there_before_the_training_is_no_progress(tmp_path: Path) -> None:
    """What was restored, and what the attempt before it left in the file."""
    training = Training(tmp_path, begins=False)
    training.tells(step=9)
    (training.folder / "model.pt").write_bytes(b"x")
    training.activity.expect()
    training.activity.begin(lambda: training.heard_at)
    assert training.after(60) == 60
    training.heard_at = training.time + 50
    assert training.after(60) == 10


def test_of_very_many_files_the_first_are_looked_at(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MOST_FILES", 3)
    for number in range(9):
        (training.folder / f"{number}.pt").write_bytes(b"x")
    training.after(60)
    assert training.after(60) == 60


def test_a_commit_that_is_on_its_way_is_progress_and_its_end_begins_the_count(training: Training) -> None:
    training.busy_since = training.time
    assert (training.after(600), training.after(600)) == (0, 0)
    training.busy_since = None
    assert training.after(60) == 60


def test_a_look_at_files_that_are_in_s3_already_is_none(training: Training) -> None:
    training.after(60)
    training.busy_since = training.time + 59.5
    assert training.after(60) == 120


def test_a_commit_that_never_ends_hides_a_hang_for_no_longer_than_last_commits_may_take(training: Training) -> None:
    training.busy_since = training.time
    training.after(MOST_S - 1)
    assert training.after(600) == 600


def test_a_disk_that_does_not_answer_holds_up_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LOOK_S", 0.01)
    training, reads, held = Training(tmp_path), threading.Event(), threading.Event()
    monkeypatch.setattr(training.activity, "_written", lambda: reads.set() or (held.wait() and ""))
    until(reads.is_set)
    training.time += 60
    assert training.activity.idle_s == 60
    held.set()


# The saver


class Commits:
    """Checkpoints whose commits fail until a test lets them succeed."""

    def __init__(self) -> None:
        self.newest, self.newest_key, self.closed_step = None, "", -1
        self.tries, self.fails = 0, True

    def tick(self) -> bool:
        self.tries += 1
        if self.fails:
            raise OSError("S3 is away")
        return False


def test_a_saver_is_at_its_commit_from_the_first_try_to_the_one_that_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.saver.AGAIN_S", 0.01)
    commits = Commits()
    saver = Saver(
        cast(Checkpoints, commits), cast(Artifacts, None), cast(Reporter, None), every_s=0.04, note=lambda _: None
    )  # fmt: skip
    assert saver.busy_since is None
    before = time.monotonic()
    saver.start()
    until(lambda: commits.tries > 2)
    since = saver.busy_since
    assert since is not None
    assert before <= since
    until(lambda: commits.tries > 5)
    assert saver.busy_since == since
    commits.fails = False
    until(lambda: saver.busy_since is None)
    saver._over.set()


# The whole agent

SCRIPT = """
import json, os, sys, time
def wait_for(word):
    while not os.path.exists(word):
        time.sleep(0.01)
def step():
    with open(os.environ["PROGRESS_FILE"], "w") as file:
        file.write(json.dumps({"step": 1}))
print("up", flush=True)
"""
LONG_S = 0.4
"""For so long a training has to show nothing until a test believes that it is counted."""


def trained(site: Site, script: str, beside: Callable[[Callable[[str], None]], object]) -> None:
    """Runs the script, and beside it what may let it go on: the script waits for words."""
    site.offer(f"{SCRIPT}{script}", timing=replace(FAST, report_every_s=0.1))

    def say(word: str) -> None:
        (site.root / WORK / "code" / word).touch()

    with once_it_trains(site, lambda: beside(say)):
        site.run()


def idle_s(site: Site) -> float:
    """What the last report of the training said; 0 where none came yet."""
    return next((one.idle_s or 0.0 for one in reversed(site.sent()) if one.phase is Phase.TRAINING), 0.0)


def hears_of_it(site: Site) -> bool:
    """Whether the last report counts from a sign of the training on. Without one it counts from the beginning of the phase."""
    last = site.sent()[-1]
    return last.idle_s is not None and last.idle_s + LONG_S / 2 < last.phase_s


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "LOOK_S", 0.05)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "sign",
    ["step()", "sys.stdout.write('\\r.'), sys.stdout.flush()"],
    ids=["a step", "half a line, as of a progress bar"],
)
def test_reports_count_from_the_last_sign_of_a_training(site: Site, sign: str) -> None:
    def beside(say: Callable[[str], None]) -> None:
        until(lambda: idle_s(site) > LONG_S)
        say("shows")
        until(lambda: hears_of_it(site))
        say("ends")

    trained(site, f"wait_for('shows')\n{sign}\nwait_for('ends')", beside)


@pytest.mark.usefixtures("quick")
def test_the_reports_of_one_that_hangs_say_longer_and_longer_though_it_prints(site: Site) -> None:
    def beside(say: Callable[[str], None]) -> None:
        for long_s in (LONG_S, 2 * LONG_S):
            until(lambda long_s=long_s: idle_s(site) > long_s)  # type: ignore[misc]
        say("ends")

    prints = (
        "while not os.path.exists('ends'):\n    os.write(1, b'Watchdog caught a time-out\\n')\n    time.sleep(0.02)\n"
    )
    trained(site, f"step()\n{prints}", beside)


@pytest.mark.usefixtures("quick")
def test_no_report_but_the_trainings_says_anything(site: Site) -> None:
    trained(site, "wait_for('ends')", lambda say: (until(lambda: idle_s(site) > 0), say("ends")))
    others = {one.phase: one.idle_s for one in site.sent() if one.phase is not Phase.TRAINING}
    assert {Phase.PREPARING, Phase.ENDED} <= others.keys()
    assert set(others.values()) == {None}

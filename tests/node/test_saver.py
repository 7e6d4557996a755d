"""The last commits: files that rest late are committed, and what is left behind says whose doing it is."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import cast

import pytest

from agent.checkpoints import Checkpoints
from agent.commits import Artifacts
from agent.failures import CannotStart, MachineTrouble, classify_problem
from agent.reports import Reporter
from agent.saver import NICE, QUIET_S, Saver, Unsaved
from agent.snapshot import Changed
from localaws.testing.waiting import HANG_S
from tests.node.fakes import refusal
from tests.node.finished import Finished

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def changing() -> Changed:
    return Changed("model.pt changed")


def test_what_rests_at_once_is_committed_once() -> None:
    node = Finished((None,), (None,))
    assert node.finish() == Unsaved("")
    assert node.artifacts.tries == 1


def test_files_that_rest_late_are_waited_for_and_committed(changing: Changed) -> None:
    node = Finished((None,), (changing, changing, changing, None))
    assert node.finish() == Unsaved("")
    assert node.artifacts.tries == 4


def test_files_that_never_rest_are_waited_for_no_longer_than_the_patience_and_are_the_jobs_own_doing(
    changing: Changed,
) -> None:
    node = Finished((None,), (changing,))
    unsaved = node.finish()
    assert unsaved.own
    assert unsaved.text.startswith("not committed: model.pt changed")
    assert "a process that it left behind" in unsaved.text
    assert QUIET_S <= node.clock[0] <= QUIET_S + 8.0


def test_what_s3_refuses_is_not_the_jobs_doing_and_is_left_to_a_new_attempt() -> None:
    node = Finished((None,), (refusal("AccessDenied"),))
    unsaved = node.finish()
    assert not unsaved.own
    assert node.artifacts.tries == 1


def test_a_job_whose_other_folder_s3_refuses_may_be_mended(changing: Changed) -> None:
    assert not Finished((refusal("SlowDown"),), (changing,)).finish().own


def test_a_full_disk_at_the_last_commit_names_the_setting_that_helps() -> None:
    unsaved = Finished((FULL,), (None,)).finish()
    assert unsaved.own
    assert "the disk is full: ask for a larger volume_gb" in unsaved.text


@pytest.mark.parametrize(
    ("problem", "error", "words"),
    [
        (FULL, "TrainingFailed", "ask for a larger volume_gb"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "TrainingFailed", "ask for a larger volume_gb"),
        (CannotStart("no program"), "TrainingFailed", "no program"),
        (MachineTrouble("no address"), "NodeLost", "no address"),
        (OSError(errno.EIO, "Input/output error"), "NodeLost", "the agent failed: OSError: "),
        (refusal("AccessDenied"), "NodeLost", "the agent failed: ClientError: "),
        (KeyError("x"), "NodeLost", "the agent failed: KeyError: 'x'"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_failure_is_the_jobs_only_where_a_new_attempt_would_meet_it_again(
    problem: Exception, error: str, words: str
) -> None:
    found, reason = classify_problem(problem)
    assert found == error
    assert words in reason


def test_a_full_disk_is_named_whatever_was_written(tmp_path: Path) -> None:
    problem = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "code.tar.gz"))
    assert "code.tar.gz" in classify_problem(problem)[1]


class Looking:
    """Notes how nice the thread is that looks for a set to answer."""

    closed_step, newest, newest_key, layout = -1, None, "", ""

    def __init__(self) -> None:
        self.nice, self.looked = list[int](), threading.Event()

    def tick(self) -> bool:
        self.nice.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        self.looked.set()
        return False

    def finish(self, *, ended_well: bool, ended_at: float | None) -> bool:  # noqa: ARG002
        return self.tick()


class Nothing:
    def commit(self, *, final: bool = False) -> None:
        assert final


def test_commits_give_way_to_the_training_and_the_last_ones_to_nobody() -> None:
    looking, before = Looking(), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    saver = Saver(
        cast(Checkpoints, looking), cast(Artifacts, Nothing()), cast(Reporter, None), every_s=0.1, note=print,
        now=lambda: 0.0,
    )  # fmt: skip
    saver.start()
    assert looking.looked.wait(HANG_S)
    saver.finish()
    assert looking.nice[0] == NICE
    assert looking.nice[-1] == before

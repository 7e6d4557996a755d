"""The last commits: files that rest late are committed, and what is left behind says whose doing it is."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from agent.failures import CannotStart, MachineTrouble, told
from agent.saver import QUIET_S, Unsaved
from agent.snapshot import Changed
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
    found, reason = told(problem)
    assert found == error
    assert words in reason


def test_a_full_disk_is_named_whatever_was_written(tmp_path: Path) -> None:
    problem = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "code.tar.gz"))
    assert "code.tar.gz" in told(problem)[1]

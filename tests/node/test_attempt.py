"""The whole agent against the fakes: what it runs, what it says, how it ends."""

from __future__ import annotations

import errno
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent.attempt import WORK
from agent.commits import Folder
from agent.progress import ProgressFile
from agent.snapshot import Changed
from contract import tags
from contract.codec import decode
from contract.commits import Commit
from contract.keys import LAST_SET, JobPrefix
from contract.reports import NodeReport, Phase, Progress
from localaws.testing.waiting import HANG_S, until
from tests.builders import PLACE
from tests.node.fakes import refusal
from tests.node.ordering import once_it_trains
from tests.node.wheels import wheel
from tests.node.world import FAST, Site

FULL = OSError(errno.ENOSPC, "No space left on device")


def second_attempt(site: Site) -> Site:
    """Another machine."""
    site.imds.values |= {f"tags/instance/{tags.ATTEMPT}": "2", "instance-id": "i-0000000000000000f"}
    return Site(site.root / "second", site.imds, site.aws, site.job, attempt=2)


def test_a_node_trains_commits_and_reports(site: Site) -> None:
    site.offer(
        """
import json, os
for key in ("JOB_ID", "ATTEMPT", "MASTER_ADDR", "MASTER_PORT", "NUM_NODES", "NODE_RANK"):
    print(key, os.environ[key])
print("secret is here:", os.environ["TOKEN"] == "very secret", os.environ["COLOUR"])
print("agent's own:", [key for key in os.environ if key == "PYTHONPATH" or key.startswith("TRAINYARD_")])
open(os.environ["CHECKPOINT_DIR"] + "/model.pt", "w").write("weights")
open(os.environ["ARTIFACTS_DIR"] + "/model.txt", "w").write("result")
open(os.environ["PROGRESS_FILE"], "w").write(json.dumps({"step": 12, "world_size": 2, "metric": float("nan")}))
print("bye", end="")
""",
        environment={"COLOUR": "blue"},
        secrets={"TOKEN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:trainyard/yard/token"},
    )
    site.aws.secrets[site.job.secrets["TOKEN"]] = "very secret"
    ending = site.run()
    assert (ending.code, ending.error) == (0, "")
    report = site.report(urgent=True)
    assert report == site.report()
    assert report.phase is Phase.ENDED
    assert report.exit == ending
    assert report.progress is not None
    assert (report.progress.step, report.progress.metric) == (12, None)
    assert set(report.timeline) == {"booted", "prepared", "addressed", "started", "first_step", "ended"}
    commit = decode(Commit, site.aws.s3.objects[PLACE.bucket, report.checkpoint])
    assert (commit.step, commit.final, [file.path for file in commit.files]) == (12, True, ["model.pt"])
    artifacts = decode(Commit, site.aws.s3.objects[PLACE.bucket, report.artifacts])
    assert site.aws.s3.objects[PLACE.bucket, artifacts.files[0].key] == b"result"
    assert site.aws.logs.streams == ["job-1/1/0"]
    assert {"JOB_ID job-1", "MASTER_ADDR 10.0.0.5", "NUM_NODES 2", "secret is here: True blue", "agent's own: []"} <= {
        *site.lines
    }
    assert "bye" in site.lines
    assert not any("very secret" in line for line in site.lines)


def test_the_exit_code_and_the_last_lines_are_reported(site: Site) -> None:
    site.offer("import sys\nfor n in range(80): print('line', n)\nsys.exit(3)")
    ending = site.run()
    assert (ending.code, ending.error, ending.ordered) == (3, "TrainingFailed", False)
    assert ending.reason == "rank 0: the command exited with code 3"
    assert ending.tail == tuple(f"line {n}" for n in range(30, 80))


def test_a_signal_is_reported_as_128_and_its_number(site: Site) -> None:
    site.offer("import os\nos.kill(os.getpid(), 9)")
    ending = site.run()
    assert ending.code == 137
    assert "SIGKILL" in ending.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": ("no-such-program",)}, "neither on PATH nor a file"),
        ({"command": ("./train.py",)}, "is not executable; allowed: a file on which `chmod +x`"),
        (
            {"files": {"requirements.txt": "no_such_package @ file:///nowhere/x.whl\n"}},
            "requirements.txt cannot be installed",
        ),
        ({"files": {"../evil": "x"}}, "'../evil'"),
        (
            {"secrets": {"TOKEN": "arn:aws:secretsmanager:eu-central-1:1:secret:gone"}},
            "secret for TOKEN cannot be read",
        ),
    ],
    ids=["missing program", "not executable", "requirements", "unsafe archive", "secret"],
)
def test_what_cannot_start_is_the_jobs_own_failure(site: Site, changes: dict[str, object], words: str) -> None:
    site.offer("print('never')", **changes)
    ending = site.run()
    assert (ending.code, ending.error) == (1, "TrainingFailed")
    assert words in ending.reason
    assert "never" not in site.lines
    assert site.report(urgent=True).exit == ending


def test_a_missing_code_archive_is_told(site: Site) -> None:
    site.offer("")
    assert site.job.code is not None
    del site.aws.s3.objects[site.job.home_bucket, site.job.code.key]
    assert "code archive is gone" in site.run().reason


def test_a_disk_that_the_code_fills_ends_the_job_and_names_the_setting_that_helps(site: Site) -> None:
    site.offer("print('never')")
    site.aws.s3.fault = lambda call, _key: FULL if call == "download" else None
    ending = site.run()
    assert ending.error == "TrainingFailed"
    assert "ask for a larger volume_gb" in ending.reason
    assert "never" not in site.lines


def test_files_that_still_change_at_the_last_commit_end_the_job_and_do_not_repeat_the_training(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.saver.QUIET_S", 0.0)
    site.offer("import os\nopen(os.environ['ARTIFACTS_DIR'] + '/model', 'w').write('x')")

    def never_rests(_folder: Folder, *_given: object, **_: object) -> None:
        raise Changed("model changed")

    monkeypatch.setattr(Folder, "send", never_rests)
    ending = site.run()
    assert ending.error == "TrainingFailed"
    assert "model changed" in ending.reason


@pytest.mark.parametrize("document", [None, b"{}", b"not json"])
def test_a_job_that_cannot_be_read_is_a_lost_node(site: Site, document: bytes | None) -> None:
    if document is not None:
        site.aws.s3.objects[site.job.home_bucket, JobPrefix("job-1").description] = document
    ending = site.run()
    assert ending.error == "NodeLost"
    assert site.report(urgent=True).exit == ending


def test_an_error_is_told_at_once_and_not_after_the_last_commits(site: Site) -> None:
    site.offer(
        "import os, sys\nopen(os.environ['CHECKPOINT_DIR'] + '/model', 'w').write('x')\nprint('why', flush=True)\nsys.exit(3)"
    )
    told: list[NodeReport] = []

    def wait_for_the_report(call: str, key: str) -> None:
        if call == "put" and "commits/" in key and not told:
            until(lambda: site.sent(urgent=True))
            told.append(site.report(urgent=True))

    site.aws.s3.fault = wait_for_the_report
    ending = site.run()
    assert (told[0].phase, told[0].exit) == (Phase.SAVING, None)
    assert told[0].outcome == ending
    assert ending.tail == ("why",)
    last = site.report(urgent=True)
    assert last.failed_s > told[0].failed_s
    assert "failed" in last.timeline


def test_the_phases_are_told_with_how_long_they_have_lasted(site: Site) -> None:
    site.offer(
        "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)",
        timing=replace(FAST, report_every_s=0.05),
    )

    def let_go() -> None:
        until(lambda: site.report().phase is Phase.TRAINING and site.report().phase_s > 0.2)
        (site.root / WORK / "code" / "go").touch()

    with once_it_trains(site, let_go):
        site.run()
    phases = site.sent()
    assert phases[0].phase is Phase.RESTORING
    training = [report.phase_s for report in phases if report.phase is Phase.TRAINING]
    assert training == sorted(training)
    assert training[-1] > 0.2


def test_late_tags_and_a_late_master_address_are_waited_for(site: Site) -> None:
    site.offer("import os\nprint(os.environ['MASTER_ADDR'])")
    late = {key: site.imds.values.pop(key) for key in list(site.imds.values) if key.startswith("tags/")}
    master = late.pop(f"tags/instance/{tags.MASTER_ADDRESS}")

    def arrive() -> None:
        time.sleep(0.3)
        site.imds.values.update(late)
        until(lambda: site.sent() and site.report().phase is Phase.WAITING)
        site.imds.values[f"tags/instance/{tags.MASTER_ADDRESS}"] = master

    thread = threading.Thread(target=arrive)
    thread.start()
    assert site.run().code == 0
    thread.join()
    assert "10.0.0.5" in site.lines


def test_a_master_address_that_never_comes_is_a_lost_node(site: Site) -> None:
    site.offer("print('never')", timing=replace(FAST, meet_allowance_s=0.3))
    del site.imds.values[f"tags/instance/{tags.MASTER_ADDRESS}"]
    ending = site.run()
    assert ending.error == "NodeLost"
    assert "master address did not come" in ending.reason


@pytest.mark.parametrize("wrong_s", [-300.0, 300.0])
def test_a_nodes_clock_that_is_five_minutes_off_dates_no_report(site: Site, wrong_s: float) -> None:
    site.now = lambda: time.time() + wrong_s
    site.offer("print('fine')")
    before = time.time()
    assert site.run().code == 0
    assert abs(site.report().sent_at - time.time() - wrong_s) < 150
    for item in site.aws.table.written:
        assert before - 1.0 <= float(item["at"]["N"]) <= time.time()


def test_reports_that_fail_for_a_while_do_not_end_the_job(site: Site) -> None:
    site.offer("print('fine')")
    failures = iter(range(4))
    site.aws.table.fault = lambda call, _sort: (
        refusal("InternalServerError") if call == "put" and next(failures, None) is not None else None
    )
    assert site.run().code == 0
    assert next(failures, None) is None
    assert site.report(urgent=True).exit is not None


def test_a_node_writes_no_state_into_a_bucket(site: Site) -> None:
    site.offer("import os\nopen(os.environ['CHECKPOINT_DIR'] + '/a', 'w').write('x')")
    assert site.run().code == 0
    assert [key for key in site.aws.s3.sent("") if "/attempts/" in key] == []


def test_a_result_that_cannot_be_saved_is_no_success(site: Site) -> None:
    site.offer("import os\nopen(os.environ['ARTIFACTS_DIR'] + '/model', 'w').write('x')")
    site.aws.s3.fault = lambda call, key: refusal("AccessDenied") if call == "put" and "artifacts" in key else None
    ending = site.run()
    assert ending.error == "NodeLost"
    assert "not committed" in ending.reason


def test_a_checkpoint_is_of_the_moment_of_its_first_name_while_an_earlier_commit_takes_long(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.saver.Saver._run", lambda _saver: None)  # busy until the end
    read = ProgressFile.read

    def noted(file: ProgressFile) -> Progress | None:
        if found := read(file):
            (site.root / WORK / "code" / f"seen-{found.step}").touch()
        return found

    monkeypatch.setattr(ProgressFile, "read", noted)
    site.offer(
        """
import json, os, time
open(os.environ["CHECKPOINT_DIR"] + "/model.pt", "w").write("weights")
for step, checkpoint in ((1, 1), (2, 2), (3, 2)):
    print("step", step, "at", time.time())
    with open(os.environ["PROGRESS_FILE"] + ".new", "w") as file:
        file.write(json.dumps({"step": step, "checkpoint": checkpoint}))
    os.rename(file.name, os.environ["PROGRESS_FILE"])
    while not os.path.exists(f"seen-{step}"):
        time.sleep(0.01)
    time.sleep(0.05)
""",
        nodes=1,
        timing=replace(FAST, report_every_s=60.0),  # a report reads the file as well
    )
    assert site.run().code == 0
    _, second, third = (float(line.split()[-1]) for line in site.lines if line.startswith("step "))
    commit = decode(Commit, site.aws.s3.objects[PLACE.bucket, site.report().checkpoint])
    assert second - 0.04 <= commit.moment <= third, "the kernel's time of a file is that of its last tick"


def test_logs_that_cannot_be_sent_do_not_end_the_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.attempt.FLUSH_S", 0.4)
    site.offer("print('fine')")
    site.aws.logs.fault = lambda _call, _key: refusal("ServiceUnavailableException")
    assert site.run().code == 0
    assert "log lines did not arrive" in site.report().note


@pytest.mark.parametrize("wrong_s", [3 * 3600.0, -15 * 86_400.0])
def test_every_line_of_a_node_arrives_whatever_its_clock_says(site: Site, wrong_s: float) -> None:
    site.now = lambda: time.time() + wrong_s
    site.offer("for n in range(20): print('line', n)")
    site.run()
    assert [line for line in site.lines if line.startswith("line ")] == [f"line {n}" for n in range(20)]
    assert "did not arrive" not in site.report().note


def test_a_metric_that_is_text_is_said_in_the_log_and_hides_no_step(site: Site) -> None:
    site.offer("""import os; open(os.environ["PROGRESS_FILE"], "w").write('{"step": 20.0, "metric": "0.51"}')""")
    assert site.run().code == 0
    assert site.report().progress == Progress(step=20)
    wrong = "[trainyard] PROGRESS_FILE metric is '0.51'; allowed: a finite number."
    assert [line[: len(wrong)] for line in site.lines if "PROGRESS_FILE" in line] == [wrong]


def test_the_second_attempt_starts_from_the_checkpoint_of_the_first(site: Site) -> None:
    script = """
import json, os
file = os.environ["CHECKPOINT_DIR"] + "/sub dir/ünï+%20.pt"
print("found", open(file).read() if os.path.exists(file) else None)
os.makedirs(os.path.dirname(file), exist_ok=True)
open(file, "w").write("from attempt " + os.environ["ATTEMPT"])
open(os.environ["PROGRESS_FILE"], "w").write(json.dumps({"step": 5 * int(os.environ["ATTEMPT"])}))
"""
    site.offer(script, nodes=1)
    assert site.run().code == 0
    assert (site.report().restored_step, site.report().restored, site.report().closed_step) == (-1, "", 5)
    again = second_attempt(site)
    assert again.run().code == 0
    assert "found from attempt 1" in again.lines
    assert (again.report().restored_step, again.report().closed_step) == (5, 10)
    assert again.report().restored == f"{PLACE.bucket}/1/{LAST_SET}"


def test_the_second_attempt_gets_what_pip_installed_for_the_first(site: Site, tmp_path: Path) -> None:
    files = {"requirements.txt": f"{wheel(tmp_path, 'greeter', 'hello')}\n"}
    site.offer("import greeter\nprint(greeter.SAYS)", nodes=1, files=files)
    assert site.run().code == 0
    for thread in threading.enumerate():
        if thread.name == "environment":
            thread.join(HANG_S)
    (tmp_path / "greeter-1.0-py3-none-any.whl").unlink()
    again = second_attempt(site)
    assert again.run().code == 0
    assert "hello" in again.lines
    assert any("fetched the environment of an earlier attempt" in line for line in again.lines)


def test_a_restore_that_fails_half_way_commits_nothing(site: Site) -> None:
    site.offer("import os\nopen(os.environ['CHECKPOINT_DIR'] + '/a', 'w').write('x')", nodes=1)
    assert site.run().code == 0
    commits = site.aws.s3.sent("commits/")
    site.aws.s3.fault = lambda call, _key: refusal("SlowDown") if call == "read" and "rank-" in _key else None
    again = second_attempt(site)
    assert again.run().error == "NodeLost"
    assert site.aws.s3.sent("commits/") == commits


def test_the_power_off_timer_is_moved_behind_the_deadline(site: Site) -> None:
    arm = site.root / "opt/trainyard/arm-power-off"
    arm.parent.mkdir(parents=True)
    arm.write_text(f'#!/bin/sh\necho "$1" > {site.root}/armed\n')
    arm.chmod(0o755)
    site.offer("print('fine')")
    site.run()
    assert int((site.root / "armed").read_text()) == site.job.deadline + 300


@pytest.mark.parametrize("later", [7200, 0, -1800])
def test_the_hours_of_a_job_end_when_its_launch_says(site: Site, later: int) -> None:
    """job.json has the deadline of the admission: one that waited for capacity ends later, one in a Capacity Block may end before."""
    arm = site.root / "opt/trainyard/arm-power-off"
    arm.parent.mkdir(parents=True)
    arm.write_text(f'#!/bin/sh\necho "$1" > {site.root}/armed\n')
    arm.chmod(0o755)
    site.offer("print('fine')")
    site.imds.values[f"tags/instance/{tags.DEADLINE}"] = str(site.job.deadline + later)
    assert site.run().code == 0
    assert int((site.root / "armed").read_text()) == site.job.deadline + later + 300

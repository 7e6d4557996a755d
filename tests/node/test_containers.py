"""The whole agent with a job whose image is the job: what the container finds, how it ends, and what is left of it."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace

import pytest

from contract import containers
from contract.codec import decode
from contract.commits import Commit
from contract.orders import Order, OrderKind
from contract.sessions import Credentials
from localaws.testing.waiting import lives
from tests import builders
from tests.builders import PLACE
from tests.node.containers import Dock
from tests.node.ordering import once_it_trains
from tests.node.world import FAST, KEYS, Site

ORDER = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="spot", by=0, author="attendant")
SHORT = replace(FAST, stop_grace_s=0.5)


@pytest.fixture
def dock(site: Site, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Dock:
    return Dock(site, tmp_path_factory.mktemp("images"), monkeypatch)


def test_an_image_trains_commits_and_reports_as_code_does_without_one(dock: Dock) -> None:
    dock.offer(
        """
import json, os, sys
print("arguments", sys.argv[1:], os.environ["BAKED"], os.environ["COLOUR"])
print("agent's own:", [key for key in os.environ if key.startswith("TRAINYARD_") or key == "DOCKER_CONFIG"])
open(os.environ["CHECKPOINT_DIR"] + "/model.pt", "w").write("weights")
open(os.environ["ARTIFACTS_DIR"] + "/model.txt", "w").write("result")
open(os.environ["PROGRESS_FILE"], "w").write(json.dumps({"step": 12, "world_size": 2}))
""",
        arguments=["--epochs", "a b"],
        environment={"COLOUR": "two\\nlines"},
    )
    ending = dock.site.run()
    assert (ending.code, ending.error, ending.reason) == (0, "", "")
    report = dock.site.report()
    assert report.progress is not None
    assert report.progress.step == 12
    commit = decode(Commit, dock.site.aws.s3.objects[PLACE.bucket, report.checkpoint])
    assert (commit.step, [file.path for file in commit.files]) == (12, ["model.pt"])
    artifacts = decode(Commit, dock.site.aws.s3.objects[PLACE.bucket, report.artifacts])
    assert dock.site.aws.s3.objects[PLACE.bucket, artifacts.files[0].key] == b"result"
    assert "arguments ['--epochs', 'a b'] yes two\\nlines" in dock.site.lines
    assert "agent's own: []" in dock.site.lines
    assert dock.containers == []
    assert not (dock.site.root / "var/lib/trainyard/docker").exists()


def test_code_beside_an_image_is_the_working_folder_and_its_requirements_are_not_installed(dock: Dock) -> None:
    script = "import os, helper\nprint(helper.SAYS, os.path.exists('train.py'), os.environ['CHECKPOINT_DIR'])"
    files = {"helper.py": "SAYS = 'from the code'", "requirements.txt": "no_such_package @ file:///nowhere/x.whl\n"}
    dock.offer("", command=["python", "train.py"], code=builders.JOB.code)
    dock.site.offer(script, command=("python", "train.py"), files=files)
    assert dock.site.run().error == ""
    assert any(line.startswith("from the code True") for line in dock.site.lines)
    assert any("requirements.txt of the code is not installed" in line for line in dock.site.lines)


def test_a_command_runs_in_place_of_the_entry_point_and_arguments_follow_it(dock: Dock) -> None:
    dock.offer(
        "print('never')", command=["python", "-c", "import sys; print('ran', sys.argv[1:])"], arguments=["$HOME", ""]
    )
    assert dock.site.run().error == ""
    assert "ran ['$HOME', '']" in dock.site.lines
    assert "never" not in dock.site.lines


def test_an_image_without_an_entry_point_runs_its_own_command(dock: Dock) -> None:
    dock.offer("print('as the image says')", said={"Cmd": ["python", "/app/main.py"]})
    assert dock.site.run().error == ""
    assert "as the image says" in dock.site.lines


def test_values_of_many_lines_and_long_ones_arrive_as_they_are(dock: Dock) -> None:
    many, long = "-----BEGIN KEY-----\nabc\n\n  def\n", "é" * 40_000
    dock.offer(
        "import os, hashlib\nfor n in ('MANY', 'LONG', 'HASH'): print(n, hashlib.sha256(os.environ[n].encode()).hexdigest())",
        environment={"MANY": many, "LONG": long, "HASH": "# no comment"},
    )
    assert dock.site.run().error == ""
    for name, value in {"MANY": many, "LONG": long, "HASH": "# no comment"}.items():
        assert f"{name} {hashlib.sha256(value.encode()).hexdigest()}" in dock.site.lines


def test_the_exit_code_and_the_last_lines_of_a_container_are_reported(dock: Dock) -> None:
    dock.offer("import sys\nfor n in range(80): print('line', n)\nsys.exit(3)")
    ending = dock.site.run()
    assert (ending.code, ending.error, ending.ordered) == (3, "TrainingFailed", False)
    assert ending.reason == "rank 0: the command exited with code 3"
    assert ending.tail == tuple(f"line {n}" for n in range(30, 80))
    assert dock.containers == []


@pytest.mark.parametrize("code", [125, 126, 127])
def test_an_exit_code_that_docker_uses_too_is_the_programs_own_where_it_ran(dock: Dock, code: int) -> None:
    dock.offer(f"import sys\nprint('ran')\nsys.exit({code})")
    ending = dock.site.run()
    assert (ending.code, ending.error) == (code, "TrainingFailed")
    assert "ran" in dock.site.lines


def test_a_container_that_a_signal_ends_is_reported_with_128_and_its_number(dock: Dock) -> None:
    dock.offer("import os\nos.kill(os.getpid(), 9)")
    ending = dock.site.run()
    assert (ending.code, ending.error) == (137, "TrainingFailed")
    assert "SIGKILL" in ending.reason


def test_an_entry_point_that_the_image_lacks_is_the_jobs_own_failure(dock: Dock) -> None:
    dock.offer("", said={"Entrypoint": ["no-such-program"]})
    ending = dock.site.run()
    assert (ending.code, ending.error) == (1, "TrainingFailed")
    assert (
        "the image's command cannot be started: exec no-such-program failed: No such file or directory" in ending.reason
    )
    assert dock.containers == []


def test_docker_that_cannot_give_the_container_its_gpus_is_the_machines_failure(dock: Dock) -> None:
    """The machine's image lacks the toolkit, or its driver is broken: another machine may have both."""
    dock.offer("print('never')", gpus={"g5.xlarge": 1})
    dock.site.imds.values["instance-type"] = "g5.xlarge"
    ending = dock.site.run()
    assert ending.error == "NodeLost"
    assert "could not select device driver" in ending.reason
    assert "never" not in dock.site.lines


def test_a_machine_without_docker_says_what_it_needs(dock: Dock, monkeypatch: pytest.MonkeyPatch) -> None:
    dock.offer("print('never')")
    monkeypatch.setenv("PATH", str(dock.folder))
    ending = dock.site.run()
    assert ending.error == "TrainingFailed"
    assert "the machine's image has no docker" in ending.reason


# Orders

SAVES = """
import json, os, signal, sys, time
def leave(*_):
    open(os.environ["CHECKPOINT_DIR"] + "/last.pt", "w").write("saved late")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open(os.environ["PROGRESS_FILE"], "w").write(json.dumps({"step": 7}))
print("up", flush=True)
while True:
    time.sleep(0.05)
"""


def test_an_order_lets_the_container_save_and_commits_what_it_saved(dock: Dock) -> None:
    dock.offer(SAVES)
    with once_it_trains(dock.site, lambda: dock.site.order(ORDER)):
        ending = dock.site.run()
    assert (ending.error, ending.reason, ending.ordered) == ("Interrupted", "spot", True)
    report = dock.site.report(urgent=True)
    assert report.checkpoint_step == 7
    files = decode(Commit, dock.site.aws.s3.objects[PLACE.bucket, report.checkpoint]).files
    assert [file.path for file in files] == ["last.pt"]
    assert dock.containers == []


def test_an_order_to_stop_leaves_nothing_that_runs(dock: Dock) -> None:
    dock.offer("import os, time\nprint('pid', os.getpid(), flush=True)\nprint('up', flush=True)\ntime.sleep(600)")
    with once_it_trains(dock.site, lambda: dock.site.order(replace(ORDER, kind=OrderKind.STOP))):
        ending = dock.site.run()
    assert ending.ordered
    assert not any(map(lives, pids(dock, "pid")))
    assert dock.containers == []


# Hostile

IGNORES = "import os, signal, sys, time\nfor one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\n"


def test_a_container_that_ignores_sigterm_is_killed_after_its_grace(dock: Dock) -> None:
    dock.offer(IGNORES + "print('pid', os.getpid())\nprint('up', flush=True)\ntime.sleep(10_000)", timing=SHORT)
    with once_it_trains(dock.site, lambda: dock.site.order(ORDER)):
        ending = dock.site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    assert not any(map(lives, pids(dock, "pid")))


def test_processes_that_leave_their_group_end_with_the_container(dock: Dock) -> None:
    dock.offer(
        IGNORES
        + """
told, tell = os.pipe()
for number in range(5):
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(1, b"pid %d\\n" % os.getpid())  # print would write in pieces, between those of the others
        os.write(tell, b"x")
        time.sleep(600)
heard = 0
while heard < 5:
    heard += len(os.read(told, 5))
sys.exit(4)
"""
    )
    ending = dock.site.run()
    assert (ending.code, ending.error) == (4, "TrainingFailed")
    found = pids(dock, "pid")
    assert len(found) == 5
    assert not any(map(lives, found))


def test_a_container_that_fills_its_disk_ends_like_any_that_fails(dock: Dock) -> None:
    dock.offer(
        "import errno, os\nopen(os.environ['CHECKPOINT_DIR'] + '/half.pt', 'w').write('x')\nraise OSError(errno.ENOSPC, 'full')"
    )
    ending = dock.site.run()
    assert (ending.code, ending.error) == (1, "TrainingFailed")
    assert any("No space left" in line or "full" in line for line in ending.tail)


def test_what_a_container_prints_without_an_end_fills_no_memory_and_changes_nothing(dock: Dock) -> None:
    dock.offer(
        "import sys\nsys.stdout.write('x' * 3_000_000)\nprint('{% done %} \\x1b[2J trainyard: ended: success')\nsys.exit(9)"
    )
    ending = dock.site.run()
    assert (ending.code, ending.error) == (9, "TrainingFailed")
    assert max(map(len, ending.tail)) <= 1000


def test_a_link_or_a_pipe_in_the_place_of_the_progress_file_leads_nowhere(dock: Dock) -> None:
    secret = dock.folder / "secret.json"
    secret.write_text('{"step": 41, "world_size": 1}')
    dock.offer(
        f"import os, time\nos.symlink({str(secret)!r}, os.environ['PROGRESS_FILE'])\ntime.sleep(0.5)\n"
        "os.unlink(os.environ['PROGRESS_FILE'])\nos.mkfifo(os.environ['PROGRESS_FILE'])\ntime.sleep(0.5)"
    )
    assert dock.site.run().error == ""
    assert dock.site.report().progress is None


def test_the_containers_folders_are_open_to_whoever_the_image_runs_as(dock: Dock) -> None:
    before = os.umask(0o077)
    try:
        dock.offer(
            "import os\nfor n in ('CHECKPOINT_DIR', 'ARTIFACTS_DIR'): print(n, oct(os.stat(os.environ[n]).st_mode & 0o777))"
        )
        assert dock.site.run().error == ""
    finally:
        os.umask(before)
    assert {"CHECKPOINT_DIR 0o777", "ARTIFACTS_DIR 0o777"} <= {*dock.site.lines}


def test_the_job_roles_keys_are_shown_where_the_container_has_them(dock: Dock) -> None:
    role = Credentials(access_key="ASIAROLE", secret_key="hush", token="t", expires=time.time() + 3600)
    dock.offer(
        "import os, stat\nplace = os.environ['AWS_CONFIG_FILE']\nprint('place', open(place).read().splitlines()[-1])\n"
        "print('mode', oct(stat.S_IMODE(os.stat(place).st_mode)))",
        job_role="datasets",
    )
    dock.site.give_credentials(replace(KEYS, training=role))
    dock.site.gets_keys = False
    assert dock.site.run().error == ""
    assert f'place credential_process = /bin/cat "{containers.ROLE}/keys.json"' in dock.site.lines
    assert "mode 0o644" in dock.site.lines


def test_an_image_with_variables_that_lead_elsewhere_gets_the_keys_of_its_job_role_all_the_same(dock: Dock) -> None:
    role = Credentials(access_key="ASIAROLE", secret_key="hush", token="t", expires=time.time() + 3600)
    dock.offer(
        "import os\nprint('led', sorted(n for n in os.environ if n.startswith('AWS_') and 'ENDPOINT' not in n))",
        bakes="ENV AWS_PROFILE=theirs AWS_ACCESS_KEY_ID=AKIATHEIRS\n",
        job_role="datasets",
    )
    dock.site.give_credentials(replace(KEYS, training=role))
    dock.site.gets_keys = False
    assert dock.site.run().error == ""
    assert "led ['AWS_CONFIG_FILE']" in dock.site.lines


def test_without_a_job_role_the_images_own_variables_stay(dock: Dock) -> None:
    dock.offer("import os\nprint('led', os.environ['AWS_PROFILE'])", bakes="ENV AWS_PROFILE=theirs\n")
    assert dock.site.run().error == ""
    assert "led theirs" in dock.site.lines


@pytest.mark.parametrize("name", ["LD_PRELOAD", "DOCKER_HOST"])
def test_a_value_that_would_run_in_docker_itself_ends_the_job(dock: Dock, name: str) -> None:
    """Outside of the container and as root."""
    dock.offer("print('never')", environment={name: "two\nlines"})
    ending = dock.site.run()
    assert ending.error == "TrainingFailed"
    assert f"the value of {name} has more than one line" in ending.reason
    assert "never" not in dock.site.lines


def pids(dock: Dock, word: str) -> list[int]:
    return [int(line.split()[1]) for line in dock.site.lines if line.startswith(f"{word} ")]

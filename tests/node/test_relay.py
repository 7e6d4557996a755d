"""What goes between rank 0's mpirun and the other nodes in the place of ssh: commands there, exit codes back."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.failures import CannotStart, MachineTrouble, Ordered
from agent.launching import mpi, shared
from agent.launching import relay as relaying
from agent.launching.mpi_variables import COMMAND, LAUNCHER, PROCESS, REMOTE, SHARE
from agent.launching.relay import CommandRelay, Meeting, tell_end, wait_for_command
from agent.store import Store
from contract.cluster import Cluster
from contract.remote import MOST
from localaws.testing.waiting import HANG_S, lives, until
from tests.node.fakes import FakeS3, refusal

CLUSTER = Cluster(addresses=("10.0.0.4", "10.0.0.5", "10.0.0.6"), rank=0, port=29500)
BUCKET = "bytes"


def meeting(s3: FakeS3, attempt: int = 1) -> Meeting:
    return Meeting(store=Store(s3, BUCKET), job="job-1", attempt=attempt, nodes=3)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    mpi.lay_out(tmp_path / "launcher", CLUSTER, ())
    return tmp_path / "launcher"


@pytest.fixture
def relay(scripts: Path, s3: FakeS3) -> CommandRelay:
    return CommandRelay(meeting(s3), scripts, note=noted.append)


noted: list[str] = []


@pytest.fixture(autouse=True)
def quiet() -> None:
    noted.clear()


def ask(scripts: Path, *words: str) -> subprocess.Popen[str]:
    """As mpirun asks."""
    return subprocess.Popen([scripts / REMOTE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_here(s3: FakeS3, rank: int, attempt: int = 1) -> str:
    def over(_: float) -> None:
        raise Ordered

    return wait_for_command(meeting(s3, attempt), rank, most_s=HANG_S, pause=over, note=noted.append)


def settle(relay: CommandRelay, child: subprocess.Popen[str]) -> None:
    """Looks until the script has ended."""
    for _ in range(round(HANG_S * 20)):
        relay.exchange()
        try:
            child.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        return
    raise AssertionError("the script still waits")


def test_a_command_reaches_its_node_as_it_was_and_its_code_comes_back(
    scripts: Path, s3: FakeS3, relay: CommandRelay
) -> None:
    child = ask(scripts, "-x", "10.0.0.6", "PATH=/opt:$PATH ;", "prted", '"a b"')
    while not (scripts / "commands/2").exists():
        pass
    relay.exchange()
    assert wait_here(s3, 2) == 'PATH=/opt:$PATH ; prted "a b"'
    tell_end(meeting(s3), 2, 7, noted.append)
    settle(relay, child)
    assert child.returncode == 7
    assert noted == []


def test_the_first_nodes_own_command_runs_here(scripts: Path, s3: FakeS3) -> None:
    child = ask(scripts, "10.0.0.4", "echo", "$((20 + 3));", "exit 5")
    assert child.communicate()[0] == "23\n"
    assert child.returncode == 5
    assert s3.objects == {}


def test_a_host_that_is_no_node_is_refused(scripts: Path, relay: CommandRelay, s3: FakeS3) -> None:
    child = ask(scripts, "10.0.0.7", "true")
    assert "10.0.0.7 is no node of this attempt" in child.communicate()[0]
    assert child.returncode == 255
    relay.exchange()
    assert s3.objects == {}


@pytest.mark.parametrize("name", ["3", "0", "-1", "x", "2x", ".2"])
def test_a_file_that_stands_for_no_other_node_is_not_handed_on(
    scripts: Path, relay: CommandRelay, s3: FakeS3, name: str
) -> None:
    (scripts / "commands" / name).write_text("true")
    relay.exchange()
    assert s3.objects == {}


def test_a_command_that_is_too_long_is_named_and_not_handed_on(scripts: Path, relay: CommandRelay, s3: FakeS3) -> None:
    (scripts / "commands/1").write_text("x" * MOST)
    relay.exchange()
    relay.exchange()
    assert s3.objects == {}
    assert noted == ["the nodes' daemons of MPI: the command for rank 1 has more than 32,768 bytes"]


def test_a_command_of_another_attempt_is_not_read(scripts: Path, relay: CommandRelay, s3: FakeS3) -> None:
    (scripts / "commands/1").write_text("touch /tmp/of-attempt-1")
    relay.exchange()
    with pytest.raises(Ordered):
        wait_here(s3, 1, attempt=2)


@pytest.mark.parametrize(
    "document", [b"{}", b"[]", b"touch x", b'{"command": 7}', b'{"command": "' + b"x" * MOST + b'"}']
)
def test_a_command_that_cannot_be_read_runs_nothing(s3: FakeS3, document: bytes) -> None:
    s3.objects[BUCKET, meeting(s3).command(1)] = document
    with pytest.raises(CannotStart, match="cannot be read"):
        wait_here(s3, 1)


def test_a_command_that_never_comes_is_the_machines_trouble(s3: FakeS3) -> None:
    moments = iter(range(100))
    with pytest.raises(MachineTrouble, match="did not ask for this node within 5 s"):
        wait_for_command(
            meeting(s3), 1, most_s=5.0, pause=lambda _: None, note=noted.append, monotonic=lambda: float(next(moments))
        )


def test_s3_may_be_away_on_either_side(scripts: Path, s3: FakeS3, relay: CommandRelay) -> None:
    (scripts / "commands/1").write_text("true")
    s3.fault = lambda _call, _key: refusal("InternalError")
    relay.exchange()
    relay.exchange()
    assert len(noted) == 1
    s3.fault = lambda _call, _key: None
    relay.exchange()
    assert wait_here(s3, 1) == "true"


def test_an_end_that_cannot_be_told_is_noted_and_fails_nothing(s3: FakeS3) -> None:
    s3.fault = lambda _call, _key: refusal("InternalError")
    tell_end(meeting(s3), 1, 0, noted.append)
    assert noted[0].startswith("rank 0 was not told of the end: ")


@pytest.mark.parametrize("document", [b"{}", b"no", b'{"code": "0"}'])
def test_an_end_that_cannot_be_read_ends_nothing(
    scripts: Path, s3: FakeS3, relay: CommandRelay, document: bytes
) -> None:
    (scripts / "commands/1").write_text("true")
    relay.exchange()
    s3.objects[BUCKET, meeting(s3).end(1)] = document
    relay.exchange()
    assert list((scripts / "ends").iterdir()) == []


@pytest.mark.parametrize("folder", [False, True], ids=["the file is a link", "the folder is a link"])
def test_no_file_of_the_machine_is_read_through_a_link_that_code_of_a_container_makes(
    scripts: Path, relay: CommandRelay, s3: FakeS3, tmp_path: Path, folder: bool
) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/1").write_text("secret of the machine")
    if folder:
        (scripts / "commands").rmdir()
        (scripts / "commands").symlink_to(tmp_path / "host")
    else:
        (scripts / "commands/1").symlink_to(tmp_path / "host/1")
    relay.exchange()
    assert s3.objects == {}


@pytest.mark.parametrize("where", ["ends/1", "ends/.1", "ends"])
def test_no_file_of_the_machine_is_written_through_a_link_that_code_of_a_container_makes(
    scripts: Path, relay: CommandRelay, s3: FakeS3, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "ASK_S", 0.0)
    (tmp_path / "host").mkdir()
    (tmp_path / "host/1").write_text("of the machine")
    (scripts / "commands/1").write_text("true")
    relay.exchange()
    tell_end(meeting(s3), 1, 7, noted.append)
    if where == "ends":
        (scripts / "ends").rmdir()
        (scripts / "ends").symlink_to(tmp_path / "host")
    else:
        (scripts / where).symlink_to(tmp_path / "host/1")
    relay.exchange()
    assert [(one.name, one.read_text()) for one in (tmp_path / "host").iterdir()] == [("1", "of the machine")]
    assert where == "ends" or (scripts / "ends/1").read_text() == "7\n"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "text"])
def test_what_is_no_file_with_a_code_holds_nobody_up(scripts: Path, tmp_path: Path, kind: str) -> None:
    place = scripts / "codes/1"
    (tmp_path / "zero").write_text("0")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(tmp_path / "zero")
    elif kind == "folder":
        place.mkdir()
    else:
        place.write_text("well")
    found = shared.read(scripts, "codes/1", 8)
    assert (found.content if found else None) == (b"well" if kind == "text" else None)
    assert shared.list_numbers(scripts, "codes") == [1]


WORDS = [
    "a b",
    "it's",
    'say "x"',
    "$HOME",
    "*",
    "--map-by",
    "--bind-to",
    ":",
    "",
    "line\nbreak\n",
    "-np",
    "a\\b",
    "`id`",
]


def test_a_process_gets_its_words_as_the_request_has_them(tmp_path: Path) -> None:
    mpi.lay_out(
        tmp_path / "launcher", CLUSTER, [sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *WORDS]
    )
    code, said = run_process(tmp_path / "launcher")
    assert (code, said.strip()) == (0, ascii(WORDS))


def test_what_another_run_of_the_agent_left_is_gone(scripts: Path) -> None:
    for name in ("commands/1", "ends/1", "codes/0"):
        (scripts / name).write_text("0")
    mpi.lay_out(scripts, CLUSTER, ())
    assert [one for name in ("commands", "ends", "codes") for one in (scripts / name).iterdir()] == []


# the shell around a process


def run_process(scripts: Path, *words: str, **variables: str) -> tuple[int, str]:
    """As mpirun runs it, below the shell of the share, whose output is the node's log. `words` are the command, if it has none yet."""
    if words:
        (scripts / COMMAND).write_text(shlex.join(words))
    environment = {"PATH": os.environ["PATH"], LAUNCHER: str(scripts), **variables}
    done = subprocess.run(
        [scripts / SHARE, "/bin/sh", "-c", 'exec setsid -w "$0" >/dev/null 2>&1', scripts / PROCESS],
        env=environment, stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "names",
    [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ],
)
def test_a_process_knows_its_place_whosever_mpirun_it_is(scripts: Path, names: tuple[str, str, str]) -> None:
    say = 'echo "$RANK of $WORLD_SIZE, here $LOCAL_RANK"; exit 4'
    code, said = run_process(scripts, "/bin/sh", "-c", say, **dict(zip(names, "583", strict=True)))
    assert (code, said) == (4, "5 of 8, here 3\n"), (
        "its output goes to the node's log although a daemon has closed its own"
    )
    assert (scripts / "codes/5").read_text() == "4\n"


def test_a_program_that_is_not_there_is_the_processes_own_failure(scripts: Path) -> None:
    code, said = run_process(scripts, "no-such-program", OMPI_COMM_WORLD_RANK="0")
    assert code == 127
    assert "no-such-program" in said
    assert (scripts / "codes/0").read_text() == "127\n"


def test_a_process_that_is_killed_leaves_no_code(scripts: Path) -> None:
    run_process(scripts, "/bin/sh", "-c", "kill -9 $PPID; sleep 1", OMPI_COMM_WORLD_RANK="0")
    assert list((scripts / "codes").glob("[0-9]*")) == []


@pytest.mark.parametrize("code", [0, 3])
def test_what_a_process_leaves_behind_ends_with_it(scripts: Path, code: int) -> None:
    done, said = run_process(scripts, "/bin/sh", "-c", f"sleep 300 & echo $!; exit {code}")
    assert done == code
    until(lambda: not lives(int(said)))  # the kernel ends it when it has the time


def test_what_a_process_leaves_behind_may_finish_after_a_good_end(scripts: Path, tmp_path: Path) -> None:
    run_process(scripts, "/bin/sh", "-c", f"(sleep 0.2; echo whole >{tmp_path}/late) & exit 0")
    assert (tmp_path / "late").read_text() == "whole\n"


def test_a_process_whose_group_is_others_too_ends_none_of_them(scripts: Path) -> None:
    (scripts / COMMAND).write_text("true")
    other = subprocess.Popen(["sleep", "300"], process_group=0)
    try:
        environment = {"PATH": os.environ["PATH"], LAUNCHER: str(scripts)}
        (scripts / "shell").write_text("0")
        subprocess.run([scripts / PROCESS], env=environment, process_group=other.pid, timeout=HANG_S, check=True)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_share_without_its_program_says_which(scripts: Path) -> None:
    done = subprocess.run(
        [scripts / SHARE, "mpirun"], env={"PATH": "/nowhere", LAUNCHER: str(scripts)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (mpi.ABSENT, b"trainyard: there is no mpirun here\n")


def test_documents_are_json_with_one_field(scripts: Path, relay: CommandRelay, s3: FakeS3) -> None:
    (scripts / "commands/1").write_text("true")
    relay.exchange()
    tell_end(meeting(s3), 1, 3, noted.append)
    assert [json.loads(one) for one in s3.objects.values()] == [{"command": "true"}, {"code": 3}]


def test_two_looks_at_once_hand_on_one_command(scripts: Path, s3: FakeS3, relay: CommandRelay) -> None:
    (scripts / "commands/1").write_text("true")
    threads = [threading.Thread(target=relay.exchange) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(s3.objects) == [(BUCKET, meeting(s3).command(1))]

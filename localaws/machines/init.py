"""Process 1 of a node: runs the user data, does systemd's part for timers and services, and ends everything at a power-off.

It runs alone (`python -I -S init.py ...`). It is the one process of a node that is not killed from outside: as the child
subreaper it is the ancestor of every process of its node, whatever those do to their sessions. Standard input is the
power cable: `power-off` shuts down, `cut` and the end of file kill. Standard output has a JSON object for each event. Standard error is
the serial console, which is no file of the machine's.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import resource
import selectors
import shlex
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
OWN_MOUNTS = "run/own-mounts"
"""Exists where the node's programs may mount (localaws/machines/mounting.py): where they are root and have mounts of their own."""
DANGEROUS = re.compile(r"(?<![\w./-])(?:/usr)?/s?bin/(systemctl|poweroff|shutdown|halt|reboot)\b")
"""Commands whose full paths would act on the computer that the rehearsal runs on."""
POWER = {"poweroff", "halt"}
SOFT_FILES = 1024
SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|min|h|)")
SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "min": 60, "h": 3600, "": 1}


def separate(disk: Path, place: Path) -> None:
    """Gives this process mounts of its own, in which `disk` is at `place`, as on every other node, and nothing shows what else lies
    beside `disk`. They are gone with the node's last process. Raises OSError where the computer does not allow it."""
    kernel = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *given: object) -> None:
        if getattr(kernel, name)(*given):
            number = ctypes.get_errno()
            raise OSError(number, f"{os.strerror(number)} ({name})")

    user, group = os.getuid(), os.getgid()
    call("unshare", CLONE_NEWNS | (CLONE_NEWUSER if user else 0))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", os.fsencode(disk), os.fsencode(place), None, MS_REC | MS_BIND, None)
    call("mount", b"none", os.fsencode(disk.parent), b"tmpfs", 0, b"size=64k,mode=555")
    if not user:
        (place / OWN_MOUNTS).touch()


class Refusal(Exception):
    """systemctl's error message before it exits with 1."""


class Unit:
    """A unit file, read again at each use, so `daemon-reload` has nothing to do."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise Refusal(f"Unit {path.name} could not be found.")
        self.values: dict[str, list[str]] = {}
        for line in path.read_text().splitlines():
            name, equals, value = line.strip().partition("=")
            if equals and not line.lstrip().startswith(("#", ";")):
                self.values.setdefault(name.strip(), []).append(value.strip())

    def first(self, name: str) -> str:
        return self.values.get(name, [""])[0]


def calendar(text: str) -> float:
    """Returns the epoch seconds of an absolute `[weekday] YYYY-MM-DD HH:MM:SS UTC`; raises Refusal for anything else."""
    match = re.fullmatch(r"(?:[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? UTC", text)
    if not match:
        raise Refusal(
            f"Failed to parse calendar specification, ignoring: {text} (only absolute times in UTC work here)"
        )
    return datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc).timestamp()


def span(text: str) -> float:
    """Returns the seconds of a time span such as `45min` or `1h 30min`."""
    parts = SPAN.findall(text)
    if not parts:
        raise Refusal(f"Failed to parse time span: {text}")
    return sum(float(number) * SECONDS[unit] for number, unit in parts)


def descendants(root: int) -> set[int]:
    """Lists every process below `root`, without zombies."""
    parents: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                state, parent = Path(entry.path, "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
    found, grown = {root}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return found - {root}


PEER = struct.Struct("3i")
"""Process, user and group of whoever connected."""
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that the rehearsal handles, such as a key press in the terminal."""
LOOK_S = 0.2
"""How often a shutdown checks whether all has ended: a check reads all of /proc, and the service that powers off waits for a minute."""


class Init:
    """Runs the node's main loop."""

    def __init__(
        self,
        root: Path,
        grace: float,
        name: str,
        standins: Path,
        *,
        skew: float = 0.0,
        full: bool = False,
        timerless: bool = False,
    ) -> None:
        self.root, self.grace, self.standins, self.skew, self.full = root, grace, standins, skew, full
        self.timerless = timerless
        self.units = root / "etc/systemd/system"
        self.timers: dict[str, float] = {}
        self.user_data = 0
        self.waiting: dict[int, list[socket.socket]] = {}
        self.selector = selectors.DefaultSelector()
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind("\0" + name)
        self.server.listen(64)
        self.wake, writer = os.pipe()
        for end in (self.wake, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def tell(self, **what: object) -> None:
        with suppress(OSError):  # the rehearsal may have ended
            os.write(self.pipe, (json.dumps(what) + "\n").encode())

    def run(self, script: Path) -> None:
        self.pipe, cable, self.console = os.dup(1), os.dup(0), os.dup(2)
        nothing = os.open(os.devnull, os.O_RDONLY)
        # A node with a full disk still writes to its console.
        self.spoken, speak = os.pipe()
        os.set_blocking(self.spoken, False)
        for source, target in ((nothing, 0), (speak, 1), (speak, 2)):
            os.dup2(source, target)
        sys.stderr = os.fdopen(self.console, "w", buffering=1, closefd=False)
        self.selector.register(self.spoken, selectors.EVENT_READ, "console")
        self.selector.register(cable, selectors.EVENT_READ, "cable")
        self.selector.register(self.server, selectors.EVENT_READ, "systemctl")
        self.selector.register(self.wake, selectors.EVENT_READ, "child")
        self.user_data = self.spawn(["/bin/bash", str(script)])
        while True:
            soonest = min(self.timers.values(), default=time.time() + 60)
            for key, _ in self.selector.select(max(0.0, min(60.0, soonest - time.time()))):
                if key.data == "cable":
                    order = os.read(cable, 64)
                    self.power_off(self.grace if order.startswith(b"power-off") else 0.0)
                elif key.data == "child":
                    with suppress(OSError):
                        os.read(self.wake, 4096)
                elif key.data == "console":
                    self.listen()
                else:
                    self.serve()
            self.reap()
            self.fire()

    def listen(self) -> None:
        """Writes down new output until there is no more."""
        with suppress(BlockingIOError):
            while said := os.read(self.spoken, 65536):
                os.write(self.console, said)

    def spawn(self, command: list[str]) -> int:
        process = os.fork()
        if process:
            return process
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            # Children inherit ignored signals, and would then ignore a shutdown's SIGTERM.
            for number in (signal.SIGCHLD, signal.SIGPIPE, *IGNORED):
                signal.signal(number, signal.SIG_DFL)
            os.closerange(3, 256)
            # Starts it as systemd starts cloud-init, whatever this computer allows.
            files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(SOFT_FILES, files), files))
            if self.full:
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            os.execvpe(command[0], command, os.environ)
        finally:
            os._exit(127)

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if not process:
                    return
                code = os.waitstatus_to_exitcode(status)
                if process == self.user_data:
                    self.tell(event="user-data-ended", code=code)
                for client in self.waiting.pop(process, []):
                    self.answer(client, code and 1, "Job failed. See the console." if code else "")

    def fire(self) -> None:
        for name in [name for name, at in self.timers.items() if at <= time.time()]:
            del self.timers[name]
            if self.timerless:
                continue
            try:
                unit = Unit(self.units / name)
                self.start_service(unit.first("Unit") or name.replace(".timer", ".service"))
            except Refusal as refusal:
                os.write(self.console, f"{name}: {refusal}\n".encode())

    def serve(self) -> None:
        client, _ = self.server.accept()
        given = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        if PEER.unpack(given)[1] not in (
            0,
            os.getuid(),
        ):  # the socket has no file, so that every user of the computer reaches it
            return client.close()
        client.settimeout(5)
        try:
            arguments = json.loads(client.makefile("rb").readline())
            process = self.systemctl([one for one in arguments if not one.startswith("-")], arguments)
        except Refusal as refusal:
            return self.answer(client, 1, str(refusal))
        except (OSError, ValueError) as problem:
            return self.answer(client, 1, f"Failed to read the request: {problem}")
        if process and "--no-block" not in arguments:
            self.waiting.setdefault(process, []).append(client)
        else:
            self.answer(client, 0, "")
        if process is None:
            self.power_off(max(0.0, self.grace * (1 - arguments.count("--force") / 2)))
        return None

    def answer(self, client: socket.socket, code: int, text: str) -> None:
        with suppress(OSError):
            client.sendall(json.dumps([code, text]).encode())
        client.close()

    def systemctl(self, words: list[str], arguments: list[str]) -> int | None:
        """Carries the command out; returns the process to wait for or 0, None for a power-off."""
        verb, names = (words or [""])[0], words[1:]
        if verb in POWER:
            return None
        if verb in {"daemon-reload", "is-system-running", "reset-failed"}:
            return 0
        process = 0
        for name in names:
            if verb in {"enable", "disable"}:
                Unit(self.units / name)
            if verb in {"start", "restart"} or (verb == "enable" and "--now" in arguments):
                process = self.start(name)
            elif verb == "stop" or (verb == "disable" and "--now" in arguments):
                self.timers.pop(name, None)
            elif verb == "is-active" and name not in self.timers:
                raise Refusal("inactive")
            elif verb not in {"enable", "disable", "is-active"}:
                raise Refusal(f"systemctl {shlex.join(arguments)}: the rehearsal's systemctl does not know this")
        if not names:
            raise Refusal(f"systemctl {shlex.join(arguments)}: the rehearsal's systemctl does not know this")
        return process

    def start(self, name: str) -> int:
        if not name.endswith(".timer"):
            return self.start_service(name if "." in name else f"{name}.service")
        unit, now = Unit(self.units / name), time.time() + self.skew
        Unit(self.units / (unit.first("Unit") or name.replace(".timer", ".service")))
        times = [calendar(text) for text in unit.values.get("OnCalendar", [])]
        times += [now + span(text) for key in ("OnActiveSec", "OnBootSec") for text in unit.values.get(key, [])]
        if not times:
            raise Refusal(f"{name}: Timer unit lacks value setting. Refusing.")
        self.timers.pop(name, None)
        if ahead := [at for at in times if at > now]:  # an absolute time in the past never comes
            self.timers[name] = min(ahead) - self.skew
        return 0

    def start_service(self, name: str) -> int:
        unit = Unit(self.units / name)
        commands = [
            DANGEROUS.sub(lambda match: shlex.quote(str(self.standins / match[1])), text)
            for text in unit.values["ExecStart"]
        ]
        script = " && ".join(f"{{ {text[1:]} || true; }}" if text.startswith("-") else text for text in commands)
        return self.spawn(["/bin/bash", "-c", script])

    def power_off(self, grace: float) -> None:
        """Sends SIGTERM to everything, SIGKILL after `grace` seconds; then the machine is off."""
        self.tell(event="power-off")
        until = time.monotonic() + grace
        if grace:
            self.signal_all(signal.SIGTERM)
        while grace and time.monotonic() < until and descendants(os.getpid()):
            self.reap()
            self.listen()
            time.sleep(LOOK_S)
        while descendants(os.getpid()):
            self.signal_all(signal.SIGKILL)
            self.reap()
            self.listen()
            time.sleep(0.01)
        self.listen()
        self.tell(event="off")
        os._exit(0)

    def signal_all(self, number: signal.Signals) -> None:
        for process in descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(process, number)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--disk", type=Path, required=True, help="folder with all that the machine's root has")
    parser.add_argument(
        "--place", type=Path, help="where the machine sees its disk, and no other's; without it, where the folder is"
    )
    parser.add_argument("--grace", type=float, required=True, help="seconds from SIGTERM to SIGKILL at a power-off")
    parser.add_argument("--socket", required=True, help="abstract Unix socket that systemctl finds")
    parser.add_argument("--standins", type=Path, required=True)
    parser.add_argument("--skew", type=float, default=0.0, help="seconds by which the node's clock is ahead")
    parser.add_argument("--full", action="store_true", help="its processes can write no byte into any file")
    parser.add_argument("--timerless", action="store_true", help="no timer of its systemd ever fires")
    parser.add_argument("script", help="path of the user data on the disk")
    given = parser.parse_args()
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if given.place:
        separate(given.disk, given.place)
    root = given.place or given.disk
    os.chdir(root / "root")
    faults = {"skew": given.skew, "full": given.full, "timerless": given.timerless}
    init = Init(root, given.grace, given.socket, given.standins, **faults)
    init.run(root / given.script)


if __name__ == "__main__":
    main()

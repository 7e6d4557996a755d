"""A docker of the test's own, the real one, with a registry on loopback: for a root user of a computer that has Debian's docker.io."""

from __future__ import annotations

import io
import os
import re
import resource
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from localaws.ports import Port

NEEDS = ("docker", "dockerd", "containerd", "runc", "docker-init", "docker-registry")
PROGRAMS = ("sh", "cat", "env", "id", "ls", "ln", "mkdir", "pwd", "seq", "sha256sum", "sleep", "touch")
"""Of this computer, which the images have."""
USERS = b"root:x:0:0::/root:/bin/sh\nworker:x:1234:1234::/tmp:/bin/sh\n"
FIRST_PORT = 5155
START_S = 30.0


def lacks() -> str:
    """Says what the computer lacks; empty where it has everything."""
    if os.geteuid() != 0:
        return "docker's daemon needs root"
    missing = [one for one in NEEDS if shutil.which(one) is None]
    return f"this computer has no {', '.join(missing)}" if missing else ""


def allowed(limits: Sequence[str]) -> tuple[str, ...]:
    """Those of docker's `--ulimit` values that this computer lets root set: one without CAP_SYS_RESOURCE raises no hard limit."""
    kinds = {"memlock": resource.RLIMIT_MEMLOCK, "nofile": resource.RLIMIT_NOFILE, "stack": resource.RLIMIT_STACK}
    found = []
    for limit in limits:
        name, _, value = limit.partition("=")
        most, wanted = resource.getrlimit(kinds[name])[1], int(value.partition(":")[2])
        if most == resource.RLIM_INFINITY or 0 <= wanted <= most:
            found.append(limit)
    return tuple(found)


class RealDocker:
    """Started on demand; images are made of this computer's own programs."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="dock"))  # short: sockets lie in it
        self._port = Port(FIRST_PORT)
        self.registry = f"127.0.0.1:{self._port.number}"
        self.host = f"unix://{self._home}/socket"
        settings = self._home / "registry.yml"
        settings.write_text(
            f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: '{self._home}/registry'}}}}\n"
            f"http: {{addr: '{self.registry}'}}\n"
        )
        self._log = (self._home / "log").open("ab")
        self._registry = subprocess.Popen(
            ["docker-registry", "serve", str(settings)], stdout=self._log, stderr=self._log
        )
        words = ["containerd", "--address", f"{self._home}/containerd", "--root", f"{self._home}/images"]
        words += ["--state", f"{self._home}/state", "--config", os.devnull, "--log-level", "error"]
        self._containerd = subprocess.Popen(words, stdout=self._log, stderr=self._log)
        self._daemon = self._started()
        self._root = self._home / "root.tar"
        self._root.write_bytes(_root())

    def _started(self) -> subprocess.Popen[bytes]:
        folder = self._home
        words = ["dockerd", "--host", self.host, "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
        words += ["--containerd", f"{folder}/containerd", "--pidfile", f"{folder}/pid"]
        words += [
            "--storage-driver",
            "vfs",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--shutdown-timeout",
            "2",
        ]
        daemon = subprocess.Popen(words, stdout=self._log, stderr=self._log)
        until = time.monotonic() + START_S
        while self._run("version").returncode:
            if daemon.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.1)
        return daemon

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["docker", "--host", self.host, *words], capture_output=True, text=True, check=False)

    def says(self, *words: str) -> str:
        """What docker answers. Raises RuntimeError with its words."""
        done = self._run(*words)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def push(self, name: str, lines: Sequence[str], platform: str = "") -> str:
        """Makes an image whose Dockerfile would have these lines, and leaves it in the registry alone. Returns its digest."""
        address = f"{self.registry}/{name}"
        changes = [word for line in lines for word in ("--change", line)]
        more = ["--platform", platform] if platform else []
        self.says("import", *changes, *more, str(self._root), address)
        said = self.says("push", address)
        self.says("image", "rm", "--force", address)
        found = re.search(r"digest: (sha256:[0-9a-f]{64})", said)
        assert found, said
        return found[1]

    def kill(self) -> None:
        """Ends the daemon as a crash does: its containers run on."""
        self._daemon.kill()
        self._daemon.wait()

    def stop(self) -> None:
        """Ends the daemon as an update of its package does: it ends its containers before."""
        self._daemon.terminate()
        self._daemon.wait()

    def start_anew(self) -> None:
        self._daemon = self._started()

    def close(self) -> None:
        with suppress(RuntimeError):
            self.says("rm", "--force", *self.says("ps", "--all", "--quiet").split())
        for one in (self._daemon, self._containerd, self._registry):
            one.send_signal(signal.SIGTERM)
            one.wait()
        for one in self._left():  # what a daemon that did not come back has left
            os.kill(one, signal.SIGKILL)
        for line in reversed(Path("/proc/mounts").read_text("utf-8").splitlines()):
            if (place := line.split()[1]).startswith(f"{self._home}/"):
                subprocess.run(["umount", "--lazy", place], check=False)
        self._log.close()
        self._port.release()
        shutil.rmtree(self._home)

    def _left(self) -> list[int]:
        """Processes that were started with a path of this docker's."""
        found = []
        for one in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{self._home}/".encode() in (one / "cmdline").read_bytes():
                    found.append(int(one.name))
        return found


def _root() -> bytes:
    """A root file system of PROGRAMS and the libraries that they load, as a tar."""
    files = {f"bin/{one}": Path(str(shutil.which(one))) for one in PROGRAMS}
    for program in [*files.values()]:
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
        for one in re.findall(r"(/\S+) \(0x", listed):
            files[one.lstrip("/")] = Path(one)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", dereference=True) as tar:
        folders = {str(parent) for name in (*files, "etc/x", "tmp/x", "root/x") for parent in Path(name).parents}
        for name in sorted(folders - {"."}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name, file in files.items():
            tar.add(file.resolve(), name)
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(USERS)
        tar.addfile(entry, io.BytesIO(USERS))
    return made.getvalue()

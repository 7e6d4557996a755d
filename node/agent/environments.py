"""Keeps what a job's requirements installed, for the job's later attempts: to fetch it takes a fraction of the time of pip.

It belongs to one job, because the code of a job can change what lies on its nodes: another job never runs it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import site
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent import machine
from agent.engine.engine import Engine
from agent.engine.places import Memory
from agent.keys import KeysExpired
from agent.snapshot import FileState, look
from agent.store import Missing, Store
from contract.codec import Garbled, decode, encode
from contract.commits import KeptEnvironment
from contract.keys import BytesPrefix

NICE = 15
"""Of the thread that keeps: below commits, which cost a recovery more."""


def name_of(code: str, requirements: bytes) -> str:
    """The same for machines on which the same files would be installed. `code` is the archive's key: requirements may name files in it.

    What the image has counts as well, because pip leaves out what is there.
    """
    beneath = sorted(entry.name for each in site.getsitepackages() if Path(each).is_dir() for entry in os.scandir(each))
    facts = [sys.version, platform.platform(), platform.machine(), code, *beneath]
    return hashlib.sha256("\n".join(facts).encode() + b"\n" + requirements).hexdigest()


class Installed:
    """What the requirements install into the environment of a node, as S3 has it or will have it."""

    def __init__(
        self,
        store: Store,
        job: str,
        name: str,
        folder: Path,
        *,
        note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._folder, self._name, self._note, self._now = store, folder, name, note, now
        self._prefix = BytesPrefix(job)
        self._before = self._look()

    def restore(self) -> bool:
        """Fetches what an earlier attempt kept; whether it did. What is there after a failure is of no use. Raises KeysExpired alone."""
        began = self._now()
        try:
            kept = decode(KeptEnvironment, self._store.get(self._prefix.environment(self._name)))
            Engine(self._store).fetch(kept.files, self._folder)
        except Missing:
            return False
        except KeysExpired:
            raise
        except Exception as problem:  # pip can do it
            self._note(f"the environment of an earlier attempt is installed anew: {_words(problem)}")
            return False
        took = f"{self._now() - began:.1f} s"
        self._note(
            f"fetched the environment of an earlier attempt in {took}; its installation took {kept.took_s:.1f} s"
        )
        return True

    def keep(self, took_s: float) -> None:
        """Sends what was installed since, in a thread of its own that nobody waits for: without it the next attempt installs again."""
        after = self._look()
        if after is None or self._before is None:
            self._note("the environment is not kept for later attempts: it has links or names that cannot be sent")
            return
        installed = [seen for path, seen in after.items() if path not in self._before]
        threading.Thread(target=self._send, args=(installed, took_s), name="environment", daemon=True).start()

    def _send(self, installed: list[FileState], took_s: float) -> None:
        machine.give_way(NICE)
        try:
            sent = Engine(self._store).send(
                self._folder,
                installed,
                Memory(),
                pack_key=lambda digest: self._prefix.environment_file(self._name, digest),
                file_key=lambda digest, _: self._prefix.environment_file(self._name, digest),
                cores=1.0,
            )
            document = encode(KeptEnvironment(took_s=took_s, files=tuple(sent.values())))
            self._store.put(self._prefix.environment(self._name), document)
        except Exception as problem:
            self._note(f"the environment is not kept for later attempts: {_words(problem)}")
        else:
            self._note(f"kept the environment for later attempts: {len(sent)} files")

    def _look(self) -> dict[str, FileState] | None:
        """None where it has something that cannot be sent, besides the links that every environment begins with."""
        left_out = list[str]()
        found = look(self._folder, left_out.append)
        return found if all(_is_of_venv(text) for text in left_out) else None


def _is_of_venv(told: str) -> bool:
    """Whether that is one of the links that `venv` makes on every machine: to Python and to `lib`."""
    path = told.partition(" is left out")[0].strip("'")
    return path == "lib64" or path.startswith("bin/python")


def _words(problem: Exception) -> str:
    return "its document cannot be read" if isinstance(problem, Garbled) else str(problem)

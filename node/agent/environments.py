"""Keeps what a job's requirements installed, for the job's later attempts: to fetch it takes a fraction of the time of pip.

It belongs to one job, because the code of a job can change what lies on its nodes: another job never runs it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import site
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from agent import code, machine
from agent.credentials import CredentialsExpired
from agent.editable import find_outside
from agent.engine.engine import Engine
from agent.engine.places import Memory
from agent.engine.wanted import Unusable
from agent.snapshot import UNFINISHED, Changed, FileState, list_files
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


def describe_hardware(proc: Path = Path("/proc")) -> str:
    """Names the processor and the GPUs, for which a compiler may have built: `-march=native`, and PyTorch's extensions by default."""
    named = [proc / "cpuinfo", *sorted(proc.glob("driver/nvidia/gpus/*/information"))]
    lines = [line for file in named if file.is_file() for line in file.read_text("utf-8", "replace").splitlines()]
    fields = (line.partition(":") for line in lines)
    found = dict.fromkeys(
        value.strip() for name, _, value in fields if name.strip() in ("model name", "CPU part", "Model")
    )
    return ", ".join(found) or platform.machine()


class _Listing(NamedTuple):
    """What lies in the environment and in the code's folder."""

    files: dict[str, FileState]
    """By their path in the work folder."""
    unfit: set[str]
    """What cannot be sent, in words."""


class Installed:
    """What the requirements install into the environment of a node and build beside its code, as S3 has it or will have it."""

    def __init__(
        self,
        store: Store,
        job: str,
        name: str,
        folder: Path,
        *,
        note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        hardware: Callable[[], str] = describe_hardware,
    ) -> None:
        """`folder` is the environment's, new and in the work folder, where the code is unpacked already."""
        self._store, self._name, self._note, self._now = store, name, note, now
        self._work, self._parts = folder.parent, (folder.name, code.FOLDER)
        self._prefix, self._hardware = BytesPrefix(job), hardware
        self._before = self._list()

    def restore(self) -> bool:
        """Fetches what an earlier attempt kept; whether it did. Raises CredentialsExpired alone."""
        began = self._now()
        try:
            kept = decode(KeptEnvironment, self._store.get(self._prefix.environment(self._name)))
            if kept.built_on and kept.built_on != (here := self._hardware()):
                raise Unusable(f"it was built for {kept.built_on}, and this node has {here}")
            self._fetch(kept)
        except Missing:
            return False
        except CredentialsExpired:
            raise
        except Exception as problem:  # pip can do it
            self._note(f"the environment of an earlier attempt is installed again: {_words(problem)}")
            return False
        took = f"{self._now() - began:.1f} s"
        self._note(
            f"fetched the environment of an earlier attempt in {took}; its installation took {kept.took_s:.1f} s"
        )
        return True

    def keep(self, took_s: float) -> None:
        """Sends what was installed since, in a thread of its own, so that the next attempt need not install it again."""
        try:
            after = self._list()
            installed = [seen for path, seen in after.files.items() if self._before.files.get(path) != seen]
            why = self._why_unfit(after, installed)
        except (OSError, Changed) as problem:
            why = str(problem)
        if why:
            self._note(f"the environment is not kept: later attempts install it again ({took_s:.1f} s). {why}")
            return
        threading.Thread(target=self._send, args=(installed, took_s), name="environment", daemon=True).start()

    def _fetch(self, kept: KeptEnvironment) -> None:
        """Nothing is in its place before all of it has come. Raises Unusable where the document names a place elsewhere."""
        staging = self._work / "staging" / "environment"
        try:
            Engine(self._store).fetch(kept.files, staging)
            self._move(staging, [file.path for file in kept.files])
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _move(self, staging: Path, paths: Iterable[str]) -> None:
        work = Path(os.path.realpath(self._work))
        folders = {str(Path(path).parent) for path in paths}
        for folder in sorted(folders):
            if folder.partition("/")[0] not in self._parts or os.path.realpath(work / folder) != str(work / folder):
                raise Unusable(f"its path {folder!r} leaves the environment and the code")
        for folder in folders:
            (work / folder).mkdir(parents=True, exist_ok=True)
        for path in paths:
            (staging / path).replace(work / path)

    def _send(self, installed: list[FileState], took_s: float) -> None:
        machine.give_way(NICE)
        try:
            sent = Engine(self._store).send(
                self._work,
                installed,
                Memory(),
                pack_key=lambda digest: self._prefix.environment_file(self._name, digest),
                file_key=lambda digest, _: self._prefix.environment_file(self._name, digest),
                cores=1.0,
            )
            beside = sum(path.startswith(f"{code.FOLDER}/") for path in sent)
            built_on = self._hardware() if beside else ""
            document = encode(KeptEnvironment(took_s=took_s, files=tuple(sent.values()), built_on=built_on))
            self._store.put(self._prefix.environment(self._name), document)
        except Exception as problem:
            self._note(f"the environment is not kept for later attempts: {_words(problem)}")
        else:
            more = f", {beside} of them built beside the code, for {built_on}" if beside else ""
            self._note(f"kept the environment for later attempts: {len(sent)} files{more}")

    def _list(self) -> _Listing:
        found = _Listing({}, set())
        for part in self._parts:
            seen = list_files(self._work / part, lambda text, part=part: found.unfit.add(f"in {part}, {text}"))
            for path, state in seen.items():
                found.files[f"{part}/{path}"] = state._replace(path=f"{part}/{path}")
            for parent, folders, files in os.walk(self._work / part):
                unfinished = (name for name in (*folders, *files) if name.endswith(UNFINISHED))
                found.unfit.update(f"{parent}/{name} ends with {UNFINISHED}" for name in unfinished)
        return found

    def _why_unfit(self, after: _Listing, installed: Iterable[FileState]) -> str:
        """Why a later attempt that fetched this would not have what pip left here; empty where it would."""
        if unfit := sorted(after.unfit - self._before.unfit):
            return f"Not everything in it can be sent: {unfit[0]}"
        if removed := sorted(self._before.files.keys() - after.files.keys()):
            return f"pip removed {removed[0]}"
        inside = [self._work / part for part in self._parts]
        if outside := find_outside(self._work, (seen.path for seen in installed), inside):
            return f"It uses {outside}, which is neither in the environment nor in the code"
        return ""


def _words(problem: Exception) -> str:
    return "its document cannot be read" if isinstance(problem, Garbled) else str(problem)

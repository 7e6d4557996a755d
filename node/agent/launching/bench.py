"""A node's workbench: starts its JupyterLab, says in the node's log how it is opened, and in its folder when it ends."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from agent.failures import CannotStart
from agent.training import LINGER_S, RunningTraining, WrappedTraining
from contract.jobs import Job
from contract.mounts import JobMount
from contract.workbench import (
    BROKEN,
    FOLDER,
    JUPYTERLAB,
    NO_PYTHON,
    NOT_INSTALLED,
    NOT_THERE,
    NOTICE,
    NOTICE_S,
    TOKEN,
    TOKEN_BYTES,
    TOO_OLD,
    address,
    tunnel,
)  # fmt: skip

SCRIPT, CONFIG = "bench.sh", "bench_config.py"
CONFIG_VARIABLE = "TRAINYARD_BENCH_CONFIG"
ANSWERS_S = 2.0
"""For so long the agent waits for the folder, which may be a file system that does not answer."""
PROBLEMS = {
    NOT_THERE: "{image} has no JupyterLab, and the request does not allow to install it; allowed: install: true, or an image that has "
    "jupyterlab",
    NOT_INSTALLED: f"{JUPYTERLAB} could not be installed into {{image}}; the lines above in the node's log say why; allowed: an image that "
    "has jupyterlab, or one whose pip reaches an index",
    NO_PYTHON: "{image} has no Python: neither python nor python3 is on its PATH; allowed: an image that has Python 3",
    BROKEN: "{image} has a JupyterLab that cannot be imported; the lines above in the node's log say why; allowed: an image whose "
    "jupyterlab can be imported",
    TOO_OLD: "{image} has a JupyterLab older than version 4; allowed: an image with JupyterLab 4, or one without any and install: true",
}


def lay_out(folder: Path) -> None:
    """Puts the scripts there. They may be there from another run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (SCRIPT, CONFIG):
        (folder / name).write_bytes(Path(__file__).with_name(name).read_bytes())
        (folder / name).chmod(0o755)


def find_folder(places: Sequence[tuple[Path, JobMount]], work: Path) -> Path:
    """Returns where the machine has what the bench shows: the mount of the request, or the checkpoint folder."""
    return next((place for place, one in places if one.at == FOLDER), work / "checkpoints")


def build_words(job: Job, scripts: str, folder: str) -> list[str]:
    """Returns what runs. `scripts` and `folder` are as the training sees them."""
    assert job.workbench is not None
    package = JUPYTERLAB if job.workbench.install else ""
    return ["/bin/sh", f"{scripts}/{SCRIPT}", folder, package, *job.command]


def add_variables(environment: Mapping[str, str], scripts: str, token: str) -> dict[str, str]:
    """Returns the environment of JupyterLab. The job's own may name another token, which would be in job.json."""
    return {**environment, TOKEN: token, CONFIG_VARIABLE: f"{scripts}/{CONFIG}"}


def make_token() -> str:
    """Returns a new token, which nothing but the node's log and JupyterLab gets."""
    return secrets.token_hex(TOKEN_BYTES)


def word_way_in(region: str, instance: str, token: str) -> tuple[str, str]:
    """Says how the owner opens it, in lines to paste."""
    return f"trainyard: open the tunnel with: {tunnel(region, instance)}", f"trainyard: then open {address(token)}"


class BenchServer(WrappedTraining):
    """A JupyterLab that runs, as a RunningTraining."""

    def __init__(
        self, inner: RunningTraining, job: Job, folder: Path, *, note: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """`folder` is what it shows, where the machine has it."""
        super().__init__(inner)
        self._job, self._note, self._now = job, note, now
        self._notice, self._noticed = folder / NOTICE, False
        self._begin_notice("").join(ANSWERS_S)  # that of the bench whose work this one goes on with

    def wait(self, timeout_s: float) -> int | None:
        """The exit code. Raises CannotStart where the image has no JupyterLab, and may not or cannot get it."""
        code = self._inner.wait(timeout_s)
        self.why, self.ended_s = self._inner.why, self._inner.ended_s
        if code is None and not self._noticed and self._now() >= self._job.stop_at - NOTICE_S:
            why = f"The hours or the money of this bench are over at {_show(self._job.stop_at)}."
            self._begin_notice(f"{why}\n{self._word_rest(f'go on with resume_from: {self._job.id}')}\n").join(ANSWERS_S)
        if code in PROBLEMS:
            raise CannotStart(f"workbench: {PROBLEMS[code].format(image=self._image)}")
        return code

    def stop(self, first: signal.Signals, grace_s: float) -> int:
        why = f"This bench was ordered to end at {_show(self._now())}. The job's log says why."
        after = f"where {self._job.id} does not go on by itself, as on spot, go on with resume_from: {self._job.id}"
        notice = self._begin_notice(f"{why}\n{self._word_rest(after)}\n")
        try:
            return self._inner.stop(first, grace_s)
        finally:
            notice.join(ANSWERS_S)  # it is committed with the rest

    def end(self, linger_s: float = LINGER_S) -> int:
        return self._inner.end(linger_s)

    @property
    def _image(self) -> str:
        return f"the image {self._job.container.source}" if self._job.container else "the machine's image"

    def _word_rest(self, after: str) -> str:
        """Says what stays of the work, and what a person does `after`."""
        if self._job.benches_on_a_mount:
            return "What lies on the mount stays."
        return f"Its files are committed before; {after}"

    def _begin_notice(self, text: str) -> threading.Thread:
        """Has a file say this, which a person who works there sees appear; removes it where the text is empty. A thread does it, which no
        order to stop waits for: the folder may not answer."""
        self._noticed = bool(text)
        thread = threading.Thread(target=self._write_notice, args=(text,), name="notice", daemon=True)
        thread.start()
        return thread

    def _write_notice(self, text: str) -> None:
        try:
            _replace(self._notice, text)
        except OSError as problem:
            if text:
                self._note(f"workbench: its folder does not get the file {NOTICE}: {problem.strerror}")


def _replace(file: Path, text: str) -> None:
    """Writes a new file in the place of whatever is there; none where the text is empty. The code of a job may put a link or a pipe there
    at any moment, so what came meanwhile is not opened."""
    with suppress(FileNotFoundError):
        file.unlink()
    if not text:
        return
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    with os.fdopen(opened, "w", encoding="utf-8") as stream:
        stream.write(text)


def _show(at: float) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC"

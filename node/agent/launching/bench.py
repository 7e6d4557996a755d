"""A node's workbench: starts its JupyterLab, says in the node's log how it is opened, and in its folder when it ends."""

from __future__ import annotations

import secrets
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from agent.failures import CannotStart
from agent.training import LINGER_S, RunningTraining
from contract.jobs import Job
from contract.mounts import JobMount
from contract.workbench import (
    FOLDER,
    JUPYTERLAB,
    NOT_INSTALLED,
    NOT_THERE,
    NOTICE,
    NOTICE_S,
    TOKEN,
    TOKEN_BYTES,
    address,
    tunnel,
)  # fmt: skip

SCRIPT, CONFIG = "bench.sh", "bench_config.py"
CONFIG_VARIABLE = "TRAINYARD_BENCH_CONFIG"


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


class BenchServer:
    """A JupyterLab that runs, as a RunningTraining."""

    def __init__(self, inner: RunningTraining, job: Job, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        """`folder` is what it shows, where the machine has it."""
        self._inner, self._job, self._now = inner, job, now
        self.why, self.ended_s = "", 0.0
        self._notice, self._noticed = folder / NOTICE, False
        _remove(self._notice)  # of the bench whose work this one goes on with

    @property
    def pid(self) -> int:
        return self._inner.pid

    @property
    def heard_at(self) -> float:
        return self._inner.heard_at

    @property
    def tail(self) -> deque[str]:
        return self._inner.tail

    def wait(self, timeout_s: float) -> int | None:
        """The exit code. Raises CannotStart where the image has no JupyterLab, and may not or cannot get it."""
        code = self._inner.wait(timeout_s)
        self.why, self.ended_s = self._inner.why, self._inner.ended_s
        if code is None and not self._noticed and self._now() >= self._job.stop_at - NOTICE_S:
            self._write_notice(f"The hours or the money of this bench are over at {_show(self._job.stop_at)}.")
        if code == NOT_THERE:
            raise CannotStart(
                f"workbench: {self._image} has no JupyterLab, and the request does not allow to install it; allowed: install: true, or an "
                "image that has jupyterlab"
            )
        if code == NOT_INSTALLED:
            raise CannotStart(
                f"workbench: {JUPYTERLAB} could not be installed into {self._image}; the lines above are pip's; allowed: an image that "
                "has jupyterlab, or one whose pip reaches an index"
            )
        return code

    def stop(self, first: signal.Signals, grace_s: float) -> int:
        self._write_notice(f"This bench was ordered to end at {_show(self._now())}. The job's log says why.")
        return self._inner.stop(first, grace_s)

    def end(self, linger_s: float = LINGER_S) -> int:
        return self._inner.end(linger_s)

    @property
    def _image(self) -> str:
        return f"the image {self._job.container.source}" if self._job.container else "the machine's image"

    def _write_notice(self, text: str) -> None:
        """A person who works there sees the file appear; the next bench removes it."""
        self._noticed = True
        kept = "What lies on the mount stays." if self._job.benches_on_a_mount else (
            f"Its files are committed before; go on with resume_from: {self._job.id}"
        )  # fmt: skip
        with suppress(OSError):
            _remove(self._notice)  # the code of a job may have put a link there
            self._notice.write_text(f"{text}\n{kept}\n", "utf-8")


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


def _show(at: float) -> str:
    return f"{datetime.fromtimestamp(at, timezone.utc):%Y-%m-%d %H:%M} UTC"

"""The credentials of the job's `job_role`, which only the training gets, in a file that AWS's SDKs read again by themselves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from agent.failures import MachineTrouble
from contract import training
from contract.sessions import LASTS_S, Credentials, SessionCredentials

LOOK_S = 60.0
"""How often the agent looks for new credentials while those that it has are due: the attendant looks every minute too."""
DUE_S = LASTS_S / 2
"""Keys that are valid for longer need no look: the attendant brings new ones at half their time."""
FIRST_S = 5.0
"""How often it looks for the first credentials, for which the training waits."""


class RoleCredentials:
    """A folder with AWS's config file, which names a `credential_process`, and with the credentials that this process prints.

    SDKs run it again shortly before the credentials expire, so a training never notices the change. Only its owner can read the folder.
    """

    def __init__(
        self,
        folder: Path,
        role: str,
        region: str,
        *,
        shown: str = "",
        read: Callable[[], SessionCredentials | None],
        note: Callable[[str], None],
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """`now` is AWS's time. `shown` is where a container has the folder, whose files its user may read; empty for a training outside of
        containers. Raises what `read` raises in `wait` alone; later looks note it."""
        self._folder, self._role, self._region = folder, role, region
        self._read, self._note, self._now, self._monotonic = read, note, now, monotonic
        self._until, self._told = 0.0, ""
        self._shown, self._open = shown or str(folder), bool(shown)
        self._closed = threading.Event()

    @property
    def variables(self) -> dict[str, str]:
        """Of the training's environment."""
        return {training.CONFIG_FILE: f"{self._shown}/config"}

    @staticmethod
    def without_others(environment: Mapping[str, str]) -> dict[str, str]:
        """The environment without what leads SDKs to other credentials."""
        return {name: value for name, value in environment.items() if name not in training.OTHER_CREDENTIALS}

    def wait(self, most_s: float, pause: Callable[[float], None]) -> None:
        """Waits for the first credentials. Raises MachineTrouble when `most_s` are over, because no cause is known: where the role cannot
        be assumed, the attendant ends the attempt before that."""
        until = self._monotonic() + most_s
        while not self._read_newest():
            if self._monotonic() >= until:
                raise MachineTrouble(
                    f"no credentials of the job_role {self._role} came within {most_s:.0f} s. {self._told}".strip()
                )
            pause(FIRST_S)

    def begin(self, most_s: float, pause: Callable[[float], None]) -> dict[str, str]:
        """Waits for the first credentials, and looks for newer ones from then on. Returns the variables that lead the training to them."""
        self.wait(most_s, pause)
        self.start()
        return self.variables

    def start(self) -> None:
        """Looks for newer credentials from now on."""
        threading.Thread(target=self._run, name="role", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            self.renew()

    def renew(self) -> None:
        """Looks for newer credentials if those that the training has are due."""
        if self._until - self._now() < DUE_S:
            self._read_newest()

    def _read_newest(self) -> bool:
        """Gives the training the newest credentials. Returns whether it has any."""
        try:
            found = self._read()
        except Exception as problem:  # DynamoDB may be away for a while; the next look is a minute ahead
            self._tell(f"the agent cannot read the credentials of the job_role {self._role}: {problem}")
            return bool(self._until)
        if found is not None and found.training is not None and found.training.expires > self._until:
            self._write(found.training)
            self._told = ""
        elif found is not None and found.refusal:
            left = (
                f"the training's credentials are valid until {_utc(self._until)}"
                if self._until
                else "the training waits for them"
            )
            self._tell(f"the job_role {self._role} cannot be assumed: {left}. STS says: {found.refusal}")
        return bool(self._until)

    def _tell(self, what: str) -> None:
        """Notes it, once in a row."""
        if what != self._told:
            self._told = what
            self._note(what)

    def _write(self, credentials: Credentials) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._open:
            self._folder.chmod(0o755)
        _replace(
            self._folder / "keys.json",
            self._open,
            json.dumps(
                {
                    "Version": 1,
                    "AccessKeyId": credentials.access_key,
                    "SecretAccessKey": credentials.secret_key,
                    "SessionToken": credentials.token,
                    "Expiration": _utc(credentials.expires),
                }
            ),
        )
        _replace(
            self._folder / "config",
            self._open,
            f'[default]\nregion = {self._region}\ncredential_process = /bin/cat "{self._shown}/keys.json"\n',
        )
        self._until = credentials.expires


def _replace(file: Path, for_all: bool, text: str) -> None:
    """Writes the file, so that whoever reads it meanwhile has the old one or the new one, and only its owner either, unless `for_all`."""
    new = file.with_suffix(".new")
    with suppress(FileNotFoundError):
        new.unlink()
    new.touch(mode=0o600)
    new.write_text(text, "utf-8")
    if for_all:
        new.chmod(0o644)
    new.replace(file)


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

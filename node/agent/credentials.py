"""The credentials of the node's job, which are read from the table again before they expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from contract.aws_errors import code_of
from contract.sessions import SessionCredentials

T = TypeVar("T")
EARLY_S = 15 * 60.0
"""Keys are read again once they are valid for less than this; the attendant renews them when half an hour is left."""
AGAIN_S = 5.0
"""The shortest time between two looks into the table, however many calls need credentials."""
REFUSED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
"""What AWS answers to a call with expired credentials."""
UNNAMED, DOUBTED_S = "400", 60.0
"""S3 names no error where it refuses a HEAD. Credentials that are about to expire count as expired then."""


class CredentialsExpired(OSError):
    """The job's credentials have expired, and there are no new ones yet: what needs them has to wait. The call itself may be right."""


def retry_while_expired(do: Callable[[], T], *, pause: Callable[[float], None], note: Callable[[str], None]) -> T:
    """Calls `do` until the job's credentials are valid, and returns its result. Raises what `do` and `pause` raise."""
    while True:
        try:
            return do()
        except CredentialsExpired as problem:
            note(str(problem))
            pause(AGAIN_S)


class JobCredentials:
    """The job's credentials, which are renewed from the table. Any thread may use them. `now` is AWS's clock: the node's may be wrong."""

    def __init__(
        self,
        first: SessionCredentials,
        read: Callable[[], SessionCredentials],
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._current, self._read, self._now, self._monotonic = first, read, now, monotonic
        self._reading, self._read_at, self._trouble = threading.Lock(), float("-inf"), ""
        self._refused, self._signed = "", threading.local()
        self._are_expired = False
        self.tell: Callable[[str], None] = lambda _: None
        """Receives the reason when the credentials have expired, and an empty text once there are new ones."""

    def current(self) -> SessionCredentials:
        """Returns valid credentials. Raises CredentialsExpired."""
        if self._left_s() < EARLY_S and self._reading.acquire(blocking=self._left_s() <= 0):
            try:
                self._renew()
            finally:
                self._reading.release()
        credentials, left_s = self._current, self._left_s()
        if (left_s <= 0) is not self._are_expired:
            self._are_expired = left_s <= 0
            self.tell(self._words() if self._are_expired else "")
        if left_s <= 0:
            raise CredentialsExpired(self._words())
        self._signed.by = credentials.access_key
        return credentials

    def heard(self, code: str) -> bool:
        """Whether this answer to a call says that its credentials have expired; these are never used again, whatever the clock says."""
        credentials = self._current
        if getattr(self._signed, "by", credentials.access_key) != credentials.access_key:
            return code in REFUSED  # others read new ones while this call was on its way
        if code in REFUSED or (code == UNNAMED and self._left_s() < DOUBTED_S):
            self._refused, self._current = credentials.access_key, replace(credentials, expires=0.0)
            return True
        return False

    def _left_s(self) -> float:
        return self._current.expires - self._now()

    def _renew(self) -> None:
        if self._monotonic() - self._read_at < AGAIN_S:
            return
        try:
            found = self._read()
        except Exception as problem:  # the table may be away as well; the next look is seconds ahead
            self._trouble = str(problem)
        else:
            self._trouble = ""
            if found.access_key != self._refused and found.expires > self._current.expires:
                self._current = found
        self._read_at = self._monotonic()

    def _words(self) -> str:
        why = self._trouble or "the attendant has not given new ones yet"
        return f"the credentials of the job have expired: {why}. Whatever needs them waits, and the training continues"


def wrap_for_botocore(credentials: JobCredentials) -> Any:
    """Returns the credentials as botocore asks for them, before every call."""
    from botocore.credentials import Credentials, ReadOnlyCredentials

    class OfJob(Credentials):
        def get_frozen_credentials(self) -> ReadOnlyCredentials:
            valid = credentials.current()
            return ReadOnlyCredentials(valid.access_key, valid.secret_key, valid.token)

    return OfJob("", "", "", method="trainyard")


def watch(client: Any, credentials: JobCredentials) -> None:
    """Makes the client raise CredentialsExpired where AWS answers that the credentials have expired."""

    from botocore.exceptions import ClientError

    def after(parsed: Any, **_: Any) -> None:
        code = code_of(ClientError(parsed, ""))
        if code and credentials.heard(code):
            raise CredentialsExpired(f"AWS says that the credentials of the job have expired ({code})")

    client.meta.events.register("after-call", after)

"""The keys of the node's job: read from the table again before they expire, and said to be expired for as long as nobody renews them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from contract.aws_errors import code_of
from contract.sessions import SessionKeys

T = TypeVar("T")
EARLY_S = 15 * 60.0
"""Keys are read again once they are valid for less than this; the attendant renews them when half an hour is left."""
AGAIN_S = 5.0
"""The shortest time between two looks into the table, however many calls need keys."""
REFUSED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired")
"""What AWS answers to a call with expired keys."""
UNNAMED, DOUBTED_S = "400", 60.0
"""S3 names no error where it refuses a HEAD: with keys that are about to expire, these have."""


class KeysExpired(OSError):
    """The job's keys have expired, and there are no new ones yet: what needs them has to wait. It says nothing of what was asked for."""


def with_keys(do: Callable[[], T], *, pause: Callable[[float], None], note: Callable[[str], None]) -> T:
    """Does it, and again for as long as the job's keys are expired. Raises what `pause` raises."""
    while True:
        try:
            return do()
        except KeysExpired as problem:
            note(str(problem))
            pause(AGAIN_S)


class JobKeys:
    """Safe to use from any thread. By AWS's clock: the node's own may be wrong."""

    def __init__(
        self,
        first: SessionKeys,
        read: Callable[[], SessionKeys],
        *,
        now: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._read, self._now, self._monotonic = first, read, now, monotonic
        self._reading, self._read_at, self._trouble = threading.Lock(), float("-inf"), ""
        self._refused, self._signed = "", threading.local()
        self._are_expired = False
        self.tell: Callable[[str], None] = lambda _: None
        """Hears that the keys have expired, and an empty text once there are new ones."""

    def current(self) -> SessionKeys:
        """Keys that are valid. Raises KeysExpired."""
        if self._left_s() < EARLY_S and self._reading.acquire(blocking=self._left_s() <= 0):
            try:
                self._look()
            finally:
                self._reading.release()
        keys, left_s = self._keys, self._left_s()
        if (left_s <= 0) is not self._are_expired:
            self._are_expired = left_s <= 0
            self.tell(self._words() if self._are_expired else "")
        if left_s <= 0:
            raise KeysExpired(self._words())
        self._signed.by = keys.access_key
        return keys

    def heard(self, code: str) -> bool:
        """Whether this answer to a call says that its keys have expired. Such keys are not used again, whatever the clock says."""
        keys = self._keys
        if getattr(self._signed, "by", keys.access_key) != keys.access_key:
            return code in REFUSED  # others read new ones while this call was on its way
        if code in REFUSED or (code == UNNAMED and self._left_s() < DOUBTED_S):
            self._refused, self._keys = keys.access_key, replace(keys, expires=0.0)
            return True
        return False

    def _left_s(self) -> float:
        return self._keys.expires - self._now()

    def _look(self) -> None:
        if self._monotonic() - self._read_at < AGAIN_S:
            return
        try:
            found = self._read()
        except Exception as problem:  # the table may be away as well; the next look is seconds ahead
            self._trouble = str(problem)
        else:
            self._trouble = ""
            if found.access_key != self._refused and found.expires > self._keys.expires:
                self._keys = found
        self._read_at = self._monotonic()

    def _words(self) -> str:
        why = self._trouble or "the attendant has given no new ones yet"
        return f"the keys of the job have expired: {why}. What needs them waits, and the training goes on"


def credentials(keys: JobKeys) -> Any:
    """The keys as botocore asks for them, before every request."""
    from botocore.credentials import Credentials, ReadOnlyCredentials

    class OfJob(Credentials):
        def get_frozen_credentials(self) -> ReadOnlyCredentials:
            valid = keys.current()
            return ReadOnlyCredentials(valid.access_key, valid.secret_key, valid.token)

    return OfJob("", "", "", method="trainyard")


def watch(client: Any, keys: JobKeys) -> None:
    """Makes the client raise KeysExpired where AWS answers that the keys have expired."""

    from botocore.exceptions import ClientError

    def after(parsed: Any, **_: Any) -> None:
        code = code_of(ClientError(parsed, ""))
        if code and keys.heard(code):
            raise KeysExpired(f"AWS says that the keys of the job have expired ({code})")

    client.meta.events.register("after-call", after)

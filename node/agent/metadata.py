"""A client of the instance metadata service, version 2, with only the standard library."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException

from contract import tags

ENDPOINT = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
TOKEN_LIFE_S = 21600
TRIES, AGAIN_S = 5, 1.0


class Metadata:
    """One machine's metadata. Every call raises OSError while the service does not answer."""

    def __init__(self, endpoint: str, *, timeout_s: float = 3.0) -> None:
        self._endpoint, self._timeout_s = endpoint.rstrip("/"), timeout_s
        self._token = ""
        # A proxy of the environment must never see metadata requests.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @classmethod
    def of(cls, variables: Mapping[str, str] = os.environ) -> Metadata:
        return cls(variables.get(ENDPOINT) or "http://169.254.169.254")

    def get(self, path: str) -> str | None:
        """The text at `/latest/meta-data/<path>`; None where there is nothing (yet), such as a tag or a notice."""
        for _ in range(2):
            self._token = self._token or self._new_token()
            try:
                return self._call("GET", f"meta-data/{path}", {"X-aws-ec2-metadata-token": self._token})
            except urllib.error.HTTPError as answer:
                if answer.code == 404:
                    return None
                if answer.code != 401:
                    raise
                self._token = ""  # expired: one new one
        raise OSError("the metadata service rejects its own tokens")

    def patient(self, path: str, pause: Callable[[float], None]) -> str:
        """The text at the path, empty if there is nothing. Asks again if the service does not answer, as one that is throttled does not.
        Raises OSError after the last of `TRIES`, and what `pause` raises."""
        for left in reversed(range(TRIES)):
            try:
                return self.get(path) or ""
            except OSError:
                if not left:
                    raise
            pause(AGAIN_S)
        raise AssertionError("unreachable")

    def tag(self, key: str) -> str | None:
        return self.get(f"tags/instance/{key}")

    def master_address(self) -> str | None:
        """Where rank 0 listens; None until the launcher has set the tag."""
        return self.tag(tags.MASTER_ADDRESS)

    def spot_notice(self) -> str | None:
        """The interruption notice as JSON with `action` and `time`; None while there is none."""
        return self.get("spot/instance-action")

    def rebalance_recommendation(self) -> str | None:
        """The recommendation as JSON with `noticeTime`: EC2 expects to take this spot node back. None while there is none."""
        return self.get("events/recommendations/rebalance")

    def _new_token(self) -> str:
        return self._call("PUT", "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_LIFE_S)})

    def _call(self, method: str, path: str, headers: dict[str, str]) -> str:
        request = urllib.request.Request(f"{self._endpoint}/latest/{path}", method=method, headers=headers)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                text: str = answer.read().decode()
        except (HTTPException, ValueError) as problem:  # cut off, or no HTTP, or no text
            raise OSError(f"the metadata service's answer cannot be read: {problem!r}") from problem
        return text

"""Reads the facts of a page one by one: what cannot be read is said on the page, and keeps nothing else from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.s3 import Bucket, ObjectTooLarge
from aws.table import HeldUp
from contract.aws_errors import code_of
from contract.codec import Garbled, decode
from contract.execution_facts import read_report

logger = Logger(service="page_writer")
MOST_DOCUMENT = 8 * 1024**2
"""Bytes of a document that is read whole, at most: a job's report has about one of a megabyte after 500 attempts."""

T = TypeVar("T")


@dataclass(slots=True)
class FactReader:
    """Reads documents, and keeps what could not be read, in words for a person."""

    unread: list[str] = field(default_factory=list)
    is_away: bool = False
    """Whether AWS did not answer, so that another try may read more."""

    def attempt(self, what: str, read: Callable[[], T], default: T) -> T:
        """Returns what `read` returns; `default` where it cannot. `what` names it for a person."""
        try:
            return read()
        except ClientError as problem:
            self._miss(what, f"AWS answered {code_of(problem)}", is_away=True)
        except (BotoCoreError, HeldUp) as problem:
            self._miss(what, f"AWS did not answer ({type(problem).__name__})", is_away=True)
        except (Garbled, ObjectTooLarge) as problem:
            logger.warning("a document cannot be read", what=what, problem=str(problem))
            self._miss(what, f"it is not as Trainyard writes it ({type(problem).__name__})", is_away=False)
        except Exception as problem:  # whatever is in a document, the rest of the page is worth having
            logger.exception("a document cannot be read", what=what)
            self._miss(what, f"it is not as Trainyard writes it ({type(problem).__name__})", is_away=False)
        return default

    def note(self, what: str, why: str) -> None:
        """Keeps that a part of something could not be read, which another try would not read either."""
        self._miss(what, why, is_away=False)

    def document(self, bucket: Bucket, key: str, kind: type[T]) -> T | None:
        """Returns a document of the contract; None where there is none."""

        def read() -> T | None:
            body = bucket.get(key, most=MOST_DOCUMENT)
            return None if body is None else decode(kind, body)

        return self.attempt(_shorten(key), read, None)

    def json(self, bucket: Bucket, key: str) -> Mapping[str, Any] | None:
        """Returns the object in a file of JSON; None where there is none."""

        def read() -> Mapping[str, Any] | None:
            body = bucket.get(key, most=MOST_DOCUMENT)
            found = read_report(body)
            if body is not None and found is None:
                raise ValueError(f"{key} is no object of JSON")
            return found

        return self.attempt(_shorten(key), read, None)

    def _miss(self, what: str, why: str, *, is_away: bool) -> None:
        self.unread.append(f"{what}: {why}")
        self.is_away = self.is_away or is_away


def _shorten(key: str) -> str:
    return key.rpartition("/")[2]

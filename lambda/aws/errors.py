"""Error codes of AWS's answers, which of S3's say something about an object or an address and not about S3 itself, and the one
error of our own that stores raise."""

from __future__ import annotations

S3_DENIED = frozenset({"403", "AccessDenied", "400", "NoSuchBucket", "301", "PermanentRedirect"})
"""S3 does not let the caller look there."""
OVERWRITTEN = frozenset({"PreconditionFailed", "412", "NoSuchVersion"})
"""The object is no longer the version that was looked at."""
CHANGED = OVERWRITTEN | {"NoSuchKey", "404"}
"""The same, or there is no object any more."""


class Raced(Exception):
    """Another writer was first: read the document again."""

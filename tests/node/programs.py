"""Programs that a test puts on PATH in the place of a machine's own (the fixture `program`)."""

from __future__ import annotations

from collections.abc import Callable

Program = Callable[[str, str], None]
"""Name and body of a shell script."""

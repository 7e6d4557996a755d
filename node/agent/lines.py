"""Splits a program's output into lines for a log: whole sentences always, of a progress bar's repetitions one now and then."""

from __future__ import annotations

import math
import re

from agent.logs import LINE_BYTES

BAR_EVERY_S = 60.0
"""How often a bar is shown that is only drawn over itself."""
LONGEST_BAR = 1000
"""Characters. What is longer is no bar."""
MOST_BARS = 64
"""Bars that are known at a time; of more than these some are shown more often."""
ENDS = re.compile(rb"(\r*\n|\r+|\x08{2,}|\x1b\[[0-9]{0,3}A)")
"""What ends a piece of output: an end of line, or a way back of the cursor, so that what follows is drawn over the piece."""
HALF_END = re.compile(rb"(\r|\x1b(\[[0-9]{0,3})?)\Z")
ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
STRUCK = re.compile("[^\b]\b")
"""A letter that the next one is written over, as in a spinner."""
DRAWING = re.compile(r"\|[^|a-zA-Z]*\|")
NUMBER = re.compile(r"[\d?][\w.,:/<?+-]*")
"""A number with its unit: `45/100`, `00:04<00:05,`, `9.98it/s`, and `?` for one that is not known yet."""
METER = re.compile(r"\[(\d+:)+\d\d(<|, )[^\]]*\]")
"""What tqdm writes at a bar's end: `[00:04<00:05,  9.98it/s]`."""
GLUED = re.compile(METER.pattern + r".*?[^\W\d_]{2}")
"""Words behind a bar of tqdm: another process's, or a `print` in its loop."""
SPACE = re.compile(r"[^\w%|\]]+|_+|0(?=[^\w%|\]]*0)")
"""What does not count in a shape, of numbers in a row all but the last."""
WORD, READABLE = re.compile(r"[^\W\d_]"), re.compile(r"[^\W_]")
"""Not spaces, and not what is drawn of a spinner or a frame."""


class Lines:
    """Every line arrives that ends, and every sentence that a bar is drawn over before it ends. Of a bar only states are dropped that its
    own next state is drawn over, and one in BAR_EVERY_S is kept. Memory is bounded.

    Times come in as arguments, from any clock that only runs forward.
    """

    def __init__(self) -> None:
        self._half = b""
        """The beginning of what may be an end, to be read with the next bytes."""
        self._piece = b""
        self._under = ""
        """The shape of what the piece is drawn over; empty where that is nothing, or blanks."""
        self._above = 0
        """How many lines the cursor is above the last one: nested bars of tqdm move it."""
        self._bars: dict[str, float] = {}
        """When each bar was last shown, by its shape; that which was drawn last is the last."""

    def feed(self, chunk: bytes, now: float = 0.0) -> list[str]:
        """Returns the lines to show. `now` is in seconds; without it no time passes."""
        output = self._half + chunk
        half = HALF_END.search(output[-8:])
        self._half = half[0] if half else b""
        *pieces, rest = ENDS.split(output[: len(output) - len(self._half)])
        shown = []
        for piece, end in zip(pieces[::2], pieces[1::2], strict=True):
            shown += self._add(piece)
            shown += self._finish(end, now)
        return shown + self._add(rest)

    def end(self) -> list[str]:
        """Returns what stands unfinished."""
        rest, self._piece, self._half = _text(self._piece), b"", b""
        return [rest] if rest.strip() else []

    def _add(self, output: bytes) -> list[str]:
        """Returns what has to be cut off because the piece is longer than a line of the log can be."""
        self._piece += output
        cut = []
        while len(self._piece) > LINE_BYTES:
            at = LINE_BYTES
            while at > LINE_BYTES - 4 and self._piece[at] & 0xC0 == 0x80:  # not inside of a letter
                at -= 1
            cut.append(_text(self._piece[:at]))
            self._piece, self._under = self._piece[at:], ""
        return cut

    def _finish(self, end: bytes, now: float) -> list[str]:
        text, self._piece = _text(self._piece), b""
        under, self._under = self._under, ""
        if end.endswith(b"\n"):
            if not self._above:
                return [text]
            self._above -= 1
            if not METER.search(text) or "100%" in text:
                return [text] if text.strip() else []
        elif end.endswith(b"A"):
            self._above = min(self._above + int(end[2:-1] or 1), MOST_BARS)
        plain = ESCAPE.sub("", text)
        shape = _shape(plain) if len(plain) <= LONGEST_BAR else ""
        if end[-1:] in b"\r\b":
            self._under = shape if plain else under
        is_hidden = not READABLE.search(plain) or self._is_repetition(plain, shape, under, now)
        return [] if is_hidden else [text.rstrip()]

    def _is_repetition(self, text: str, shape: str, under: str, now: float) -> bool:
        """Whether this, which something is drawn over, need not be shown: a bar that was shown a short while ago. A bar is what tqdm
        draws, and what is drawn over itself: over a sentence a bar is drawn, and no sentence like it."""
        if (
            not shape
            or not (shape in self._bars or shape == under or METER.search(text))
            or self._is_glued(text, shape)
        ):
            return False
        # What it is drawn over for the first time was taken for a sentence, and shown.
        shown_at = self._bars.pop(shape, now if shape == under else -math.inf)
        is_due = now - shown_at >= BAR_EVERY_S
        self._bars[shape] = now if is_due else shown_at
        if len(self._bars) > MOST_BARS:
            del self._bars[next(iter(self._bars))]
        return not is_due

    def _is_glued(self, text: str, shape: str) -> bool:
        """Whether a sentence follows on a bar without an end between them."""
        return bool(GLUED.search(text)) or any(
            shape.startswith(bar) and "%" in bar and WORD.search(shape, len(bar)) for bar in self._bars
        )


def _text(piece: bytes) -> str:
    text = piece.decode("utf-8", "replace")
    return STRUCK.sub("", text).strip("\b") if "\b" in text else text


def _shape(plain: str) -> str:
    """What stays of a bar while it moves: its words, without numbers, their units and what is drawn."""
    return SPACE.sub("", NUMBER.sub("0", DRAWING.sub("|", plain)))

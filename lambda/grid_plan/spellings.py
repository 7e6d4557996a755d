"""Recognises what pandas, spreadsheets and editors write in the place of a value, or around one."""

from __future__ import annotations

import re

MISSING = re.compile(r"-?(nan|NaN)|NAN|NaT|None|NA|<NA>|N/A|n/a|NULL|Null|null|#N/A( N/A)?|#NA|#NV|-?1\.#(IND|QNAN)")
"""What pandas writes for a missing value once it is text (`astype(str)`, `na_rep`), and what its `read_csv` takes for one: Excel's #N/A
too, which is #NV in German. `none` is no such word, because `distribution` takes it."""
FORMULA_ERROR = r"#[¡¿]?[^\W\d_a-zäöü][^\W_a-zäöü/]*(?:/0)?[!?]"
"""What spreadsheets write where a formula has no result, as in #REF! or #DIV/0!, whatever their language."""
ERROR_CELL = re.compile(rf"\s*(?:#N/A|#NA|#NV|{FORMULA_ERROR})[,;\t|]")
"""The beginning of a line whose first cell is such an error."""
EDGES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Spaces of every width, marks without any width, and byte-order marks, which copying and exporting leave at the ends of a cell."""
OPENING, CLOSING = "“”„‟‘’‚«»", "“”‟‘’«»"
"""Quotes that editors set in the place of straight ones."""
COMMA = re.compile(r"-?[0-9]+,[0-9]+", re.ASCII)


def trim(text: str) -> str:
    """Returns the text without invisible characters at its ends."""
    return text.strip(EDGES)


def find_error(text: str) -> str:
    """Says of a formula's error that it is one; empty for any other text."""
    return "is the error of a spreadsheet's formula" if re.fullmatch(FORMULA_ERROR, trim(text)) else ""


def find_stand_in(text: str) -> str:
    """Says what stands there in the place of a value, or around it, as the second half of a problem; empty where the text may be meant."""
    bare = trim(text)
    if MISSING.fullmatch(bare):
        return "stands for a missing value (leave the cell empty, or leave the field out)"
    if len(bare) > 1 and bare[0] in OPENING and bare[-1] in CLOSING:
        return 'is in typographic quotes (straight ones are ")'
    return find_error(bare)


def find_oddity(text: str) -> str:
    """The same for a text that may be anything, where a number with a comma is suspicious too."""
    if COMMA.fullmatch(text):
        return "has a comma, as decimals of German or French spreadsheets have (programs read a point)"
    return find_stand_in(text)

"""What a tag of a person may be, in the settings and in a request: what EC2, IAM, SageMaker and CodeBuild all take."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator

from contract.tags import NAME, RESERVED

MOST_OF_SETTINGS, MOST_OF_A_REQUEST = 20, 16
"""EC2 takes 50 tags of a thing; those that AWS sets itself do not count. Nodes carry up to fourteen of ours, a protection among them."""
MOST_KEY, MOST_VALUE = 127, 255
"""Characters; CodeBuild's lengths are the least."""
KEY_PATTERN = re.compile(r"[A-Za-z0-9_.:=+@-]{1,127}")
"""Nodes read their tags in instance metadata, where a key has neither spaces nor slashes; IAM takes no comma."""
KEY_WORDS = f"1 to {MOST_KEY} letters, digits and _.:=+@-, without aws: or {RESERVED} at the beginning, and not {NAME}"
VALUE_WORDS = f"1 to {MOST_VALUE} letters, digits, spaces and _.:/=+-@, such as 4711"
NOT_IN_METADATA = frozenset({".", "..", "_index"})
"""Keys that EC2 refuses for an instance that shows its tags in instance metadata."""


def object_to_key(text: str) -> str:
    """Says what is wrong with a key that has the form of KEY_PATTERN; empty where nothing is."""
    if text.lower().startswith(("aws:", RESERVED)):
        return "it begins with a reserved prefix"
    if text in NOT_IN_METADATA:
        return "instance metadata has no such key"
    return "it is Trainyard's own" if text.lower() == NAME.lower() else ""


def find_twins(keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields each two keys that differ in capitals alone, the earlier one first: IAM takes them for one."""
    first = dict[str, str]()
    for key in keys:
        if (other := first.setdefault(key.lower(), key)) != key:
            yield other, key


def object_to_value(text: str) -> str:
    """Says which character of a value some service does not take; empty where all take every one."""
    wrong = next((one for one in text if one not in "_.:/=+-@" and unicodedata.category(one)[0] not in "LZN"), "")
    if wrong:
        return f"it has {json.dumps(wrong)}"
    return "it begins or ends with a space" if text != text.strip() else ""

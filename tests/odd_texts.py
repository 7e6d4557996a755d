"""Texts that break what reads them, and where a document has room for a text, by its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ODD: Mapping[str, str] = {
    "an apostrophe": "-x 'A",
    "a quote": '"',
    "a backslash at the end": "a\\",
    "quotes in quotes": "'\"'\"$(a)`b`",
    "NUL": "a\0b",
    "half a surrogate": "a\ud800b",
    "the other half": "\udc00",
    "100 kB": "x" * 100_000,
    "100 kB of letters of four bytes": "\U0001f600" * 25_000,
    "a line separator": "a\u2028b\u0085c",
    "from right to left": "\u202eabc\u2066\u200f",
    "JSONata": "{% $states.input %}",
    "line ends": "a\nb\r\nc\td",
    "an escape": "\x1b[2J\x07",
    "braces": "{a} {0} {data} %s %(a)s",
    "an open bracket": "([a-z",
    "an expression that never ends": "(" * 500 + "a" + ")*" * 500,
    "nothing": "",
    "spaces": "  ",
    "a path": "../../x",
    "a byte-order mark": "\ufeffa",
}
"""What is odd about a text, to the text."""


class Planter:
    """Puts a text into every place of a document that has room for one."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema

    def plant(self, text: str) -> Iterator[tuple[str, Any]]:
        """Yields the name of a field of the document, and a value of it that has the text in one place."""
        for name, shape in self.resolve(self._root)["properties"].items():
            for value in (*self._fill(shape, text), *self._change_examples(shape, text)):
                yield name, value
        yield text, 1

    def resolve(self, shape: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns a shape with what it refers to."""
        if "$ref" not in shape:
            return shape
        found: Any = self._root
        for part in shape["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return {**self.resolve(found), **{key: one for key, one in shape.items() if key != "$ref"}}

    def _fill(self, shape: Any, text: str) -> Iterator[Any]:
        """Yields values of the shape that have the text in one place; what else they need is the least that there is."""
        shape = self.resolve(shape) if isinstance(shape, Mapping) else {}
        for word in ("anyOf", "oneOf", "allOf"):
            for one in shape.get(word, ()):
                yield from self._fill(one, text)
        kind = shape.get("type")
        if kind == "array":
            yield from ([one] for one in self._fill(shape.get("items", {}), text))
            for place, one in enumerate(shape.get("prefixItems", ())):
                whole = [self._least(each) for each in shape["prefixItems"]]
                yield from ([*whole[:place], inner, *whole[place + 1 :]] for inner in self._fill(one, text))
        elif kind == "object" or "properties" in shape:
            yield from self._fill_object(shape, text)
        elif kind is None and not {"anyOf", "oneOf", "allOf", "const", "enum"} & shape.keys():
            yield from (text, [text], {"a": text}, {text: "a"})
        else:
            yield text

    def _fill_object(self, shape: Mapping[str, Any], text: str) -> Iterator[Any]:
        least = self._least(shape)
        for name, one in shape.get("properties", {}).items():
            yield from ({**least, name: inner} for inner in self._fill(one, text))
        entries = [shape.get("additionalProperties", {}), *shape.get("patternProperties", {}).values()]
        for one in entries:
            if one is not False:
                yield from ({**least, "a": inner} for inner in self._fill(one if one is not True else {}, text))
                yield {**least, text: self._least(one)}
        yield {**least, text: "a"}

    def _least(self, shape: Any) -> Any:
        """Returns a value of the shape: its example, if it has one."""
        shape = self.resolve(shape) if isinstance(shape, Mapping) else {}
        for word in ("examples", "enum"):
            if shape.get(word):
                return shape[word][0]
        if "const" in shape or shape.get("default") is not None:
            return shape.get("const", shape.get("default"))
        for word in ("anyOf", "oneOf", "allOf"):
            if shape.get(word):
                return self._least(shape[word][0])
        if "properties" in shape:
            return {name: self._least(shape["properties"][name]) for name in shape.get("required", ())}
        kinds: dict[Any, Any] = {"array": [], "object": {}, "integer": 1, "number": 1, "boolean": False, "null": None}
        return kinds.get(shape.get("type"), "a")

    def _change_examples(self, shape: Any, text: str) -> Iterator[Any]:
        for example in self.resolve(shape).get("examples", ()):
            yield from change_texts(example, text)


def change_texts(value: Any, text: str) -> Iterator[Any]:
    """Yields the value with the text in the place of one of its texts, or of a name of it."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from ([*value[:place], inner, *value[place + 1 :]] for inner in change_texts(one, text))
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from ({**value, name: inner} for inner in change_texts(one, text))
            yield {text if key == name else key: each for key, each in value.items()}


def list_names(value: Any) -> Iterator[str]:
    """Yields the names of all fields in a value."""
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    yield from value if isinstance(value, dict) else ()
    for one in inner:
        yield from list_names(one)

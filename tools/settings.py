"""Writes page and JSON Schema of the settings: each with its default, what it may be, and what it means."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from stacks.durations import LONGEST_S, MOST, MOST_TIMES, RATIOS
from stacks.refused import block_of, hints
from stacks.settings import BLOCK, Settings

DOCS = Path(__file__).parents[1] / "docs" / "reference"
PAGE, SCHEMA = DOCS / "settings.md", DOCS / "settings.schema.json"
HEAD = f"""# Settings

<!-- Written by `make docs` from stacks/settings.py, where each setting has its type, its bounds, its default and its meaning. -->

Everything that a deployment can choose stands in `cdk.json`, under `context.{BLOCK}`. What is left out has its default; an unknown
key, or a value that is not allowed, ends `make synth` and `make deploy` with a line that names the key and says what is allowed.
[settings.schema.json](settings.schema.json) is a JSON Schema of `cdk.json`, for editors.
"""
TAIL = """

## Which durations depend on each other

{ratios}

{most}
"""


def pages() -> dict[Path, str]:
    return {PAGE: page(), SCHEMA: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"}


@cache
def schema() -> dict[str, Any]:
    """Returns the JSON Schema of Trainyard's block in cdk.json."""
    whole = Settings.model_json_schema()
    _describe(Settings, whole, whole["$defs"])
    timing = whole["$defs"]["TimingSettings"]["properties"]
    for one in timing.values():
        one["exclusiveMinimum"] = 0
        one["maximum"] = LONGEST_S
    for name, most, _ in MOST:
        timing[name]["maximum"] = most
    definitions = whole.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trainyard's cdk.json",
        "type": "object",
        "properties": {"context": {"type": "object", "properties": {BLOCK: whole}}},
        "$defs": definitions,
    }


def page() -> str:
    """Returns the whole page."""
    whole = schema()
    ratios = "\n".join(
        f"- `{longer}`: at least {f'{times} times ' if times > 1 else ''}`{shorter}`"
        for longer, times, shorter in RATIOS
    )
    most = "\n".join(
        [
            *(f"- `{longer}`: at most {times} times `{shorter}`; {why}" for longer, times, shorter, why in MOST_TIMES),
            *(f"- `{name}`: at most {seconds}; {why}" for name, seconds, why in MOST),
            f"- each of them: at most {LONGEST_S}",
        ]
    )
    blocks = _blocks("", whole["properties"]["context"]["properties"][BLOCK], whole["$defs"])
    return "\n".join([HEAD, *blocks]) + TAIL.format(ratios=ratios, most=most)


def _describe(model: type, properties: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Copies the docstrings of a block's settings into its schema, and into the schemas of the blocks within."""
    meant = meanings(model)
    properties["description"] = inspect.getdoc(model) or ""
    for name, hint in hints(model).items():
        setting = properties["properties"][name]
        setting["description"] = meant[name]
        setting.pop("title", None)
        if "patternProperties" in setting:
            setting["additionalProperties"] = False
        if inner := block_of(hint):
            _describe(inner, definitions[inner.__name__], definitions)


def meanings(model: type) -> dict[str, str]:
    """Returns the docstring of every setting of a block; a class may replace the docstring of an inherited setting."""
    found = dict.fromkeys(hints(model), "")
    for one in reversed(model.__mro__):
        if one.__module__.split(".")[0] not in {"contract", "stacks"}:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(tree, ast.ClassDef)
        for statement, following in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                text = following.value if isinstance(following, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[statement.target.id] = " ".join(text.value.split())
    return found


def _blocks(path: str, block: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """Returns a table of a block's values, then those of the blocks within."""
    told = [
        f"\n## {f'`{path}`' if path else 'The deployment'}\n",
        f"{block['description']}\n",
        "| setting | may be | default | meaning |",
        "|---|---|---|---|",
    ]
    inner = []
    for name, setting in block["properties"].items():
        whole = f"{path}.{name}" if path else name
        if target := entry(setting).get("$ref"):
            inner += _blocks(f"{whole}{_key(setting)}", definitions[target.split("/")[-1]], definitions)
            may_be = f"{_count('list', setting)} of blocks, below" if "items" in setting else _may_be(setting)
        else:
            may_be = _may_be(setting)
        default = "" if target else _default(setting, required=name in block.get("required", ()))
        told.append(f"| `{name}` | {_cell(may_be)} | {default} | {_cell(setting['description'])} |")
    return [*told, *inner]


def entry(setting: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of each entry where a setting is a list, or names that are blocks; else its own."""
    if "items" in setting:
        return dict(setting["items"])
    named = next(iter(setting.get("patternProperties", {}).values()), {})
    return dict(named) if "$ref" in named else setting


def _key(setting: dict[str, Any]) -> str:
    if "items" in setting:
        return "[]"
    return ".NAME" if "patternProperties" in setting else ""


def _default(setting: dict[str, Any], *, required: bool) -> str:
    if required:
        return "required"
    value = setting.get("default")
    if isinstance(value, dict) and value:
        return "<br>".join(f"`{json.dumps(name)}: {json.dumps(one)}`" for name, one in value.items())
    if isinstance(value, float):
        return f"`{value:.10g}`"
    return "none" if value is None else f"`{json.dumps(value)}`"


def _may_be(setting: dict[str, Any]) -> str:
    """Says what a value may be, by its schema."""
    if options := setting.get("anyOf"):
        return " or ".join("left out" if one == {"type": "null"} else _may_be(one) for one in reversed(options))
    if choice := setting.get("enum"):
        return "one of " + ", ".join(map(str, choice))
    if "$ref" in setting:
        return "a block, below"
    kind = setting["type"]
    if kind == "array":
        return f"{_count('list', setting)}, each {_may_be(setting['items'])}"
    if kind == "object" and "propertyNames" not in setting and "patternProperties" not in setting:
        return "an object that is not empty" if setting.get("minProperties") else "an object"
    if kind == "object":
        names, (values,) = (
            setting["propertyNames"],
            setting.get("patternProperties", {"": setting["additionalProperties"]}).values(),
        )
        # Where names have a pattern, pydantic writes it with the values.
        each = names.get("patternErrorMessage") or _may_be(names)
        return f"{_count('block', setting)}, each name {each}, each value {_may_be(values)}"
    if kind == "string":
        return str(setting["patternErrorMessage"])
    if kind == "boolean":
        return "true or false"
    return f"{'a whole number' if kind == 'integer' else 'a number'}{_bounds(setting)}"


def _count(what: str, setting: dict[str, Any]) -> str:
    entries = "Items" if "items" in setting else "Properties"
    least, most = setting.get(f"min{entries}", 0), setting.get(f"max{entries}")
    if most is None:
        return f"a {what}" + (f" of at least {least}" if least else "")
    return f"a {what} of {f'{least} to' if least else 'up to'} {most}"


def _bounds(setting: dict[str, Any]) -> str:
    parts = [
        f"{words} {setting[name]:.10g}"
        for name, words in (("exclusiveMinimum", "more than"), ("minimum", "at least"), ("maximum", "at most"))
        if name in setting
    ]
    if "minimum" in setting and "maximum" in setting:
        parts = [f"from {setting['minimum']} to {setting['maximum']}"]
    return f" {' and '.join(parts)}" if parts else ""


def _cell(text: str) -> str:
    """Escapes everything that Markdown would interpret, except code."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if place % 2 else part.replace("*", "\\*") for place, part in enumerate(parts))

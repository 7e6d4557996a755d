"""Explains a module that a training's Python did not find: what its machine or image has, and where the package belongs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata

MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,100})'")
FRAMEWORKS = ("torch", "torch-neuronx", "tensorflow", "jax", "numpy", "transformers")
"""Packages of machine images that are named, so that a person learns what such an image brings."""


def find_missing(tail: Iterable[str]) -> str:
    """Returns the module that the last such error in the output names; empty where there is none."""
    found = [match[1] for line in tail if (match := MISSING.search(line))]
    return found[-1] if found else ""


def explain_on_machine(
    tail: Sequence[str], *, has_requirements: bool, version: Callable[[str], str] = metadata.version
) -> str:
    """Returns the end of a sentence for a training on the machine's own Python; empty where no module is missing."""
    if not (module := find_missing(tail)):
        return ""
    state = "it does not bring the module" if has_requirements else "the code has none"
    return (
        f"; the machine image has {_describe_image(version)} and no module {module}: add its package to requirements.txt at the root "
        f"of the code ({state}), or pack the file of that name"
    )


def explain_in_image(tail: Sequence[str]) -> str:
    """Returns the same for a training in an image, beside which requirements.txt is not installed."""
    if not (module := find_missing(tail)):
        return ""
    return f"; the image has no module {module}: install it in its Dockerfile, as requirements.txt is not installed beside an image"


def _describe_image(version: Callable[[str], str]) -> str:
    known = []
    for name in FRAMEWORKS:
        try:
            known.append(f"{name} {version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(known) or "no framework"

"""What a page of docs/ tells a person to type: `aws` commands, in blocks and in the text, and what they need to exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import botocore.session
from botocore import xform_name

OF_ALL = {"region", "query", "output", "cli-binary-format"}
"""Arguments of the command line itself."""
RENAMED = {"notification-endpoint": "endpoint"}
"""`--endpoint` would look like the command line's own `--endpoint-url`."""
NAMED = {"s3api": "s3"}
"""What the command line calls a service otherwise."""
OWN = {("s3", "ls"), ("s3", "cp"), ("s3", "rm")}
"""What the command line adds to the services' operations."""


def blocks(page: str) -> list[str]:
    """The text of each block of shell, continued lines joined."""
    return [re.sub(r"\\\n\s*", " ", block) for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL)]


def commands(page: str) -> Iterator[list[str]]:
    """Every `aws ...`, with what a shell would make of its words."""
    within = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    spans = [f"{text}\n" for text in re.findall(r"`(aws [^`]+)`", within)]
    for text in [*blocks(page), *spans]:
        for found in re.finditer(r"(?<![\w/-])aws (?=[a-z])", text):
            yield shlex.split(_until_its_end(text[found.end() :]), comments=True)


def _until_its_end(text: str) -> str:
    """Up to the end of the line, or the parenthesis that closes `$(aws ...)`, outside of quotes."""
    quote, depth = "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        if not quote and (letter == "\n" or depth < 0):
            return text[:place]
    return text


def problems(words: list[str]) -> list[str]:
    """Arguments that AWS does not know or misses; raises ValueError where there is no such operation."""
    service, command = words[:2]
    if (service, command) in OWN:
        return []
    taken, wanted = _operation(service, command)
    named = {word.removeprefix("--").removeprefix("no-") for word in words if word.startswith("--")} - OF_ALL
    given = {RENAMED.get(name, name) for name in named}
    return [*(f"--{name}: unknown" for name in given - taken), *(f"--{name}: missing" for name in wanted - given)]


def _operation(service: str, command: str) -> tuple[set[str], set[str]]:
    """Arguments that the operation takes and those that it wants, as the command line spells them."""
    model = botocore.session.get_session().get_service_model(NAMED.get(service, service))
    (name,) = [one for one in model.operation_names if xform_name(one, "-") == command]
    shape = model.operation_model(name).input_shape
    if shape is None:
        return set(), set()
    taken = {xform_name(member, "-") for member in shape.members}
    return taken, {xform_name(member, "-") for member in shape.required_members} - {"outfile"}


def outputs(page: str) -> set[str]:
    """Outputs of stacks that the commands ask for."""
    return set(re.findall(r"OutputKey==`(\w+)`", page))

"""Says how the code of a line comes to run: as AWS's toolkit runs a program, or under the words of the line in any other image.

SageMaker mounts nothing at /opt/ml/code. The archive travels as a channel, which SageMaker brings into the container itself: without
keys of the container, and without a network of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from contract import containers
from refusals.fields import GZIPPED

CHANNEL, FILE = "code", "sourcedir.tar.gz"
"""The names that SageMaker's own SDK gives to the channel and the archive of a container without network."""
ENDINGS = " or ".join(GZIPPED)
"""Of archives. AWS's toolkit unpacks no other form."""
GZIP = b"\x1f\x8b"
TOOLKITS = "sagemaker_"
"""How the names of hyperparameters begin that AWS's toolkit reads itself, and hands on to no program."""
PACKED = f"{containers.DATA}/{CHANNEL}/{FILE}"
PROGRAM = r"(?!.*(^|/)\.\.(/|$))[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}"
"""AWS's toolkit gives a program that is not Python to a shell."""
VARIABLE = "SAGEMAKER_PROGRAM"
"""Comes before the hyperparameter of the same name, and an image may set it."""
UNPACK = 'set -e; rm -rf "$1" || :; mkdir -p "$1"; tar -xzof "$2" -C "$1"; cd "$1"; shift 2; exec "$@"'
"""Replaces what the image has at the folder, as the mount of a job does; the files belong to who unpacks them."""


def entrypoint(words: Sequence[str]) -> list[str]:
    """Returns the words that unpack the code and then run `words` in its folder."""
    return ["/bin/sh", "-c", UNPACK, CHANNEL, containers.CODE, PACKED, *words]


def read_by_toolkit(text: str) -> str | None:
    """Returns the argument that AWS's toolkit makes of a hyperparameter: of JSON what Python prints, of any other text the text itself.
    None for a text at which the toolkit fails."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        return None
    if isinstance(found, dict):
        return ",".join(f"{name}={value}" for name, value in sorted(found.items()))
    return "" if found is None else str(found)


def quote_for_toolkit(name: str, text: str) -> str:
    """Returns a text so that the toolkit gives the program this very text: in JSON's quotes if it would read something else in it, as
    SageMaker's SDK writes every text. What the toolkit keeps for itself stays as it is."""
    is_safe = name.startswith(TOOLKITS) or read_by_toolkit(text) == text
    return text if is_safe else json.dumps(text, ensure_ascii=False)


def toolkit(program: str, *, packed: bool) -> dict[str, str]:
    """Returns the hyperparameters by which AWS's toolkit finds the program, written as SageMaker's SDK writes them. Without an archive
    it looks into the image."""
    found = {"sagemaker_program": json.dumps(program)}
    return found | ({"sagemaker_submit_directory": json.dumps(PACKED)} if packed else {})


def digest(address: str, version: str, etag: str) -> str:
    """Returns the name of one version of an archive."""
    return hashlib.sha256(f"{address} {version} {etag}".encode()).hexdigest()[:32]

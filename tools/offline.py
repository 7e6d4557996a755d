"""Says why pip found nothing where the reason is the network, which pip keeps to itself: `python -m tools.offline LOG`.

Set-up runs it with the Python of a new virtual environment, so it imports the standard library alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

PYPI = "https://pypi.org/simple"
PATIENCE_S = 10.0
SHOWN = 15
"""The most lines of pip's own words."""


def find_index(variables: Mapping[str, str]) -> str:
    """Returns the address of the package index that pip asks here."""
    if named := variables.get("PIP_INDEX_URL"):
        return named
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(variables)).stdout.strip()
    return found or PYPI


def describe_silence(index: str, patience_s: float = PATIENCE_S) -> str:
    """Returns a line if the index does not answer; empty if it does, whatever it says. A password in its address is not shown."""
    place = urlsplit(index)
    host = f"{place.hostname or index}{f':{place.port}' if place.port else ''}"
    try:
        urllib.request.urlopen(f"{index.rstrip('/')}/pip/", timeout=patience_s).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as problem:
        why = getattr(problem, "reason", problem)
        return (
            f"No network: the package index at {host} could not be reached ({why}). Set-up needs it once: connect, or name a proxy "
            "(HTTPS_PROXY) or an index that can be reached (PIP_INDEX_URL), and run the same command again."
        )
    return ""


def explain(log: str, silence: str) -> str:
    """Returns what a person reads: the network's trouble, or else the last words of pip."""
    return silence or "\n".join(log.strip().splitlines()[-SHOWN:])


if __name__ == "__main__":
    print(
        explain(Path(sys.argv[1]).read_text(errors="replace"), describe_silence(find_index(os.environ))),
        file=sys.stderr,
    )
    sys.exit(1)

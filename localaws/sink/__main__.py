"""`python -m localaws.sink FOLDER`: serves until its standard input ends; prints the endpoint and the file of its authority.

`--late-ms` answers later; `--unverified` computes no checksums, so that a race shows what clients do and not what servers do. Every
line of standard input is answered by a line with the calls since the last one, as JSON; `clear` forgets all objects.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from localaws.sink.server import Sink


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--late-ms", type=float, default=0)
    parser.add_argument("--unverified", action="store_true")
    asked = parser.parse_args()
    sink = Sink(asked.folder, late_s=asked.late_ms / 1000, verify=not asked.unverified)
    print(sink.endpoint, sink.authority, flush=True)
    for line in sys.stdin:
        if line.strip() == "clear":
            sink.buckets.clear()
        print(json.dumps(sink.calls), flush=True)
        sink.calls.clear()


if __name__ == "__main__":
    main()

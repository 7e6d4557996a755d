"""`python -m localaws.sink FOLDER`: serves until its standard input ends; prints the endpoint and the file of its authority.

`--late-ms` answers later; `--mb-s` is the rate of each connection. Every line of standard input is answered by a line of JSON: the
calls since the last one, and the kinds of checksums that came with bodies. `clear` forgets all objects; after `trust` no checksum is
computed, so that a race shows what clients do and not what servers do, until `verify`.
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
    parser.add_argument("--mb-s", type=float, default=0)
    asked = parser.parse_args()
    sink = Sink(asked.folder, late_s=asked.late_ms / 1000, rate=asked.mb_s * 1e6)
    print(sink.endpoint, sink.authority, flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "clear":
            sink.buckets.clear()
        elif word in ("verify", "trust"):
            sink.verify = word == "verify"
        print(json.dumps({"calls": sink.calls, "checksums": sink.checksums}), flush=True)
        sink.calls.clear()
        sink.checksums.clear()


if __name__ == "__main__":
    main()

"""Prints what docs/ publishes: the JSON Schema of the input, of a `line`, or a page about the `columns`."""

import json
import sys

from grid_plan import asked, columns
from grid_plan.page import page

what = sys.argv[1] if len(sys.argv) > 1 else "input"
if what == "columns":
    print(page(), end="")
else:
    print(json.dumps(columns.schema() if what == "line" else asked.schema(), indent=1, ensure_ascii=False))

"""Prints the JSON Schema of a request: `make docs` keeps docs/request.schema.json with it."""

import json

from admission.request import schema

print(json.dumps(schema(), indent=1, ensure_ascii=False))

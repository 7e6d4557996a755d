"""Prints the JSON Schema of a request: docs/build.schema.json is kept with it."""

import json

from image_build.request import schema

print(json.dumps(schema(), indent=1, ensure_ascii=False))

"""Refusals of inputs that are not a request, and of fields that no request has, or whose place an example holds."""

from __future__ import annotations

from tools.refusals.jobs.table import CODE, FIELDS, Row, Section

WHOLE = (
    Section(
        "request",
        f"an object of the fields {FIELDS}",
        rows=(
            Row("null", None, "request: null is not an object", whole=True),
            Row("a list", [{"nodes": 1}], "request: a list is not an object", whole=True),
            Row("a text", "python train.py", 'request: "python train.py" is not an object', whole=True),
            Row(
                "nothing in it",
                {},
                f"code: is missing; allowed: {CODE}",
                "command: is missing; allowed: a list of 1 to 1,000 strings, or one string of such words",
                "instance_types: is missing; allowed: a list of 1 to 10 different EC2 types, as in g5.xlarge, or accelerators in its "
                "place, as in H100:8",
                whole=True,
            ),
            Row(
                "an unknown field, close to a known one",
                {"instance_type": "g5.xlarge"},
                "instance_type: there is no such field (did you mean instance_types?)",
            ),
            Row(
                "an unknown field, close to a known one of two words",
                {"marketplace": "spot"},
                "marketplace: there is no such field (did you mean market?)",
            ),
            Row(
                "unknown fields by which other tools call known ones",
                {"timeout": 3600, "env": {"A": "1"}, "gpus": 8, "spot": True, "requirements": "torch", "wibble": 1},
                "timeout (did you mean max_hours?), env (did you mean environment?), gpus (did you mean instance_types or accelerators?), "
                "spot (did you mean market?), requirements (the code's requirements.txt is installed by itself), wibble: there are no such "
                "fields",
            ),
            Row(
                "the placeholder of an example",
                {"code": "s3://REPLACE-WITH-UploadPrefix/ddp_digits.tar.gz"},
                "code: s3://REPLACE-WITH-UploadPrefix/ddp_digits.tar.gz has the placeholder of the example; allowed: the output "
                "UploadPrefix of the stacks in the place of s3://REPLACE-WITH-UploadPrefix",
            ),
            Row(
                "the placeholder of an example, beside a wrong value",
                {"data": ["s3://data-REPLACE-WITH-ACCOUNT/a/"], "nodes": "2"},
                "data: s3://data-REPLACE-WITH-ACCOUNT/a/ has the placeholder of the example; allowed: the number of the account in the "
                "place of REPLACE-WITH-ACCOUNT",
                'nodes: "2" is not a whole number (numbers have no quotes); allowed: a whole number from 1 to 16 (limits.max_nodes in '
                "cdk.json)",
            ),
            Row(
                "a field for availability zones",
                {"availability_zones": ["eu-central-1x"]},
                "availability_zones: there is no such field",
            ),
            Row(
                "an unknown field with a name that runs from right to left",
                {"\u202esedon": 2},
                "\\u202esedon: there is no such field",
            ),
            Row(
                "half of a surrogate pair as a field's name",
                {"\ud800": 1},
                'request: "\\ud800" is not valid Unicode (it holds half of a surrogate pair)',
                whole=True,
            ),
            Row(
                "anything at all, while admission is closed",
                {},
                "request: admission is closed: deployment yard is being destroyed, or a destroy of it failed"
                "; allowed: any request, after a person has deleted the item admission/closed of the table "
                "yard-state, or after a destroy has ended and a deploy has created the stacks again",
                closed="deployment yard is being destroyed, or a destroy of it failed",
            ),
        ),
    ),
)

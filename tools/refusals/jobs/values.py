"""Refusals of wrong values, and of inputs that are not a request."""

from __future__ import annotations

from tools.refusals.jobs.table import CODE, FIELDS, VARIABLE, Row, Section

VALUES = (
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
                "command: is missing; allowed: a list of 1 to 1,000 texts, or one text of such words",
                "instance_types: is missing; allowed: a list of 1 to 10 different EC2 types, as in g5.xlarge",
                whole=True,
            ),
            Row(
                "an unknown field, close to a known one",
                {"instance_type": "g5.xlarge"},
                "instance_type: there is no such field (did you mean instance_types?)",
            ),
            Row(
                "a field for regions",
                {"regions": ["eu-central-1"]},
                "regions: there is no such field (did you mean region?)",
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
                (
                    "request: nothing is admitted at present: deployment yard is being destroyed, or a destroy of it failed"
                    "; allowed: any request, once a person has deleted the item admission/closed of the table "
                    "yard-state, or once a destroy has come to its end and a deploy has made its stacks anew"
                ),
                closed="deployment yard is being destroyed, or a destroy of it failed",
            ),
        ),
    ),
    Section(
        "region",
        "a region in which the deployment trains (regions with a cidr in cdk.json), as in eu-central-1",
        rows=(
            Row("a list", {"region": ["eu-central-1"]}, "region: a list is not a string"),
            Row("a number", {"region": 1}, "region: 1 is not a string"),
            Row("an empty text", {"region": ""}, 'region: "" does not have the right form'),
            Row("a city", {"region": "Frankfurt"}, 'region: "Frankfurt" does not have the right form'),
            Row("a zone", {"region": "eu-central-1a"}, 'region: "eu-central-1a" does not have the right form'),
            Row(
                "another region's line break and all",
                {"region": "eu-central-1\n"},
                'region: "eu-central-1\\n" does not have the right form',
            ),
            Row(
                "a region in which the deployment does not train",
                {"region": "us-east-1"},
                (
                    "region: the deployment does not train in us-east-1"
                    "; allowed: eu-central-1 (regions with a cidr in cdk.json)"
                ),
            ),
        ),
    ),
    Section(
        "nodes",
        "a whole number from 1 to 16 (limits.max_nodes in cdk.json)",
        taken=16,
        left_out=1,
        rows=(
            Row("zero", {"nodes": 0}, "nodes: 0 is too small"),
            Row("negative", {"nodes": -1}, "nodes: -1 is too small"),
            Row("a number as text", {"nodes": "2"}, 'nodes: "2" is not a whole number (numbers stand without quotes)'),
            Row("a fraction", {"nodes": 1.5}, "nodes: 1.5 is not a whole number"),
            Row("a whole number written as a fraction", {"nodes": 2.0}, "nodes: 2.0 is not a whole number"),
            Row("true", {"nodes": True}, "nodes: true is not a whole number"),
            Row("null", {"nodes": None}, "nodes: null is not a whole number"),
            Row("a list", {"nodes": [2]}, "nodes: a list is not a whole number"),
            Row("more than the settings allow", {"nodes": 17}, "nodes: 17 is too large"),
            Row("huge", {"nodes": 10**30}, "nodes: 1000000000000000000000000000000 is too large"),
        ),
    ),
    Section(
        "market",
        "on-demand",
        rows=(
            Row("no market", {"market": "auction"}, 'market: "auction" is not a market'),
            Row("null", {"market": None}, "market: null is not a market"),
            Row(
                "spot", {"market": "spot"}, "market: spot is not supported yet, and on-demand is not taken in its place"
            ),
        ),
    ),
    Section(
        "max_hours",
        "a number from 0.01 to 100 (limits.max_hours in cdk.json)",
        taken=0.5,
        left_out=24,
        rows=(
            Row("zero", {"max_hours": 0}, "max_hours: 0 is too small"),
            Row("negative", {"max_hours": -8}, "max_hours: -8 is too small"),
            Row("too short for a node to start", {"max_hours": 0.001}, "max_hours: 0.001 is too small"),
            Row("NaN", {"max_hours": float("nan")}, "max_hours: NaN is not a finite number"),
            Row("infinite", {"max_hours": float("inf")}, "max_hours: Infinity is not a finite number"),
            Row(
                "a number as text",
                {"max_hours": "24"},
                'max_hours: "24" is not a number (numbers stand without quotes)',
            ),
            Row("true", {"max_hours": True}, "max_hours: true is not a number"),
            Row("more than the settings allow", {"max_hours": 101}, "max_hours: 101 is too large"),
            Row("huge", {"max_hours": 1e300}, "max_hours: 1e+300 is too large"),
        ),
    ),
    Section(
        "max_cost_usd",
        "nothing yet; leave it out and limit max_hours",
        rows=(
            Row("zero", {"max_cost_usd": 0}, "max_cost_usd: 0 is too small"),
            Row(
                "a budget that cannot buy one node-hour",
                {"max_cost_usd": 0.01},
                "max_cost_usd: the cap is not enforced yet",
            ),
            Row("any cap", {"max_cost_usd": 500}, "max_cost_usd: the cap is not enforced yet"),
            Row(
                "a number as text",
                {"max_cost_usd": "500"},
                'max_cost_usd: "500" is not a number (numbers stand without quotes)',
            ),
        ),
    ),
    Section(
        "checkpoint_minutes",
        "a number from 0.01 to 1440",
        taken=1440,
        left_out=10,
        rows=(
            Row("zero", {"checkpoint_minutes": 0}, "checkpoint_minutes: 0 is too small"),
            Row("longer than a day", {"checkpoint_minutes": 1441}, "checkpoint_minutes: 1441 is too large"),
            Row("NaN", {"checkpoint_minutes": float("nan")}, "checkpoint_minutes: NaN is not a finite number"),
            Row(
                "a number as text",
                {"checkpoint_minutes": "10"},
                'checkpoint_minutes: "10" is not a number (numbers stand without quotes)',
            ),
        ),
    ),
    Section(
        "environment",
        "an object of up to 200 names of variables and their texts",
        entry="texts of up to 128,000 bytes",
        taken={"OMP_NUM_THREADS": "4"},
        left_out={},
        rows=(
            Row("a list", {"environment": ["A=b"]}, "environment: a list is not an object"),
            Row("a number as value", {"environment": {"A": 1}}, "environment.A: 1 is not a string"),
            Row("null as value", {"environment": {"A": None}}, "environment.A: null is not a string"),
            Row(
                "names that are none",
                {"environment": {"1A": "x", "A=B": "x", "$(id)": "x", "": "x"}},
                f"environment.1A: is not a variable name; allowed: {VARIABLE}",
                f"environment.A=B: is not a variable name; allowed: {VARIABLE}",
                f"environment.$(id): is not a variable name; allowed: {VARIABLE}",
                f'environment."": is not a variable name; allowed: {VARIABLE}',
            ),
            Row(
                "a variable of Trainyard's own",
                {"environment": {"MASTER_ADDR": "10.0.0.1"}},
                (
                    "environment.MASTER_ADDR: is set by Trainyard"
                    "; allowed: any name but ARTIFACTS_DIR, ATTEMPT, CHECKPOINT_DIR, JOB_ID, MASTER_ADDR, MASTER_PORT,"
                    " NODE_RANK, NUM_NODES, PROGRESS_FILE"
                ),
            ),
            Row(
                "a NUL character",
                {"environment": {"A": "x\x00"}},
                "environment.A: holds a NUL character; allowed: all others",
            ),
            Row(
                "half of a surrogate pair",
                {"environment": {"A": "\ud800"}},
                'environment.A: "\\ud800" is not valid Unicode (it holds half of a surrogate pair)',
            ),
            Row("201 variables", {"environment": {f"A{n}": "" for n in range(201)}}, "environment: has 201 entries"),
            Row(
                "a value longer than Linux takes",
                {"environment": {"A": "x" * 128001}},
                "environment.A: has 128,001 characters",
            ),
        ),
    ),
    Section(
        "volume_gb",
        "a whole number from 1 to 1000 (limits.max_volume_gb in cdk.json)",
        taken=1000,
        left_out=100,
        rows=(
            Row("zero", {"volume_gb": 0}, "volume_gb: 0 is too small"),
            Row("negative", {"volume_gb": -1}, "volume_gb: -1 is too small"),
            Row(
                "a number as text",
                {"volume_gb": "100"},
                'volume_gb: "100" is not a whole number (numbers stand without quotes)',
            ),
            Row("a fraction", {"volume_gb": 100.5}, "volume_gb: 100.5 is not a whole number"),
            Row("more than the settings allow", {"volume_gb": 1001}, "volume_gb: 1001 is too large"),
            Row(
                "smaller than the image",
                {"volume_gb": 20},
                "volume_gb: 20 is too small for the image ami-0123456789abcdef0; allowed: at least 75",
            ),
        ),
    ),
    Section(
        "owner",
        "up to 128 letters, digits, spaces and _.:/=+@- (it becomes a tag), not beginning with aws:",
        taken="ada",
        left_out="",
        rows=(
            Row("null", {"owner": None}, "owner: null is not a string"),
            Row("a newline", {"owner": "ada\nb"}, 'owner: "ada\\nb" does not have the right form'),
            Row(
                "quotes and shell characters",
                {"owner": "'ada'; $(id)"},
                "owner: \"'ada'; $(id)\" does not have the right form",
            ),
            Row("{% %}", {"owner": "{% $states.input %}"}, 'owner: "{% $states.input %}" does not have the right form'),
            Row(
                "text turned from right to left",
                {"owner": "\u202eada"},
                'owner: "\\u202eada" does not have the right form',
            ),
            Row("129 characters", {"owner": "a" * 129}, "owner: has 129 characters"),
            Row(
                "the prefix that AWS keeps for itself",
                {"owner": "AWS:ada"},
                "owner: AWS:ada begins with a prefix that AWS keeps for itself",
            ),
            Row(
                "a letter and its accent as two characters (macOS writes them so)",
                {"owner": "Ame\u0301lie"},
                'owner: "Amélie" does not have the right form',
            ),
        ),
    ),
    Section(
        "several",
        "",
        rows=(
            Row(
                "fields of every kind at once",
                {
                    "nodes": "2",
                    "code": "s3://yard-home/uploads/b.zip",
                    "instance_types": ["g9.huge"],
                    "market": "spot",
                    "colour": "red",
                    "environment": {"1A": "x"},
                    "data": ["s3://datasets/cifar/"],
                },
                "name: the execution is called .job; allowed: 1 to 80 letters (a to z), digits, _, - and ., no . at the beginning",
                (
                    'nodes: "2" is not a whole number (numbers stand without quotes)'
                    "; allowed: a whole number from 1 to 16 (limits.max_nodes in cdk.json)"
                ),
                f"environment.1A: is not a variable name; allowed: {VARIABLE}",
                f"colour: there is no such field; allowed: {FIELDS}",
                "market: spot is not supported yet, and on-demand is not taken in its place; allowed: on-demand",
                "instance_types: g9.huge does not exist in eu-central-1; allowed: EC2 types that the region has",
                (
                    "code: s3://yard-home/uploads/b.zip does not exist"
                    "; allowed: an archive that was uploaded before the start"
                ),
                "data.0: there is nothing at s3://datasets/cifar/; allowed: objects and folders that exist",
                name=".job",
            ),
        ),
    ),
)

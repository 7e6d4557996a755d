"""Refusals of wrong values, and of inputs that are not a request."""

from __future__ import annotations

from tools.refusals.jobs.table import FIELDS, SECRET, VARIABLE, Row, Section

REGIONS = "regions in which the deployment trains, as in eu-central-1"
VALUES = (
    Section(
        "region",
        "a region in which the deployment trains (regions with a cidr or a vpc in cdk.json), as in eu-central-1",
        rows=(
            ("a list", ["eu-central-1"], "a list is not a string"),
            ("a number", 1, "1 is not a string"),
            ("an empty text", "", '"" does not have the right form'),
            ("a city", "Frankfurt", '"Frankfurt" does not have the right form'),
            ("a zone", "eu-central-1a", '"eu-central-1a" does not have the right form'),
            ("another region's line break and all", "eu-central-1\n", '"eu-central-1\\n" does not have the right form'),
            (
                "a region in which the deployment does not train",
                "us-east-1",
                "the deployment does not train in us-east-1; allowed: eu-central-1 (regions with a cidr or a vpc in cdk.json)",
            ),
        ),
    ),
    Section(
        "regions",
        "auto, or a list of 1 to 30 different training regions, as in eu-central-1",
        rows=(
            ("another word than auto", "all", '"all" is neither auto nor a list'),
            ("one region, not in a list", "eu-central-1", '"eu-central-1" is neither auto nor a list'),
            ("no region", [], "is empty"),
            ("a region twice", ["eu-central-1", "eu-central-1"], "eu-central-1 is named more than once"),
            (
                "a city",
                ["Frankfurt"],
                '.0: "Frankfurt" does not have the right form; allowed: regions in which the deployment trains, as in eu-central-1',
            ),
            (
                "null in the list",
                [None],
                f".0: null is not a string; allowed: {REGIONS}",
            ),
            (
                "one in which the deployment does not train",
                ["eu-central-1", "us-east-1"],
                "the deployment does not train in us-east-1; allowed: eu-central-1 (regions with a cidr or a vpc in cdk.json)",
            ),
        ),
    ),
    Section(
        "nodes",
        "a whole number from 1 to 16 (limits.max_nodes in cdk.json)",
        taken=16,
        left_out=1,
        rows=(
            ("zero", 0, "0 is too small"),
            ("negative", -1, "-1 is too small"),
            ("a number as text", "2", '"2" is not a whole number (numbers have no quotes)'),
            ("a fraction", 1.5, "1.5 is not a whole number"),
            ("true", True, "true is not a whole number"),
            ("null", None, "null is not a whole number"),
            ("a list", [2], "a list is not a whole number"),
            ("more than the settings allow", 17, "17 is too large"),
            ("huge", 10**30, "1000000000000000000000000000000 is too large"),
        ),
    ),
    Section(
        "efa",
        "auto, true, false (true and false without quotes)",
        rows=(
            ("true as text", "true", '"true" is not a mode'),
            ("one, which is not true", 1, "1 is not a mode"),
            ("null", None, "null is not a mode"),
            ("another word", "always", '"always" is not a mode'),
            ("a list", ["auto"], "a list is not a mode"),
            Row(
                "true for a type without EFA",
                {"efa": True, "nodes": 2},
                "efa: g5.xlarge has no EFA; allowed: auto, false, or types that have it, as in p5.48xlarge",
            ),
            Row(
                "true for several types, of which one has EFA",
                {"efa": True, "nodes": 2, "instance_types": ["g5.12xlarge", "g4dn.xlarge"]},
                "efa: g4dn.xlarge has no EFA; allowed: auto, false, or types that have it (of this request "
                "g5.12xlarge)",
            ),
        ),
    ),
    Section(
        "market",
        "on-demand, spot, spot-then-on-demand",
        rows=(
            ("no market", "auction", '"auction" is not a market'),
            ("null", None, "null is not a market"),
            ("two markets in a list", ["spot", "on-demand"], "a list is not a market"),
            ("the market of a reservation", "capacity-block", '"capacity-block" is not a market'),
        ),
    ),
    Section(
        "max_hours",
        "a number from 0.01 to 100 (limits.max_hours in cdk.json)",
        taken=0.5,
        left_out=24,
        rows=(
            ("zero", 0, "0 is too small"),
            ("negative", -8, "-8 is too small"),
            ("too short for a node to start", 0.001, "0.001 is too small"),
            ("NaN", float("nan"), "NaN is not a finite number"),
            ("infinite", float("inf"), "Infinity is not a finite number"),
            ("a number as text", "24", '"24" is not a number (numbers have no quotes)'),
            ("true", True, "true is not a number"),
            ("more than the settings allow", 101, "101 is too large"),
            ("huge", 1e300, "1e+300 is too large"),
        ),
    ),
    Section(
        "max_wait_hours",
        "a number from 0 to 336 (limits.max_wait_hours in cdk.json)",
        taken=48,
        left_out=0,
        rows=(
            ("negative", -1, "-1 is too small"),
            ("null", None, "null is not a number"),
            ("NaN", float("nan"), "NaN is not a finite number"),
            ("for ever", float("inf"), "Infinity is not a finite number"),
            ("a number as text", "48", '"48" is not a number (numbers have no quotes)'),
            ("true", True, "true is not a number"),
            ("a number of days with its unit", "14d", '"14d" is not a number (numbers have no quotes)'),
            ("more than the settings allow", 337, "337 is too large"),
            ("huge", 1e300, "1e+300 is too large"),
        ),
    ),
    Section(
        "checkpoint_minutes",
        "a number from 0.01 to 1440",
        taken=1440,
        left_out=10,
        rows=(
            ("zero", 0, "0 is too small"),
            ("longer than a day", 1441, "1441 is too large"),
            Row(
                "so long that a spot job of a day could lose half of it",
                {"market": "spot", "nodes": 2, "checkpoint_minutes": 720},
                "checkpoint_minutes: a job of 24 h on spot that commits every 720 min loses up to 24.0 node-hours of 48.0 whenever AWS "
                "takes a node back; allowed: 360 or less on spot, a quarter of max_hours",
            ),
            ("NaN", float("nan"), "NaN is not a finite number"),
            ("a number as text", "10", '"10" is not a number (numbers have no quotes)'),
        ),
    ),
    Section(
        "checkpoint_scope",
        "rank0, shards, auto",
        taken="shards",
        left_out="auto",
        rows=(
            ("one that does not exist", "rank1", '"rank1" is not a scope'),
            ("the number of a rank", 0, "0 is not a scope"),
            ("a list", ["rank0"], "a list is not a scope"),
            ("null", None, "null is not a scope"),
            Row(
                "rank 0 alone, where each node has shards",
                {"checkpoint_scope": "rank0", "checkpoint_layout": "dcp", "nodes": 4},
                "checkpoint_scope: rank0 leaves out the shards of 3 of 4 nodes, and checkpoint_layout is dcp, in which each node has some; "
                "allowed: shards, auto",
            ),
        ),
    ),
    Section(
        "checkpoint_layout",
        "auto, none, transformers, accelerate, lightning, dcp, deepspeed, megatron, orbax, keras, tensorflow, safetensors",
        taken="transformers",
        left_out="auto",
        rows=(
            ("another name of one", "huggingface", '"huggingface" is not a layout'),
            ("its name with a capital", "Lightning", '"Lightning" is not a layout'),
            ("a truth value", True, "true is not a layout"),
            ("two of them", ["transformers", "deepspeed"], "a list is not a layout"),
            ("null", None, "null is not a layout"),
        ),
    ),
    Section(
        "checkpoint_restore",
        "all, own",
        taken="own",
        left_out="all",
        rows=(
            ("one that does not exist", "newest", '"newest" is not a selection'),
            ("a truth value", True, "true is not a selection"),
            ("a list", ["own"], "a list is not a selection"),
            ("null", None, "null is not a selection"),
        ),
    ),
    Section(
        "environment",
        "an object of up to 200 names of variables and their values",
        entry="strings of up to 128,000 bytes",
        taken={"OMP_NUM_THREADS": "4"},
        left_out={},
        rows=(
            ("a list", ["A=b"], "a list is not an object"),
            ("a number as value", {"A": 1}, ".A: 1 is not a string"),
            ("null as value", {"A": None}, ".A: null is not a string"),
            (
                "invalid names",
                {"1A": "x", "A=B": "x", "$(id)": "x", "": "x"},
                f".1A: is not a variable name; allowed: {VARIABLE}",
                f".A=B: is not a variable name; allowed: {VARIABLE}",
                f".$(id): is not a variable name; allowed: {VARIABLE}",
                f'."": is not a variable name; allowed: {VARIABLE}',
            ),
            (
                "a variable of Trainyard's own",
                {"MASTER_ADDR": "10.0.0.1"},
                ".MASTER_ADDR: is set by Trainyard"
                "; allowed: any name but ARTIFACTS_DIR, ATTEMPT, CHECKPOINT_DIR, JOB_ID, MASTER_ADDR, MASTER_PORT,"
                " NODE_RANK, NUM_NODES, PROGRESS_FILE",
            ),
            ("a NUL character", {"A": "x\x00"}, ".A: holds a NUL character; allowed: all others"),
            (
                "half of a surrogate pair",
                {"A": "\ud800"},
                '.A: "\\ud800" is not valid Unicode (it holds half of a surrogate pair)',
            ),
            ("201 variables", {f"A{n}": "" for n in range(201)}, "has 201 entries"),
            ("a value longer than Linux takes", {"A": "x" * 128001}, ".A: has 128,001 characters"),
        ),
    ),
    Section(
        "volume_gb",
        "a whole number from 1 to 1000 (limits.max_volume_gb in cdk.json)",
        taken=1000,
        left_out=100,
        rows=(
            ("zero", 0, "0 is too small"),
            ("negative", -1, "-1 is too small"),
            ("a number as text", "100", '"100" is not a whole number (numbers have no quotes)'),
            ("a fraction", 100.5, "100.5 is not a whole number"),
            ("more than the settings allow", 1001, "1001 is too large"),
            ("smaller than the image", 20, "20 is too small for the image ami-0123456789abcdef0; allowed: at least 75"),
            Row(
                "smaller than the code alone",
                {"code": "s3://yard-home/uploads/weighty.zip", "volume_gb": 1},
                "volume_gb: 1 is too small for the image ami-0123456789abcdef0; allowed: at least 75",
                "volume_gb: 1 is too small for the code, which takes 2.0 GiB, packed and unpacked"
                "; allowed: more than 2, and room for the image and the checkpoints",
            ),
        ),
    ),
    Section(
        "job_role",
        "the name of a role (job_roles in cdk.json has them), as in datasets",
        taken="corpus",
        left_out="",
        rows=(
            ("a number", 7, "7 is not a string"),
            ("empty", "", '"" does not have the right form'),
            (
                "an ARN",
                "arn:aws:iam::123456789012:role/datasets",
                "has 39 characters",
            ),
            ("capital letters", "Datasets", '"Datasets" does not have the right form'),
            (
                "a name that the settings do not have",
                "dataset",
                "dataset is not a role of this deployment; allowed: corpus, datasets (job_roles in cdk.json)",
            ),
            Row(
                "variables that replace the credentials of the role",
                {
                    "job_role": "corpus",
                    "environment": {"AWS_PROFILE": "mine", "AWS_REGION": "eu-west-1"},
                    "secrets": {"AWS_ACCESS_KEY_ID": f"{SECRET}token"},
                },
                "environment.AWS_PROFILE: replaces the credentials of job_role"
                "; allowed: the variable or job_role, not both",
                "secrets.AWS_ACCESS_KEY_ID: replaces the credentials of job_role"
                "; allowed: the variable or job_role, not both",
            ),
        ),
    ),
    Section(
        "owner",
        "up to 128 letters, digits, spaces and _.:/=+@- (it becomes a tag), not beginning with aws:",
        taken="ada",
        left_out="",
        rows=(
            ("null", None, "null is not a string"),
            ("a newline", "ada\nb", '"ada\\nb" does not have the right form'),
            ("quotes and shell characters", "'ada'; $(id)", "\"'ada'; $(id)\" does not have the right form"),
            ("{% %}", "{% $states.input %}", '"{% $states.input %}" does not have the right form'),
            ("text turned from right to left", "\u202eada", '"\\u202eada" does not have the right form'),
            ("129 characters", "a" * 129, "has 129 characters"),
            (
                "the prefix that AWS keeps for itself",
                "AWS:ada",
                "AWS:ada begins with a prefix that AWS keeps for itself",
            ),
            (
                "a letter and its accent as two characters (macOS writes them so)",
                "Ame\u0301lie",
                '"Amélie" does not have the right form',
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
                    "market": "auction",
                    "colour": "red",
                    "environment": {"1A": "x"},
                    "data": ["s3://datasets/cifar/"],
                },
                "name: the execution is called .job; allowed: 1 to 80 letters (a to z), digits, _, - and ., not beginning with .",
                (
                    'nodes: "2" is not a whole number (numbers have no quotes)'
                    "; allowed: a whole number from 1 to 16 (limits.max_nodes in cdk.json)"
                ),
                'market: "auction" is not a market; allowed: on-demand, spot, spot-then-on-demand',
                f"environment.1A: is not a variable name; allowed: {VARIABLE}",
                f"colour: there is no such field; allowed: {FIELDS}",
                "instance_types: g9.huge does not exist in eu-central-1; allowed: EC2 types that the region has",
                "code: s3://yard-home/uploads/b.zip does not exist; allowed: an archive that was uploaded before the start",
                "data.0: there is nothing at s3://datasets/cifar/; allowed: objects and folders that exist",
                name=".job",
            ),
        ),
    ),
)

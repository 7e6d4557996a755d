"""Templates and places that are no lines of a manifest, and objectives that their trainings do not report."""

from __future__ import annotations

from contract.metric_values import write_expression
from refusals.expressions import MAY_BE
from tools.refusals.searches.row import Row
from tools.refusals.searches.yard import JOB, template

BY_JOB = {"metric": "metric", "direction": "minimize"}
REGIONS = "eu-central-1, us-east-1, us-west-2, ap-south-1"
IMAGE = "allowed: an image that was built or copied there (docs/guides/images.md)"
ROWS = (
    Row(
        "an unknown image",
        f"template.image: images:v9 does not exist in eu-central-1; {IMAGE}",
        given={"template": template(image="images:v9")},
    ),
    Row(
        "a field of jobs, and a number as text",
        'template.volume_gb: "30" is not a whole number (numbers have no quotes)',
        "template.instance_types: is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out",
        given={"template": template(volume_gb="30", instance_types=["ml.g5.xlarge"])},
    ),
    Row(
        "a distribution that a command replaces",
        "template.distribution: mpi is read by AWS's toolkit, whose start entrypoint replaces, so every instance would run its command "
        "once, and alone; allowed: program train.py with hyperparameters as its arguments, in place of entrypoint, or none",
        given={"template": template(command=["python", "train.py"], distribution="mpi", instance_count=2)},
    ),
    Row(
        "a type without a price, and a cap",
        "template.instance_type: the price of ml.g5.2xlarge in eu-central-1 is unknown, so the plan cannot keep to max_cost_usd; "
        "allowed: other types, or no max_cost_usd",
        given={"template": template(instance_type="ml.g5.2xlarge"), "max_cost_usd": 100},
    ),
    Row(
        "a cap that pays no round",
        "max_cost_usd: 6.99 is less than 7.00, which the trials of the first round could cost until their time-outs at on-demand "
        "prices; allowed: a larger max_cost_usd, or fewer parallel, instances or hours",
        given={"max_cost_usd": 6.999},
    ),
    Row(
        "a checkpoint for all trials",
        "template.checkpoint: would be that of several trials, each of which goes on from the one before; allowed: left out, and each has "
        "one of its own",
        given={
            "template": template(checkpoint="s3://yard-bytes-111122223333-eu-central-1/grids/old/00000000/checkpoints")
        },
    ),
    Row(
        "a metric without a definition",
        "objective.metric: loss is not defined by template.metrics, which define accuracy; allowed: one of them, or its regular "
        f'expression in template.metrics, as in {{"loss": "{write_expression("loss")}"}}',
        given={"objective": {"metric": "loss", "direction": "minimize"}},
    ),
    Row(
        "a template without metrics",
        "objective.metric: accuracy is not defined by template.metrics, which define none; allowed: one of them, or its regular "
        f'expression in template.metrics, as in {{"accuracy": "{write_expression("accuracy")}"}}',
        given={"template": template(metrics=None)},
    ),
    Row(
        "expressions that give no value",
        f"template.metrics.accuracy: accuracy= has no group, which would say where the value stands; allowed: {MAY_BE}",
        f"places.0.metrics.accuracy: accuracy=[ is no regular expression: unterminated character set at position 9; "
        f"allowed: {MAY_BE}",
        given={
            "template": template(metrics={"accuracy": "accuracy="}),
            "places": [{"metrics": {"accuracy": "accuracy=["}}, {}],
        },
    ),
    Row(
        "a metric that jobs do not have",
        "objective.metric: accuracy is no metric of a job; allowed: metric, the one in PROGRESS_FILE, with the backend ec2",
        given={"template": JOB},
    ),
    Row(
        "a cap of the search, and none of its jobs",
        "template.max_cost_usd: the line has none, and what a job costs is not known before it starts, so the plan cannot keep to the "
        "input's; allowed: max_cost_usd in each line with the backend ec2, or none in the input",
        given={"template": JOB, "objective": BY_JOB, "max_cost_usd": 50},
    ),
    Row(
        "caps of jobs that are more than that of the search",
        "max_cost_usd: 5.00 is less than 8.00, which the trials of the first round could cost until their time-outs at on-demand "
        "prices; allowed: a larger max_cost_usd, or fewer parallel, instances or hours",
        given={"template": {**JOB, "max_cost_usd": 2}, "objective": BY_JOB, "max_cost_usd": 5},
    ),
    Row(
        "a template whose command leaves each node by itself",
        "template.command: accelerate launch would not join the 2 nodes into one training: it names no number of nodes (--num_machines); "
        'allowed: "launcher": "torchrun" with "command": ["train.py", ...], or bash -c with accelerate launch --num_machines $NUM_NODES '
        "--machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT ... (with --num_processes for all "
        "nodes together)",
        given={
            "template": {**JOB, "nodes": 2, "command": ["accelerate", "launch", "train.py"]},
            "objective": BY_JOB,
        },
    ),
    Row(
        "a template that sweeps",
        "template.sweep: makes several trainings of a trial; allowed: search",
        given={"template": template(sweep={"depth": [1, 2]})},
    ),
    Row(
        "wrong regions of two places",
        "places.1.region: mars is not a region name",
        f"places.2.region: eu-west-3 is not a region of yard; allowed: auto, {REGIONS}",
        given={
            "template": template(region=None),
            "places": [{"region": "eu-central-1"}, {"region": "mars"}, {"region": "eu-west-3"}],
        },
    ),
    Row(
        "the same wrong region in every place",
        "places.0.region: mars is not a region name",
        "places.1.region: mars is not a region name",
        given={"template": template(region=None), "places": [{"region": "mars"}, {"region": "mars", "volume_gb": 50}]},
    ),
    Row(
        "a wrong region in a place that no trial of the first round has",
        "places.5.region: mars is not a region name",
        given={
            "template": template(region=None),
            "places": [*[{"region": "eu-central-1"}] * 5, {"region": "mars"}],
        },
    ),
    Row(
        "an image that one place lacks",
        f"template.image: images:v1 does not exist in us-east-1; {IMAGE}",
        given={"template": template(region=None), "places": [{"region": "eu-central-1"}, {"region": "us-east-1"}]},
    ),
    Row(
        "places with hyperparameters and sweeps of their own",
        "places.0.hyperparameters: would differ between places; allowed: in the template",
        "places.1.sweep: makes several trainings of a trial; allowed: search",
        given={"places": [{"hyperparameters": {"epochs": 1}}, {"sweep": {"epochs": [1, 2]}}]},
    ),
    Row(
        "a place whose trainings do not report the objective",
        "objective.metric: accuracy is not defined by places.1.metrics, which define loss; allowed: one of them, or its regular "
        f'expression in places.1.metrics, as in {{"accuracy": "{write_expression("accuracy")}"}}',
        given={"places": [{"region": "eu-central-1"}, {"metrics": {"loss": write_expression("loss")}}]},
    ),
    Row("no place", "places: is empty", given={"places": []}),
)

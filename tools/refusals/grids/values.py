"""Lines with values beyond what the deployment or SageMaker takes."""

from __future__ import annotations

from grid_plan.manifest import JSON_FORM
from grid_plan.policy import CHECKPOINTS
from refusals.expressions import MAY_BE
from tools.refusals.grids.row import BYTES, FOLDER, MISSING, Row, line
from tools.refusals.grids.yard import ACCOUNT

ROWS = (
    Row(
        "more than the limits",
        line(instance_count=17, volume_gb=2001, max_hours=73),
        "line 1: instance_count: 17 is too large",
        "line 1: volume_gb: 2001 is too large",
        "line 1: max_hours: 73 is too large",
    ),
    Row(
        "counts below one",
        line(instance_count=0, volume_gb=-1, max_hours=0),
        "line 1: instance_count: 0 is too small",
        "line 1: volume_gb: -1 is too small",
        "line 1: max_hours: 0 is too small",
    ),
    Row(
        "counts that no machine has",
        line(instance_count=10**400, volume_gb=1e300),
        f"line 1: instance_count: 1{'0' * 79}... is too large",
        f"line 1: volume_gb: {str(int(1e300))[:80]}... is too large",
        shown="counts of 401 and of 301 digits",
    ),
    Row(
        "options of mpirun that are no words",
        line(distribution="mpi", mpi_options="-x 'A"),
        "line 1: mpi_options: -x 'A cannot be split into words (No closing quotation); allowed: options of mpirun, quoted as for a shell",
    ),
    Row(
        "a NUL character where any text may be",
        line(distribution="mpi", mpi_options="-x A\0", hyperparameters={"a": [{"b\0": 1}]}),
        "line 1: mpi_options: holds a NUL character; allowed: all others",
        "line 1: hyperparameters.a.0.b\\u0000: holds a NUL character; allowed: all others",
    ),
    Row("an unknown market", line(market="reserved"), "line 1: market: reserved is not one of them"),
    Row(
        "a wait with on-demand capacity",
        line(max_wait_hours=5),
        "line 1: max_wait_hours: means nothing with the market on-demand",
    ),
    Row(
        "a wait for spot capacity that is too long",
        line(market="spot", max_hours=5, max_wait_hours=97),
        "line 1: max_wait_hours: 97 is too large; allowed: a number from max_hours to 96 "
        "(grid.limits.max_hours and a day), for the market spot only",
    ),
    Row(
        "a wait shorter than the run",
        line(market="spot", max_hours=5, max_wait_hours=4),
        "line 1: max_wait_hours: 4 is less than max_hours, which is 5",
    ),
    Row(
        "101 hyperparameters",
        line(hyperparameters={f"h{number}": 1 for number in range(101)}),
        "line 1: hyperparameters: has 101 entries",
        shown="an object of 101 names",
    ),
    Row(
        "100 hyperparameters and mpi",
        line(hyperparameters={f"h{number}": 1 for number in range(100)}, distribution="mpi"),
        "line 1: hyperparameters: are 102 with those of sweep, program and distribution; allowed: up to 100",
        shown="an object of 100 names, and mpi",
    ),
    Row(
        "a hyperparameter too long",
        line(hyperparameters={"text": "x" * 2501, "n" * 257: 1}),
        "line 1: hyperparameters.text: has 2,501 characters; allowed: up to 2,500 (long values belong in the data)",
        f"line 1: hyperparameters.{'n' * 80}...: is a name of 257 characters; allowed: 1 to 256 characters",
        shown="a value of 2,501 characters, a name of 257",
    ),
    Row(
        "101 variables",
        line(environment={f"V{number}": "" for number in range(101)}),
        "line 1: environment: has 101 entries",
        shown="an object of 101 names",
    ),
    Row(
        "invalid variables",
        line(environment={"A-B": "", "C": "x" * 513}),
        "line 1: environment.A-B: A-B is not a variable name; allowed: letters, digits and _",
        "line 1: environment.C: has 513 characters; allowed: up to 512",
        shown="a variable A-B, and a text of 513 characters",
    ),
    Row(
        "tags that are taken",
        line(tags={"aws:x": "1", "Trainyard:grid": "mine", "a<b": "1"}),
        "line 1: tags.aws:x: begins with a reserved prefix; allowed: keys without aws: and trainyard:",
        "line 1: tags.Trainyard:grid: begins with a reserved prefix; allowed: keys without aws: and trainyard:",
        'line 1: tags.a<b: "a<b" does not have the right form',
    ),
    Row(
        "tags that differ in capitals alone",
        line(tags={"run": "1", "Run": "2"}),
        "line 1: tags.run: the line has Run too; allowed: one of them",
    ),
    Row(
        "46 tags",
        line(tags={f"t{number}": "" for number in range(46)}),
        "line 1: tags: has 46 entries",
        shown="an object of 46 tags",
    ),
    Row(
        "41 metrics",
        line(metrics={f"m{number}": "(x)" for number in range(41)}),
        "line 1: metrics: has 41 entries",
        shown="an object of 41 metrics",
    ),
    Row("an empty expression", line(metrics={"loss": ""}), "line 1: metrics.loss: is empty"),
    Row(
        "expressions that give no value",
        line(
            metrics={
                "open": "loss=(",
                "bare": "loss=[0-9.]+",
                "apart": "loss=(?:[0-9.]+)",
                "lines": "loss=\n([0-9.]+)",
                "slow": "loss=(([0-9]+)+);",
            }
        ),
        f"line 1: metrics.open: loss=( is no regular expression: missing ), unterminated subpattern at position 5; allowed: {MAY_BE}",
        f"line 1: metrics.bare: loss=[0-9.]+ has no group, which would say where the value stands; allowed: {MAY_BE}",
        f"line 1: metrics.apart: loss=(?:[0-9.]+) has no group, which would say where the value stands; allowed: {MAY_BE}",
        f"line 1: metrics.lines: loss=\\u000a([0-9.]+) holds a line end, which SageMaker does not take; allowed: {MAY_BE}",
        f"line 1: metrics.slow: loss=(([0-9]+)+); repeats a repeat, and needs hours for a line with 64 times '0'; allowed: {MAY_BE}",
    ),
    Row(
        "an expression of a column, and one of a line on clusters of our own",
        "region,data,backend,metric.loss\n"
        "eu-central-1,s3://data-eu/train/,,loss=[\n"
        "eu-central-1,s3://data-eu/train/,ec2,loss=x\n",
        f"line 2: metrics.loss: loss=[ is no regular expression: unterminated character set at position 5; allowed: {MAY_BE}",
        f"line 3: metrics.loss: loss=x has no group, which would say where the value stands; allowed: {MAY_BE}",
    ),
    Row(
        "21 channels",
        line(channels={f"c{number}": "s3://data-eu/train/" for number in range(20)}),
        "line 1: channels: are 21 with those of data and code; allowed: up to 20",
        shown="data, and 20 channels",
    ),
    Row(
        "an invalid channel",
        line(channels={"a b": "s3://data-eu/train/", "c": {"data": [], "mod": 1}}, mode="Fast"),
        "line 1: mode: Fast is not one of them",
        "line 1: channels.a b: a b is not a channel name",
        "line 1: channels.c.data: is empty",
        "line 1: channels.c.mod: there is no such field (did you mean mode?); allowed: data, mode, content_type, sharded",
    ),
    Row(
        "a channel twice",
        line(channels={"training": "s3://data-eu/train/"}),
        "line 1: channels.training: is also the channel of data; allowed: different names",
    ),
    Row(
        "a checkpoint that two lines share",
        line(checkpoint=FOLDER) + line(checkpoint=FOLDER, volume_gb=31),
        "line 2: checkpoint: is that of line 1 too; allowed: a folder for this training alone, or none",
    ),
    Row(
        "a checkpoint that a sweep shares",
        line(checkpoint=FOLDER, sweep={"lr": [1, 2]}),
        "line 1: checkpoint: is that of each training of the sweep too; allowed: a folder for this training alone, or none",
    ),
    Row(
        "a checkpoint in a bucket of data",
        line(checkpoint="s3://data-eu/checkpoints"),
        "line 1: checkpoint: s3://data-eu/checkpoints is not a line's folder of checkpoints; allowed: "
        f"s3://{BYTES}-<region>/{CHECKPOINTS}",
    ),
    Row(
        "a checkpoint that is a whole grid",
        line(checkpoint=f"s3://{BYTES}-eu-central-1/grids/old"),
        f"line 1: checkpoint: s3://{BYTES}-eu-central-1/grids/old is not a line's folder of checkpoints; allowed: s3://{BYTES}-<region>/{CHECKPOINTS}",
    ),
    Row(
        "a checkpoint that is another line's model",
        line(checkpoint=f"s3://{BYTES}-eu-central-1/grids/old/00000001/output"),
        f"line 1: checkpoint: s3://{BYTES}-eu-central-1/grids/old/00000001/output is not a line's folder of checkpoints; "
        f"allowed: s3://{BYTES}-<region>/{CHECKPOINTS}",
    ),
    Row(
        "a checkpoint of a grid that runs",
        line(checkpoint=f"s3://{BYTES}-eu-central-1/grids/young/00000001/checkpoints"),
        f"line 1: checkpoint: s3://{BYTES}-eu-central-1/grids/young/00000001/checkpoints belongs to a grid that has not ended; "
        "allowed: a folder of a grid whose report.json is there",
    ),
    Row(
        "a checkpoint in another region",
        line(region="us-east-1", data="s3://data-us/train/", checkpoint=FOLDER),
        f"line 1: checkpoint: s3://{BYTES}-eu-central-1/grids/old/00000001/checkpoints lies in "
        f"eu-central-1; allowed: s3://{BYTES}-us-east-1/{CHECKPOINTS}",
    ),
    Row(
        "an unknown distribution",
        line(distribution="horovod"),
        "line 1: distribution: horovod is not one of them",
    ),
    Row(
        "a distribution that a command replaces",
        line(command=["python", "train.py"], distribution="torchrun", instance_count=2),
        "line 1: distribution: torchrun is read by AWS's toolkit, whose start entrypoint replaces, so every instance would run its command "
        "once, and alone; allowed: program train.py with hyperparameters as its arguments, in place of entrypoint, or none",
    ),
    Row(
        "a distribution that arguments replace",
        line(arguments=["--lr", "0.1"], distribution="mpi"),
        "line 1: distribution: mpi is read by AWS's toolkit, whose start arguments replaces, so every instance would run its command once, "
        "and alone; allowed: program (a file of the code or of the image) with hyperparameters as its arguments, in place of arguments, "
        "or none",
    ),
    Row(
        "an argument at which mpirun begins another program",
        line(program="train.py", distribution="mpi", hyperparameters={"separator": ":"}),
        "line 1: distribution: mpi would read the word : of the program's arguments as the begin of another program; allowed: torchrun, "
        "none, or arguments without the word :",
    ),
    Row(
        "options of mpirun without mpi",
        line(distribution="torchrun", processes_per_host=8, mpi_options="-x A"),
        "line 1: processes_per_host: means nothing with the distribution torchrun",
        "line 1: mpi_options: means nothing with the distribution torchrun",
    ),
    Row(
        "an entry point that starts processes on each instance by itself",
        line(instance_count=2, entrypoint=["torchrun", "--nproc-per-node", "4", "train.py"]),
        "line 1: entrypoint: torchrun would not join the 2 machines into one training: it names no number of nodes (--nnodes); allowed: "
        '"distribution": "torchrun" with "program": "train.py"',
    ),
    Row(
        "a hyperparameter that mpi becomes",
        line(distribution="mpi", hyperparameters={"sagemaker_mpi_enabled": True}),
        "line 1: hyperparameters.sagemaker_mpi_enabled: is set by distribution; allowed: one of them",
    ),
    Row(
        "subnets and security groups",
        line(subnets=["subnet-0123456789abcdef0"], security_groups=["sg-01234567"]),
        "line 1: subnets: the role of trainings has no right on networks",
        "line 1: security_groups: the role of trainings has no right on networks",
    ),
    Row("no subnet", line(subnets=["vpc-1"]), "line 1: subnets.0: vpc-1 is not a subnet id"),
    Row(
        "a key of another region",
        line(kms_key=f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1"),
        "line 1: kms_key: arn:aws:kms:us-east-1:111122223333:key/1 is not a key of the line's region; "
        "allowed: its id or its alias, or a key of eu-central-1",
    ),
    Row(
        "strings that are not KMS keys",
        line(kms_key="ours", volume_kms_key="nan"),
        "line 1: kms_key: ours is not a KMS key",
        f"line 1: volume_kms_key: nan {MISSING}",
    ),
    Row("a channel without a name", line(channel="null"), f"line 1: channel: null {MISSING}"),
    Row("a number with a fraction", line(instance_count=2.5), "line 1: instance_count: 2.5 is not a whole number"),
    Row("a sweep over nothing", line(sweep={"lr": []}), "line 1: sweep.lr: is empty"),
    Row(
        "a sweep with a value twice",
        line(sweep={"lr": [1, "1"]}),
        "line 1: sweep.lr: has 1 twice; allowed: different values",
    ),
    Row(
        "a sweep over a hyperparameter that is set",
        line(sweep={"lr": [1, 2]}, hyperparameters={"lr": 3}),
        "line 1: sweep.lr: is in hyperparameters too; allowed: one of them",
    ),
    Row(
        "a sweep of a million",
        line(sweep={name: list(range(100)) for name in "abc"}),
        "line 1: sweep: makes 1,000,000 trainings of this line; allowed: up to 10,000 (grid.limits.max_lines in cdk.json)",
        shown="a sweep of three lists of 100",
    ),
    Row(
        "a cap that the plan could pass",
        line(instance_count=2, max_hours=10),
        "max_cost_usd: 20.00 is less than 35.00, which the trainings could cost until their time-outs "
        "at on-demand prices; allowed: a larger max_cost_usd, or fewer lines, instances or hours",
        given={"max_cost_usd": 20},
    ),
    Row(
        "a cap and an unknown price",
        line(instance_type="ml.m5.24xlarge"),
        "line 1: instance_type: the price of ml.m5.24xlarge in eu-central-1 is unknown, so the plan cannot "
        "keep to max_cost_usd; allowed: other types, or no max_cost_usd",
        given={"max_cost_usd": 20},
    ),
    Row(
        "everything at once",
        line(image="imags:v1", instance_type="ml.x", volume_gb="1", data="s3://data-eu/none/")
        + '{"region"\n'
        + line(max_hours=100, region="us-east-1"),
        'line 1: volume_gb: "1" is not a whole number (numbers have no quotes)',
        "line 1: instance_type: ml.x is not an instance type of SageMaker training; allowed: types as in ml.g5.xlarge",
        "line 1: data: there is nothing at s3://data-eu/none/; allowed: objects and folders that exist",
        "line 1: image: imags:v1 is not in a repository of yard, and AWS's containers of eu-central-1 lack it; allowed: images, grid, "
        "or name and tag of one of AWS's",
        f"line 2: is not JSON (Expecting ':' delimiter at place 11); allowed: {JSON_FORM}",
        "line 3: max_hours: 100 is too large",
        (
            "line 3: data: lies in eu-central-1, and SageMaker in us-east-1 reads only buckets of that "
            "region; allowed: a copy in us-east-1, or the region auto or eu-central-1"
        ),
    ),
)

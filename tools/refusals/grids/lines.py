"""Lines whose data, images or machines do not exist, or may not be used by this deployment."""

from __future__ import annotations

from tools.refusals.grids.row import CONTAINER, FIELDS, GOOD, OURS, PLACES, STRANGE, Row, line
from tools.refusals.grids.yard import BUCKET, DEFAULTS

ROWS = (
    Row(
        "an unknown field",
        line(hyperparameter={"lr": 1}),
        f"line 1: hyperparameter: there is no such field (did you mean hyperparameters?); allowed: {FIELDS}",
    ),
    Row(
        "the placeholder of an example",
        line(data="s3://trainyard-bytes-REPLACE-WITH-ACCOUNT-eu-central-1/uploads/digits/"),
        "line 1: data: s3://trainyard-bytes-REPLACE-WITH-ACCOUNT-eu-central-1/uploads/digits/ has the placeholder of the example; allowed: "
        "the number of the account in the place of REPLACE-WITH-ACCOUNT",
    ),
    Row(
        "numbers as text",
        line(instance_count="2", max_hours="1"),
        'line 1: instance_count: "2" is not a whole number (numbers have no quotes)',
        'line 1: max_hours: "1" is not a number (numbers have no quotes)',
    ),
    Row(
        "wrong types",
        line(data=3, hyperparameters=[1], network_isolation=1, environment={"A": 1}),
        "line 1: data: 3 is not a list",
        "line 1: hyperparameters: a list is not an object",
        "line 1: environment.A: 1 is not a string; allowed: strings of up to 512 characters",
        "line 1: network_isolation: 1 is neither true nor false",
    ),
    Row(
        "nothing said",
        "{}\n",
        (
            "line 1: image: is missing; allowed: repository:tag or repository@sha256:... of the "
            "deployment's repositories, name and tag of a Deep Learning Container of AWS, or the whole address in a private ECR "
            "registry, as a column of the manifest, in the input's defaults or as grid.defaults.image in cdk.json"
        ),
        (
            "line 1: instance_type: is missing; allowed: a type of SageMaker trainings, ml.g5.*, ml.m5.* "
            "(grid.limits.instance_types in cdk.json), as a column of the manifest, in the input's "
            "defaults or as grid.defaults.instance_type in cdk.json"
        ),
        without=("image", "instance_type"),
    ),
    Row(
        "equal lines",
        GOOD + "us-east-1,s3://data-us/train/\n" + GOOD + GOOD,
        'lines 3 and 4: is the same as line 1; allowed: each training once, or "allow_duplicates": true in the input',
    ),
    Row(
        "equal lines by other words",
        line() + line(s3_location="s3://data-eu/train/", data=None),
        'line 2: is the same as line 1; allowed: each training once, or "allow_duplicates": true in the input',
    ),
    Row(
        "an invalid region",
        "mars,s3://data-eu/train/\n",
        "line 1: region: mars is not a region name",
        given={"defaults": DEFAULTS | {"volume_gb": 5}},
    ),
    Row(
        "a region of others",
        "eu-west-3,s3://data-eu/train/\n",
        "line 1: region: eu-west-3 is not a region of yard; allowed: auto, eu-central-1, us-east-1, us-west-2, ap-south-1",
    ),
    Row(
        "data in another region",
        "us-east-1,s3://data-eu/train/\n",
        "line 1: data: lies in eu-central-1, and SageMaker in us-east-1 reads only buckets of that "
        "region; allowed: a copy in us-east-1, or the region auto or eu-central-1",
    ),
    Row(
        "data in regions of which none is common",
        line(region="auto", channels={"validation": "s3://data-us/train/"}),
        "line 1: channels.validation: lies in us-east-1, where this training cannot run; allowed: a copy in eu-central-1",
    ),
    Row(
        "nothing under an address",
        GOOD.replace("train", "none"),
        "line 1: data: there is nothing at s3://data-eu/none/; allowed: objects and folders that exist",
    ),
    Row(
        "a bucket that is not ours",
        GOOD.replace("data-eu", "elsewhere"),
        f"line 1: data: s3://elsewhere/train/ is not in a place that trainings may read; allowed: {PLACES}",
    ),
    Row(
        "a bucket that denies access",
        "us-east-1,s3://partner/x/\n",
        "line 1: data: s3://partner/x/ cannot be read: S3 answers 403, so the bucket belongs to another "
        "account, or its policy or key denies the deployment access; allowed: what the deployment may "
        "read",
    ),
    Row(
        "a deleted bucket",
        "us-east-1,s3://retired/x/\n",
        "line 1: data: s3://retired/x/ cannot be read: there is no such bucket; allowed: what the deployment may read",
    ),
    Row(
        "decisions as data",
        f"eu-central-1,s3://{BUCKET}/grids/old/\n",
        f"line 1: data: s3://yard-home-111122223333-eu-central-1/grids/old/ is not in a place that trainings may read; allowed: {PLACES}",
    ),
    Row(
        "no address",
        "eu-central-1,/data/train\n",
        "line 1: data.0: /data/train is not an S3 address; allowed: s3://bucket/key",
    ),
    Row(
        "an address that climbs",
        "eu-central-1,s3://data-eu/../train\n",
        "line 1: data.0: s3://data-eu/../train has a part '..'; allowed: the plain key",
    ),
    Row(
        "an image that no region has",
        line(image="images:v2"),
        "line 1: image: images:v2 does not exist in eu-central-1; allowed: an image that was built or copied there (docs/guides/images.md)",
    ),
    Row(
        "an image that only home has",
        "us-east-1,s3://data-us/train/\n",
        "line 1: image: images:v1 does not exist in us-east-1; allowed: an image that was built or copied there (docs/guides/images.md)",
    ),
    Row(
        "an unknown repository",
        line(image="imags:v1"),
        "line 1: image: imags:v1 is not in a repository of yard, and AWS's containers of eu-central-1 lack it; allowed: images, grid, "
        "or name and tag of one of AWS's",
    ),
    Row(
        "a container of AWS in a region without them",
        line(region="ap-south-1", data="s3://data-ap/train/", image="pytorch-training:2.8"),
        "line 1: image: pytorch-training:2.8 is not in a repository of yard, and no containers of AWS are known in ap-south-1; "
        "allowed: images, grid",
    ),
    Row("an image without a tag", line(image="images"), "line 1: image: images has neither a tag nor a digest"),
    Row(
        "an image of a public registry",
        line(image="public.ecr.aws/docker/library/python:3.12"),
        "line 1: image: public.ecr.aws/docker/library/python:3.12 is not in a private ECR registry, "
        "and SageMaker pulls only from those; allowed: copy it into the deployment first (docs/guides/images.md)",
    ),
    Row(
        "an image of another deployment",
        line(image=OURS),
        "line 1: image: 111122223333.dkr.ecr.eu-central-1.amazonaws.com/lab/images:1 is not a repository "
        "of this deployment; allowed: images, grid",
    ),
    Row(
        "an image of a registry that denies access",
        line(image=STRANGE),
        "line 1: image: 999988887777.dkr.ecr.eu-central-1.amazonaws.com/lab/x:1 cannot be checked "
        "(ECR answers AccessDeniedException); allowed: the deployment's own images, and AWS's Deep "
        "Learning Containers of the region",
    ),
    Row(
        "a container of AWS that another region lacks",
        line(region="us-east-1", data="s3://data-us/train/", image=CONTAINER),
        "line 1: image: 763104351884.dkr.ecr.eu-central-1.amazonaws.com/pytorch-training:2.8 is not in a repository of yard, and AWS's "
        "containers of us-east-1 lack it; allowed: images, grid, or name and tag of one of AWS's",
    ),
    Row(
        "another owner's image of another region",
        line(
            region="us-east-1",
            data="s3://data-us/train/",
            image="999988887777.dkr.ecr.eu-central-1.amazonaws.com/lab/x:1",
        ),
        "line 1: image: 999988887777.dkr.ecr.eu-central-1.amazonaws.com/lab/x:1 lies in "
        "eu-central-1, and SageMaker in us-east-1 pulls only from registries of that region; allowed: "
        "the same image in us-east-1, or copy it into the deployment first (docs/guides/images.md)",
    ),
    Row(
        "an unknown type",
        line(instance_type="ml.g5.xlage"),
        "line 1: instance_type: ml.g5.xlage is not an instance type of SageMaker training (did you mean "
        "ml.g5.xlarge?); allowed: types as in ml.g5.xlarge",
    ),
    Row(
        "a type of EC2",
        line(instance_type="g5.xlarge"),
        "line 1: instance_type: g5.xlarge is not an instance type of SageMaker training (did you mean "
        "ml.g5.xlarge?); allowed: types as in ml.g5.xlarge",
    ),
    Row(
        "a type that is not allowed",
        line(instance_type="ml.p4d.24xlarge"),
        "line 1: instance_type: ml.p4d.24xlarge is not allowed in this deployment; allowed: ml.g5.*, ml.m5.* "
        "(grid.limits.instance_types in cdk.json)",
    ),
)

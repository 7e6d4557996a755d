"""Refusals of fields that name something in the account."""

from __future__ import annotations

from tools.refusals.jobs import archives, git
from tools.refusals.jobs.table import CODE, DATA, LEAST, OURS, SECRET, Row, Section

WITHOUT_TYPES = {name: value for name, value in LEAST.items() if name != "instance_types"}
THERE = "A10G:1, A10G:4, L4:1, Radeon Pro V520:1, T4:1, T4:8, Trainium:1, V100:1 (limits.instance_types in cdk.json)"

LOOKED_UP = (
    Section(
        "name",
        "1 to 80 letters (a to z), digits, _, - and ., not beginning with .",
        rows=(
            Row(
                "longer than Step Functions allows",
                {},
                "name: the execution is called aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...",
                name="a" * 81,
            ),
            Row("a space", {}, "name: the execution is called my job", name="my job"),
            Row("a dot first", {}, "name: the execution is called .job", name=".job"),
            Row("a way up", {}, "name: the execution is called ..", name=".."),
            Row(
                "characters that Step Functions takes and keys show escaped",
                {},
                "name: the execution is called a+b=c(d)",
                name="a+b=c(d)",
            ),
            Row("letters beyond ASCII", {}, "name: the execution is called müll", name="müll"),
            Row(
                "shell characters and a newline",
                {},
                "name: the execution is called a;rm -rf /\\u000a",
                name="a;rm -rf /\n",
            ),
            Row("right-to-left text", {}, "name: the execution is called job-\\u202eabc", name="job-\u202eabc"),
            Row(
                "the name of another execution's job",
                {},
                "name: taken is the name of a job of another execution"
                " (arn:aws:states:eu-central-1:123456789012:execution:yard-train:another)"
                "; allowed: a name that no job has had",
                name="taken",
            ),
            Row(
                "the name of a job whose execution Step Functions has forgotten (after 90 days)",
                {},
                "name: job-of-spring is the name of a job of another execution of the same name, of 2026-09-01 08:00 UTC, whose"
                " files are kept"
                "; allowed: a name that no job has had",
                name="job-of-spring",
            ),
        ),
    ),
    Section(
        "code",
        CODE,
        rows=(
            ("null", None, "null is not a string"),
            ("a number", 7, "7 is not a string"),
            ("empty", "", '"" is not an S3 address; allowed: s3://bucket/key'),
            (
                "no S3 address",
                "https://example.com/a.zip",
                "https://example.com/a.zip is not an S3 address",
            ),
            ("no bucket", "s3:///a.zip", "s3:///a.zip has no bucket; allowed: s3://bucket/key"),
            ("no bucket's name", "s3://My_Bucket/a.zip", "My_Bucket is not a bucket name; allowed: s3://bucket/key"),
            (
                "a part ..",
                "s3://yard-home/uploads/../jobs/a.zip",
                "s3://yard-home/uploads/../jobs/a.zip has a part '..'; allowed: the plain key",
            ),
            (
                "a newline",
                "s3://yard-home/uploads/a\n.zip",
                "s3://yard-home/uploads/a\\u000a.zip has control characters; allowed: s3://bucket/key without them",
            ),
            (
                "half of a surrogate pair",
                "s3://yard-home/uploads/\ud800.zip",
                '"s3://yard-home/uploads/\\ud800.zip" is not valid Unicode (it holds half of a surrogate pair)',
            ),
            (
                "a key longer than S3 allows",
                "s3://yard-home/uploads/" + "k" * 1013 + ".zip",
                "s3://yard-home/uploads/kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk... has a key"
                " of 1,025 bytes"
                "; allowed: up to 1,024 bytes",
            ),
            (
                "another kind of archive",
                "s3://yard-home/uploads/a.rar",
                "s3://yard-home/uploads/a.rar is not named like an archive",
            ),
            (
                "no object",
                "s3://yard-home/uploads/b.zip",
                "s3://yard-home/uploads/b.zip does not exist; allowed: an archive that was uploaded before the start",
            ),
            (
                "an empty object",
                "s3://yard-home/uploads/empty.zip",
                "s3://yard-home/uploads/empty.zip is empty; allowed: up to 5 GB (large data belongs in a data bucket)",
            ),
            (
                "an archive of nothing",
                "s3://yard-home/uploads/nothing.tar.gz",
                "s3://yard-home/uploads/nothing.tar.gz is an empty archive; allowed: an archive of what the command runs",
            ),
            (
                "no archive",
                "s3://yard-home/uploads/broken.tar.gz",
                "s3://yard-home/uploads/broken.tar.gz cannot be read (truncated header); allowed: a whole .tar.gz, .tgz, .tar or .zip",
            ),
            (
                "larger than S3 copies in one piece",
                "s3://yard-home/uploads/large.zip",
                "s3://yard-home/uploads/large.zip has 6.0 GB; allowed: up to 5 GB (large data belongs in a data bucket)",
            ),
            (
                "in an archive class of S3",
                "s3://yard-home/uploads/frozen.zip",
                "s3://yard-home/uploads/frozen.zip is in an archive class of S3 and not restored"
                "; allowed: an object that can be read at once",
            ),
            (
                "a bucket that the deployment does not read",
                "s3://elsewhere/a.zip",
                f"s3://elsewhere/a.zip is not in a bucket that jobs may read; allowed: {OURS}",
            ),
            (
                "a folder of the home bucket that is not for uploads",
                "s3://yard-home/jobs/job-0/code/code.zip",
                f"s3://yard-home/jobs/job-0/code/code.zip is not in a bucket that jobs may read; allowed: {OURS}",
            ),
            (
                "a data bucket of another account",
                "s3://partner/a.zip",
                "s3://partner/a.zip cannot be read: S3 answers 403, so the bucket belongs to another account, or its"
                " policy or key denies the deployment access"
                "; allowed: what the deployment may read",
            ),
            *archives.CODE_ROWS,
            *git.ROWS,
        ),
    ),
    Section(
        "instance_types",
        "a list of 1 to 10 different EC2 types, as in g5.xlarge",
        entry="EC2 types, as in g5.xlarge",
        rows=(
            ("a text instead of a list", "g5.xlarge", '"g5.xlarge" is not a list'),
            ("an empty list", [], "is empty"),
            ("no type's name", ["G5"], '.0: "G5" does not have the right form'),
            ("shell characters", ["g5.xlarge; rm -rf /"], '.0: "g5.xlarge; rm -rf /" does not have the right form'),
            ("a pattern", ["g5.*"], '.0: "g5.*" does not have the right form'),
            ("eleven types", [f"g5.{n}xlarge" for n in range(1, 12)], "has 11 entries"),
            ("a type named twice", ["g5.xlarge", "g4ad.xlarge", "g5.xlarge"], "g5.xlarge is named more than once"),
            (
                "a type that does not exist",
                ["g9.huge"],
                "g9.huge does not exist in eu-central-1; allowed: EC2 types that the region has",
            ),
            (
                "a type that the settings do not allow",
                ["p5.48xlarge"],
                "p5.48xlarge is not allowed in this deployment; allowed: g*, t4g.*, p3.*, trn1.2xlarge (limits.instance_types in cdk.json)",
            ),
            (
                "a type that is offered in none of the deployment's zones",
                ["g4ad.xlarge"],
                "no zone of the deployment offers g4ad.xlarge; allowed: types that eu-central-1a, eu-central-1b, eu-central-1c offer",
            ),
            (
                "a family without an image in the settings",
                ["p3.2xlarge"],
                "p3.2xlarge needs an image of family p3, and the settings name none in eu-central-1"
                "; allowed: types whose images.<family> in cdk.json names an image (arm64, x86_64 are set)",
            ),
            (
                "a family whose image is gone",
                ["t4g.large"],
                "t4g.large needs an image of family arm64, and /aws/service/a names none in eu-central-1"
                "; allowed: types whose images.<family> in cdk.json names an image (arm64, x86_64 are set)",
            ),
            (
                "a type with Neuron devices, without an image for them in the settings",
                ["trn1.2xlarge"],
                "trn1.2xlarge needs an image of family neuron, and the settings name none in eu-central-1"
                "; allowed: types whose images.<family> in cdk.json names an image (arm64, x86_64 are set)",
            ),
        ),
    ),
    Section(
        "accelerators",
        "name and number of a machine's accelerators, as in H100:8",
        rows=(
            ("a number", 8, "8 is not a string"),
            ("empty", "", '"" does not have the right form'),
            ("no number", "H100", '"H100" does not have the right form'),
            ("none of them", "H100:0", '"H100:0" does not have the right form'),
            ("a fraction", "L4:0.5", '"L4:0.5" does not have the right form'),
            ("an instance type", "p5.48xlarge", '"p5.48xlarge" does not have the right form'),
            ("a list", ["H100:8"], "a list is not a string"),
            ("beside instance_types", "A10G:1", "the request has instance_types too; allowed: one of the two"),
            Row(
                "a name that no type has",
                {**WITHOUT_TYPES, "accelerators": "V300:8"},
                f"accelerators: no allowed type in eu-central-1 has V300:8; allowed: {THERE}",
                whole=True,
            ),
            Row(
                "a number that no type has",
                {**WITHOUT_TYPES, "accelerators": "A10G:3"},
                f"accelerators: no allowed type in eu-central-1 has A10G:3; allowed: {THERE}",
                whole=True,
            ),
            Row(
                "those of a type that the settings do not allow",
                {**WITHOUT_TYPES, "accelerators": "H100:8"},
                f"accelerators: no allowed type in eu-central-1 has H100:8; allowed: {THERE}",
                whole=True,
            ),
            Row(
                "those of a type that is offered in none of the deployment's zones",
                {**WITHOUT_TYPES, "accelerators": "Radeon Pro V520:1"},
                "accelerators: no zone of the deployment offers g4ad.xlarge; allowed: types that eu-central-1a, eu-central-1b, "
                "eu-central-1c offer",
                whole=True,
            ),
            Row(
                "those of a family without an image in the settings",
                {**WITHOUT_TYPES, "accelerators": "Trainium:1"},
                "accelerators: trn1.2xlarge needs an image of family neuron, and the settings name none in eu-central-1"
                "; allowed: types whose images.<family> in cdk.json names an image (arm64, x86_64 are set)",
                whole=True,
            ),
            Row(
                "of a region where the deployment does not train",
                {**WITHOUT_TYPES, "accelerators": "H100:8", "region": "us-east-1"},
                "region: the deployment does not train in us-east-1; allowed: eu-central-1 (regions with a cidr or a vpc in cdk.json)",
                whole=True,
            ),
            Row(
                "true for EFA, where no type has it",
                {**WITHOUT_TYPES, "accelerators": "A10G:1", "efa": True},
                "efa: g5.xlarge has no EFA; allowed: auto, false, or types that have it, as in p5.48xlarge",
                whole=True,
            ),
        ),
    ),
    Section(
        "secrets",
        "an object of up to 50 names of variables and the ARNs of their secrets",
        entry="arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
        taken={"KEY": f"{SECRET}token"},
        left_out={},
        rows=(
            ("no ARN", {"TOKEN": "my-secret"}, ".TOKEN: my-secret is not the ARN of a secret"),
            (
                "outside of the deployment's path",
                {"TOKEN": SECRET.replace("trainyard/yard/", "other/") + "token"},
                ".TOKEN: arn:aws:secretsmanager:eu-central-1:123456789012:secret:other/token is not a secret"
                " that jobs may read"
                f"; allowed: {SECRET}...",
            ),
            (
                "another account's",
                {"TOKEN": SECRET.replace("123456789012", "999999999999") + "token"},
                ".TOKEN: arn:aws:secretsmanager:eu-central-1:999999999999:secret:trainyard/yard/token is not a"
                " secret that jobs may read"
                f"; allowed: {SECRET}...",
            ),
            (
                "in a region that does not exist",
                {"TOKEN": SECRET.replace("eu-central-1", "eu-nowhere-9") + "token"},
                ".TOKEN: arn:aws:secretsmanager:eu-nowhere-9:123456789012:secret:trainyard/yard/token is not a"
                " secret that jobs may read"
                f"; allowed: {SECRET}...",
            ),
            (
                "no secret",
                {"TOKEN": SECRET + "missing"},
                f".TOKEN: {SECRET}missing does not exist or is being deleted; allowed: a secret that can be read",
            ),
            (
                "a secret that is being deleted",
                {"TOKEN": SECRET + "dying"},
                f".TOKEN: {SECRET}dying does not exist or is being deleted; allowed: a secret that can be read",
            ),
            (
                "more than the credentials of a job may name",
                {f"TOKEN{number}": f"{SECRET}a-long-path-of-a-secret/{number:02d}" for number in range(20)},
                "their ARNs make the policy of the job's credentials 325 characters too long; allowed: about fifteen secrets, or eight "
                "beside an image and mounts (one secret may hold several values as JSON)",
            ),
            Row(
                "a variable that environment sets too",
                {"environment": {"TOKEN": "x"}, "secrets": {"TOKEN": SECRET + "token"}},
                "secrets.TOKEN: environment has it too; allowed: one value for each variable",
            ),
        ),
    ),
    Section(
        "data",
        "a list of up to 100 addresses, as in s3://bucket/folder/",
        entry="addresses, as in s3://bucket/folder/",
        taken=["s3://datasets/imagenet/"],
        left_out=[],
        rows=(
            ("a text instead of a list", "s3://datasets/imagenet/", '"s3://datasets/imagenet/" is not a list'),
            ("no bucket", ["s3:///imagenet"], ".0: s3:///imagenet has no bucket; allowed: s3://bucket/key"),
            (
                "a part ..",
                ["s3://datasets/../secret"],
                ".0: s3://datasets/../secret has a part '..'; allowed: the plain key",
            ),
            (
                "a bucket that the deployment does not read",
                ["s3://elsewhere/x"],
                f".0: s3://elsewhere/x is not in a bucket that jobs may read; allowed: {DATA}",
            ),
            (
                "the control plane's own folder",
                ["s3://yard-home/control/"],
                f".0: s3://yard-home/control/ is not in a bucket that jobs may read; allowed: {DATA}",
            ),
            (
                "uploads, where no node may read",
                ["s3://yard-home/uploads/images/"],
                f".0: s3://yard-home/uploads/images/ is not in a bucket that jobs may read; allowed: {DATA}",
            ),
            (
                "a bucket of another account",
                ["s3://partner/x"],
                ".0: s3://partner/x cannot be read: S3 answers AccessDenied, so the bucket belongs to another account,"
                " or its policy or key denies the deployment access"
                "; allowed: what the deployment may read",
            ),
            (
                "a bucket that does not exist",
                ["s3://retired/x"],
                ".0: s3://retired/x cannot be read: there is no such bucket; allowed: what the deployment may read",
            ),
            (
                "nothing there",
                ["s3://datasets/imagenet/", "s3://datasets/cifar/"],
                ".1: there is nothing at s3://datasets/cifar/; allowed: objects and folders that exist",
            ),
            ("101 addresses", ["s3://datasets/"] * 101, "has 101 entries"),
        ),
    ),
)

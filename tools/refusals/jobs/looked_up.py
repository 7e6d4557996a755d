"""Refusals of fields that name something in the account."""

from __future__ import annotations

from tools.refusals.jobs.table import CODE, OURS, SECRET, Row, Section

LOOKED_UP = (
    Section(
        "name",
        "1 to 80 letters (a to z), digits, _, - and ., no . at the beginning",
        rows=(
            Row(
                "longer than Step Functions allows",
                {},
                (
                    "name: the execution is called"
                    " aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
                ),
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
                (
                    "name: taken is the name of a job of another execution"
                    " (arn:aws:states:eu-central-1:123456789012:execution:yard-train:another)"
                    "; allowed: a name that no job had"
                ),
                name="taken",
            ),
            Row(
                "the name of a job whose execution Step Functions has forgotten (after 90 days)",
                {},
                (
                    "name: job-of-spring is the name of a job of another execution of the same name, of 2026-09-01 08:00 UTC, whose"
                    " files are kept"
                    "; allowed: a name that no job had"
                ),
                name="job-of-spring",
            ),
        ),
    ),
    Section(
        "code",
        CODE,
        rows=(
            Row("null", {"code": None}, "code: null is not a string"),
            Row("a number", {"code": 7}, "code: 7 is not a string"),
            Row("empty", {"code": ""}, 'code: "" is not an S3 address; allowed: s3://bucket/key'),
            Row(
                "no S3 address",
                {"code": "https://example.com/a.zip"},
                "code: https://example.com/a.zip is not an S3 address; allowed: s3://bucket/key",
            ),
            Row("no bucket", {"code": "s3:///a.zip"}, "code: s3:///a.zip has no bucket; allowed: s3://bucket/key"),
            Row(
                "no bucket's name",
                {"code": "s3://My_Bucket/a.zip"},
                "code: My_Bucket is not a bucket name; allowed: s3://bucket/key",
            ),
            Row(
                "a part ..",
                {"code": "s3://yard-home/uploads/../jobs/a.zip"},
                "code: s3://yard-home/uploads/../jobs/a.zip has a part '..'; allowed: the plain key",
            ),
            Row(
                "a newline",
                {"code": "s3://yard-home/uploads/a\n.zip"},
                (
                    "code: s3://yard-home/uploads/a\\u000a.zip has control characters"
                    "; allowed: s3://bucket/key without them"
                ),
            ),
            Row(
                "half of a surrogate pair",
                {"code": "s3://yard-home/uploads/\ud800.zip"},
                'code: "s3://yard-home/uploads/\\ud800.zip" is not valid Unicode (it holds half of a surrogate pair)',
            ),
            Row(
                "a key longer than S3 allows",
                {"code": "s3://yard-home/uploads/" + "k" * 1013 + ".zip"},
                (
                    "code: s3://yard-home/uploads/kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk... has a key"
                    " of 1,025 bytes"
                    "; allowed: up to 1,024 bytes"
                ),
            ),
            Row(
                "another kind of archive",
                {"code": "s3://yard-home/uploads/a.rar"},
                "code: s3://yard-home/uploads/a.rar is not named like an archive",
            ),
            Row(
                "no object",
                {"code": "s3://yard-home/uploads/b.zip"},
                (
                    "code: s3://yard-home/uploads/b.zip does not exist"
                    "; allowed: an archive that was uploaded before the start"
                ),
            ),
            Row(
                "an empty object",
                {"code": "s3://yard-home/uploads/empty.zip"},
                (
                    "code: s3://yard-home/uploads/empty.zip is empty"
                    "; allowed: up to 5 GB (large data belongs into a data bucket)"
                ),
            ),
            Row(
                "an archive of nothing",
                {"code": "s3://yard-home/uploads/nothing.tar.gz"},
                (
                    "code: s3://yard-home/uploads/nothing.tar.gz is an empty archive"
                    "; allowed: an archive of what the command runs"
                ),
            ),
            Row(
                "no archive",
                {"code": "s3://yard-home/uploads/broken.tar.gz"},
                (
                    "code: s3://yard-home/uploads/broken.tar.gz cannot be read (truncated header)"
                    "; allowed: a whole .tar.gz, .tgz, .tar or .zip"
                ),
            ),
            Row(
                "larger than S3 copies in one piece",
                {"code": "s3://yard-home/uploads/large.zip"},
                (
                    "code: s3://yard-home/uploads/large.zip has 6.0 GB"
                    "; allowed: up to 5 GB (large data belongs into a data bucket)"
                ),
            ),
            Row(
                "in an archive class of S3",
                {"code": "s3://yard-home/uploads/frozen.zip"},
                (
                    "code: s3://yard-home/uploads/frozen.zip is in an archive class of S3 and not restored"
                    "; allowed: an object that can be read at once"
                ),
            ),
            Row(
                "a bucket that the deployment does not read",
                {"code": "s3://elsewhere/a.zip"},
                f"code: s3://elsewhere/a.zip is in no bucket that jobs may read; allowed: {OURS}",
            ),
            Row(
                "a folder of the home bucket that is not for uploads",
                {"code": "s3://yard-home/jobs/job-0/code/code.zip"},
                f"code: s3://yard-home/jobs/job-0/code/code.zip is in no bucket that jobs may read; allowed: {OURS}",
            ),
            Row(
                "a data bucket of another account",
                {"code": "s3://partner/a.zip"},
                (
                    "code: s3://partner/a.zip cannot be read: S3 answers 403, so the bucket is another account's, or its"
                    " policy or key keeps the deployment out"
                    "; allowed: what the deployment may read"
                ),
            ),
        ),
    ),
    Section(
        "instance_types",
        "a list of 1 to 10 different EC2 types, as in g5.xlarge",
        entry="EC2 types, as in g5.xlarge",
        rows=(
            Row(
                "a text instead of a list", {"instance_types": "g5.xlarge"}, 'instance_types: "g5.xlarge" is not a list'
            ),
            Row("an empty list", {"instance_types": []}, "instance_types: is empty"),
            Row("no type's name", {"instance_types": ["G5"]}, 'instance_types.0: "G5" does not have the right form'),
            Row(
                "shell characters",
                {"instance_types": ["g5.xlarge; rm -rf /"]},
                'instance_types.0: "g5.xlarge; rm -rf /" does not have the right form',
            ),
            Row("a pattern", {"instance_types": ["g5.*"]}, 'instance_types.0: "g5.*" does not have the right form'),
            Row(
                "eleven types",
                {"instance_types": [f"g5.{n}xlarge" for n in range(1, 12)]},
                "instance_types: has 11 entries",
            ),
            Row(
                "a type named twice",
                {"instance_types": ["g5.xlarge", "g4ad.xlarge", "g5.xlarge"]},
                "instance_types: g5.xlarge is named more than once",
            ),
            Row(
                "a type that does not exist",
                {"instance_types": ["g9.huge"]},
                "instance_types: g9.huge does not exist in eu-central-1; allowed: EC2 types that the region has",
            ),
            Row(
                "a type that the settings do not allow",
                {"instance_types": ["p5.48xlarge"]},
                (
                    "instance_types: p5.48xlarge is not for this deployment"
                    "; allowed: g*, t4g.*, p3.* (limits.instance_types in cdk.json)"
                ),
            ),
            Row(
                "a type that is offered in none of the deployment's zones",
                {"instance_types": ["g4ad.xlarge"]},
                (
                    "instance_types: g4ad.xlarge is offered in no zone of ours"
                    "; allowed: types that eu-central-1a, eu-central-1b, eu-central-1c offer"
                ),
            ),
            Row(
                "a family without an image in the settings",
                {"instance_types": ["p3.2xlarge"]},
                (
                    "instance_types: p3.2xlarge needs an image of family p3, and in eu-central-1 none is set"
                    "; allowed: types whose images.<family> in cdk.json names an image (arm64, x86_64 are set)"
                ),
            ),
            Row(
                "a family whose image is gone",
                {"instance_types": ["t4g.large"]},
                (
                    "instance_types: t4g.large needs an image of family arm64, and in eu-central-1 /aws/service/a names none"
                    "; allowed: types whose images.<family> in cdk.json names an image (arm64, x86_64 are set)"
                ),
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
            Row("no ARN", {"secrets": {"TOKEN": "my-secret"}}, "secrets.TOKEN: my-secret is not the ARN of a secret"),
            Row(
                "outside of the deployment's path",
                {"secrets": {"TOKEN": SECRET.replace("trainyard/yard/", "other/") + "token"}},
                (
                    "secrets.TOKEN: arn:aws:secretsmanager:eu-central-1:123456789012:secret:other/token is not a secret"
                    " that jobs may read"
                    f"; allowed: {SECRET}..."
                ),
            ),
            Row(
                "another account's",
                {"secrets": {"TOKEN": SECRET.replace("123456789012", "999999999999") + "token"}},
                (
                    "secrets.TOKEN: arn:aws:secretsmanager:eu-central-1:999999999999:secret:trainyard/yard/token is not a"
                    " secret that jobs may read"
                    f"; allowed: {SECRET}..."
                ),
            ),
            Row(
                "in a region that does not exist",
                {"secrets": {"TOKEN": SECRET.replace("eu-central-1", "eu-nowhere-9") + "token"}},
                (
                    "secrets.TOKEN: arn:aws:secretsmanager:eu-nowhere-9:123456789012:secret:trainyard/yard/token is not a"
                    " secret that jobs may read"
                    f"; allowed: {SECRET}..."
                ),
            ),
            Row(
                "no secret",
                {"secrets": {"TOKEN": SECRET + "missing"}},
                (
                    f"secrets.TOKEN: {SECRET}missing does not exist or is being deleted"
                    "; allowed: a secret that can be read"
                ),
            ),
            Row(
                "a secret that is being deleted",
                {"secrets": {"TOKEN": SECRET + "dying"}},
                f"secrets.TOKEN: {SECRET}dying does not exist or is being deleted; allowed: a secret that can be read",
            ),
            Row(
                "a variable that environment sets too",
                {"environment": {"TOKEN": "x"}, "secrets": {"TOKEN": SECRET + "token"}},
                "secrets.TOKEN: is in environment too; allowed: one value a variable",
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
            Row(
                "a text instead of a list",
                {"data": "s3://datasets/imagenet/"},
                'data: "s3://datasets/imagenet/" is not a list',
            ),
            Row(
                "no bucket",
                {"data": ["s3:///imagenet"]},
                "data.0: s3:///imagenet has no bucket; allowed: s3://bucket/key",
            ),
            Row(
                "a part ..",
                {"data": ["s3://datasets/../secret"]},
                "data.0: s3://datasets/../secret has a part '..'; allowed: the plain key",
            ),
            Row(
                "a bucket that the deployment does not read",
                {"data": ["s3://elsewhere/x"]},
                f"data.0: s3://elsewhere/x is in no bucket that jobs may read; allowed: {OURS}",
            ),
            Row(
                "the control plane's own folder",
                {"data": ["s3://yard-home/control/"]},
                f"data.0: s3://yard-home/control/ is in no bucket that jobs may read; allowed: {OURS}",
            ),
            Row(
                "a bucket of another account",
                {"data": ["s3://partner/x"]},
                (
                    "data.0: s3://partner/x cannot be read: S3 answers AccessDenied, so the bucket is another account's,"
                    " or its policy or key keeps the deployment out"
                    "; allowed: what the deployment may read"
                ),
            ),
            Row(
                "a bucket that does not exist",
                {"data": ["s3://retired/x"]},
                (
                    "data.0: s3://retired/x cannot be read: there is no such bucket"
                    "; allowed: what the deployment may read"
                ),
            ),
            Row(
                "nothing there",
                {"data": ["s3://datasets/imagenet/", "s3://datasets/cifar/"]},
                "data.1: there is nothing at s3://datasets/cifar/; allowed: objects and folders that exist",
            ),
            Row("101 addresses", {"data": ["s3://datasets/"] * 101}, "data: has 101 entries"),
        ),
    ),
)

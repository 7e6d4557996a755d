"""Lines whose code cannot run."""

from __future__ import annotations

from tools.refusals.grids.row import DATA_PLACES, UPLOADED, Row, line
from tools.refusals.grids.yard import BUCKET

CODE = f"s3://{BUCKET}/uploads/code.tar.gz"
PYTHON = ["python", "train.py"]
CODE_PLACES = f"{UPLOADED}, {DATA_PLACES} (data_buckets in cdk.json)"
ROWS = (
    Row(
        "code that nothing runs",
        line(code=CODE),
        f"line 1: code: {CODE} has neither program nor entrypoint to run it; allowed: program (AWS's containers for SageMaker) "
        "or entrypoint (any image) beside it",
    ),
    Row(
        "code with a wrong program, the only reason shown",
        line(code=CODE, program="./train.py"),
        "line 1: program: ./train.py is not a plain path; allowed: a file's path from the archive's root, as in src/train.py, of letters, "
        "digits and _./-",
    ),
    Row(
        "code with a command as a text, the only reason shown",
        line(code=CODE, command="python train.py"),
        'line 1: entrypoint: "python train.py" is not a list; allowed: a list of 1 to 100 strings of up to 256 characters',
    ),
    Row(
        "code with more words than fit behind its unpacking",
        line(code=CODE, command=[*PYTHON, *["x"] * 93]),
        "line 1: entrypoint: has 95 entries, beside those that unpack the code; allowed: up to 94",
    ),
    Row(
        "code that is a commit",
        line(code={"git": "https://github.com/owner/repository.git", "ref": "a" * 40}, program="train.py"),
        "line 1: code: an object is not a string; allowed: s3://bucket/key of a .tar.gz or .tgz, beside program or entrypoint",
    ),
    Row(
        "code that is a zip",
        line(code=CODE.replace("tar.gz", "zip"), program="train.py"),
        f"line 1: code: {CODE.replace('tar.gz', 'zip')} is not named like an archive that SageMaker's containers unpack",
    ),
    Row(
        "code that is not there",
        line(code=CODE, program="train.py"),
        f"line 1: code: {CODE} does not exist; allowed: an archive that was uploaded before the start",
    ),
    Row(
        "code in no place of the deployment",
        line(code="s3://elsewhere/code.tar.gz", program="train.py"),
        f"line 1: code: s3://elsewhere/code.tar.gz is not in a place that code may come from; allowed: {CODE_PLACES}",
    ),
    Row(
        "code of a bucket that denies access",
        line(code="s3://partner/code.tar.gz", program="train.py"),
        "line 1: code: s3://partner/code.tar.gz cannot be read: S3 answers 403, so the bucket belongs to another account, or its "
        "policy or key denies the deployment access; allowed: what the deployment may read",
    ),
    Row(
        "code of 6 GB",
        line(code=CODE, program="train.py"),
        f"line 1: code: {CODE} has 6.0 GB; allowed: up to 5 GB (large data belongs in a data bucket)",
    ),
    Row(
        "code that is not an archive",
        line(code=CODE, program="train.py"),
        f"line 1: code: {CODE} is not packed with gzip; allowed: a whole .tar.gz or .tgz",
    ),
    Row(
        "code that is cut off",
        line(code=CODE, program="train.py"),
        f"line 1: code: {CODE} cannot be read (Compressed file ended before the end-of-stream marker was reached); allowed: a whole "
        ".tar.gz or .tgz",
    ),
    Row(
        "code that climbs out of its folder",
        line(code=CODE, program="train.py"),
        f"line 1: code: {CODE} has the entry '../train.py', which points out of its folder; allowed: plain relative names, and links "
        "that stay in the archive",
    ),
    Row(
        "code without the program",
        line(code=CODE, program="trian.py"),
        f"line 1: program: runs trian.py, which is not in {CODE} (did you mean train.py?); allowed: a file of the archive, by its path "
        "from the archive's root",
    ),
    Row(
        "a program that was saved with the line ends of Windows",
        line(code=CODE, program="run.sh"),
        f"line 1: program: runs run.sh of {CODE}, which has a first line that ends with a carriage return; allowed: Unix line ends, as "
        "`dos2unix` makes them",
    ),
    Row(
        "an entry point that is not executable",
        line(code=CODE, command=["./run.sh"]),
        f"line 1: entrypoint: runs ./run.sh of {CODE}, which is not executable; allowed: a file on which `chmod +x` was run before it was "
        "packed on Linux or macOS, or its interpreter in front of it",
    ),
    Row(
        "code whose requirements conda wrote",
        line(code=CODE, program="train.py"),
        f"line 1: code: requirements.txt of {CODE} has line 1, numpy=1.26.4=py311_0, which only conda reads; allowed: lines as "
        "`pip list --format=freeze` prints them, in UTF-8 or with a byte order mark",
    ),
    Row(
        "code without what the words of the line run",
        line(code=CODE, command=["python"], arguments=["main.py"]),
        f"line 1: entrypoint: runs main.py, which is not in {CODE} (did you mean train.py?); allowed: a file of the archive, by its "
        "path from the archive's root",
    ),
    Row(
        "a program that climbs",
        line(program="../train.py"),
        "line 1: program: ../train.py is not a plain path",
    ),
    Row(
        "a program and an entry point",
        line(program="train.py", entrypoint=PYTHON),
        "line 1: program: is run by AWS's toolkit, which entrypoint replaces; allowed: one of them",
    ),
    Row(
        "a program with arguments",
        line(program="train.py", arguments=["--epochs", "3"]),
        "line 1: program: gets the hyperparameters, and arguments would replace the start of AWS's toolkit; allowed: hyperparameters",
    ),
    Row(
        "a program twice",
        line(
            program="train.py",
            hyperparameters={"sagemaker_program": "a.py"},
            environment={"SAGEMAKER_PROGRAM": "b.py"},
        ),
        "line 1: hyperparameters.sagemaker_program: is set by program; allowed: one of them",
        "line 1: environment.SAGEMAKER_PROGRAM: is set by program; allowed: one of them",
    ),
    Row(
        "data in the channel of the code",
        line(code=CODE, program="train.py", channels={"code": "s3://data-eu/train/"}),
        f"line 1: code: {CODE} becomes the channel code, which the line has too; allowed: another name for the channel",
    ),
    Row(
        "an entry point by both of its names",
        line(entrypoint=PYTHON, command=PYTHON),
        "line 1: command: is another name of entrypoint, and the line has both; allowed: one of them",
    ),
)

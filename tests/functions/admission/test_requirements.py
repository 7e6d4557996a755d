"""What Admit says of a requirements.txt: it refuses what pip refuses on every machine, and leaves the rest to pip."""

from __future__ import annotations

import codecs

import pytest

from contract.errors import InvalidRequest
from contract.training import REQUIREMENTS
from refusals.archive import MOST_KEPT, KeptFile, Listing
from refusals.requirements import ALLOWED, MOST_LINE, MOST_LINES, requirements_problems
from tests.archives import tarred
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

CODE = "s3://yard-home/uploads/a.tar.gz"
HERE = "code: requirements.txt of s3://yard-home/uploads/a.tar.gz "
THERE = frozenset({REQUIREMENTS, "train.py", "base.txt", "wheels/x.whl"})


def problems(content: bytes | str, names: frozenset[str] = THERE) -> list[str]:
    body = content.encode() if isinstance(content, str) else content
    return requirements_problems(CODE, Listing(names=names, kept={REQUIREMENTS: KeptFile(0o644, body)}))


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy==1.26.4",
        "torch>=2.0,<3",
        "torch (>=2.0)",
        "pkg [a,b] >= 1 ; python_version < '3.9'",
        "pkg;sys_platform=='linux'",
        "numpy==1.26.*",
        "pkg===1.0-weird",
        "pkg ~= 1.0  # comment",
        "pkg==1.0 --hash=sha256:aa \\\n    --hash=sha256:bb",
        "pkg @ git+https://github.com/a/b@main#egg=b",
        "pkg @ file:///opt/wheels/x.whl",
        "git+https://github.com/a/b.git@main",
        "https://example.com/x.whl",
        "https://${TOKEN}@example.com/x.whl",
        "-e .",
        "-e git+https://github.com/a/b#egg=b",
        "-r base.txt",
        "--constraint=base.txt",
        "./wheels/x.whl",
        "wheels/x.whl",
        "../outside",
        "/opt/wheels/x.whl",
        "./wheels/x.whl[extra]",
        "--extra-index-url https://example.com/simple",
        "# numpy=1.26=py311",
        "",
    ],
)
def test_a_line_that_pip_reads_is_taken(line: str) -> None:
    assert problems(f"{line}\n") == []
    assert problems(f"{line}\r\n".encode("utf-8-sig")) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("numpy=1.26.4=py311h64a7726_0", "only conda reads"),
        ("numpy=1.26.4", "only conda reads"),
        ("dependencies:", "only conda reads"),
        ("@EXPLICIT", "only conda reads"),
        ("https://repo.anaconda.com/pkgs/main/linux-64/x.conda", "only conda reads"),
        ("numpy @ file:///croot/numpy_1707/work", "names a file of the machine on which it was written"),
        (
            "numpy @ file:///home/conda/feedstock_root/build_artifacts/x/work",
            "names a file of the machine on which it was written",
        ),
        ("numpy @ file:///C:/b/abs_x/croot/work", "names a file of the machine on which it was written"),
        ("pkg @ file:///Users/me/pkg", "names a file of the machine on which it was written"),
        ("-e c:\\users\\me\\pkg", "is a path of Windows"),
        (".\\wheels\\x.whl", "is a path of Windows"),
        ("numpy 1.26.4", "is not a requirement"),
        ("numpy=>1.26", "is not a requirement"),
        ("pip install numpy", "is not a requirement"),
        ("'numpy'", "is not a requirement"),
        ("für==1", "is not a requirement"),
        ("<<<<<<< HEAD", "is not a requirement"),
        ("-r missing.txt", "names a file that is not in the archive"),
        ("-cmissing.txt", "names a file that is not in the archive"),
        ("-e ./missing", "names a file that is not in the archive"),
        ("missing.whl", "names a file that is not in the archive"),
    ],
)
def test_a_line_that_pip_refuses_is_told_with_its_number(line: str, why: str) -> None:
    assert problems(f"numpy\n\n{line}\n") == [f"{HERE}has line 3, {line}, which {why}; allowed: {ALLOWED}"]


def test_of_many_wrong_lines_the_first_is_told_and_the_others_are_counted() -> None:
    (problem,) = problems("Package Version\n------- -------\nnumpy 1.26.4\ntorch 2.1\n")
    assert "has line 1, Package Version, which is not a requirement, and 2 more such lines; allowed: " in problem


def test_a_line_that_goes_on_has_the_number_of_its_beginning() -> None:
    (problem,) = problems("numpy\ntorch==2.1 \\\n  --hash=sha256:aa\nscipy 1.0 \\\n  --hash=sha256:bb\n")
    assert "has line 4, scipy 1.0" in problem


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_what_powershell_writes_is_taken_with_its_byte_order_mark(encoding: str) -> None:
    assert problems("numpy==1.26.4\r\ntorch==2.1\r\n".encode(encoding)) == []
    assert problems(codecs.BOM_UTF16_BE + "numpy==1\n".encode("utf-16-be")) == []
    assert "has line 2, a b, which" in problems("numpy\r\na b\r\n".encode(encoding))[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("numpy==1\n".encode("utf-16-le"), "has NUL characters, as UTF-16 without a byte order mark has"),
        ("numpy\n# für\n".encode("cp1252"), "is not in UTF-8 (line 2: "),
        (codecs.BOM_UTF16_LE + b"n", "is not in UTF-16-LE (line 1: "),
        (b"# coding: nope\nnumpy\n", "names an encoding that does not exist"),
    ],
)
def test_an_encoding_that_pip_cannot_read_is_told(content: bytes, says: str) -> None:
    (problem,) = problems(content)
    assert problem.startswith(HERE + says)


def test_an_encoding_that_the_first_lines_name_is_read() -> None:
    assert problems("# -*- coding: latin-1 -*-\n# für\nnumpy\n".encode("latin-1")) == []


def test_what_no_person_writes_is_left_to_pip() -> None:
    assert problems("numpy\n" * MOST_LINES + "a b\n") == []
    assert problems(f"a{'b' * MOST_LINE} c\n") == []
    assert problems(b"# coding: punycode\na b\n" + b"9" * 100_000) == []
    assert f"has line {MOST_LINES}, a b, which" in problems("numpy\n" * (MOST_LINES - 1) + "a b\n")[0]


def test_what_was_not_seen_as_a_whole_is_left_to_pip() -> None:
    assert problems(b"a b\n" * (MOST_KEPT // 4)) == []
    assert requirements_problems(CODE, Listing(names=THERE)) == []
    assert requirements_problems(CODE, None) == []
    kept = {REQUIREMENTS: KeptFile(0o644, b"-r missing.txt\n")}
    assert requirements_problems(CODE, Listing(names=THERE, kept=kept, whole=False)) == []


def test_requirements_beside_an_image_are_not_read_because_nobody_installs_them(there: Account) -> None:
    code = there.upload("conda.tar.gz", tarred(("train.py", "x"), (REQUIREMENTS, "numpy=1.26=py311\n")))
    with pytest.raises(InvalidRequest, match="which only conda reads"):
        start({**LEAST, "code": code})
    assert start({**LEAST, "code": code, "image": "images:v1"})["job"] == "job-1"

"""Archives of which the table of refusals speaks: what is wrong is in them."""

from __future__ import annotations

import gzip
import lzma

from tests.archives import WINDOWS, flipped, packed, program, tarred, with_method, zip_entry, zip_with, zipped

TRAIN = ("train.py", "print()\n")
SOUND = zipped("train.py")


def _listing(requirements: str | bytes) -> bytes:
    return tarred(TRAIN, ("requirements.txt", requirements))


WRONG = {
    "deflate64.zip": with_method(zipped("train.py"), 9),
    "xz.tar.gz": lzma.compress(gzip.decompress(packed("train.py"))),
    "zip.tar.gz": zipped("train.py"),
    "damaged.zip": flipped(SOUND, SOUND.index(b"PK\x01\x02") + 16),
    "both.tar.gz": tarred(TRAIN, ("data", "x"), ("data/a.csv", "x")),
    "climbing.zip": zip_with((zip_entry("..\\train.py", system=WINDOWS), "print()")),
    "conda.tar.gz": _listing("# conda list --export\nnumpy=1.26.4=py311h64a7726_0\nzlib=1.2.13=hd590300_5\n"),
    "built.tar.gz": _listing("numpy @ file:///croot/numpy_1707/work\n"),
    "latin.tar.gz": _listing("numpy==1.26.4\n# f\u00fcr Bilder\n".encode("cp1252")),
    "included.tar.gz": _listing("-r base.txt\nnumpy\n"),
    "windows.tar.gz": tarred(program("run.sh", "#!/bin/bash\r\npython train.py\r\n"), ("data/a.csv", "x")),
    "bits.zip": zip_with((zip_entry("run.sh", system=WINDOWS), "#!/bin/bash\npython train.py\n")),
    "bare.tar.gz": tarred(program("run.sh", "python train.py\n")),
    "utf16.tar.gz": tarred(("train.py", "print()\n".encode("utf-16"))),
}

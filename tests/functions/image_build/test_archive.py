"""What is found in a build context without unpacking it: tricks with paths and links, bombs, broken bytes."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import tracemalloc
from typing import IO, Any

import pytest

from image_build import archive
from image_build.archive import problems
from tests.archives import header, link, raw_header, tarred, zip_entry, zip_with

DOCKERFILE = ("Dockerfile", "FROM scratch\n")


def looked(body: bytes, name: str = "context.tar.gz") -> list[str]:
    return problems(io.BytesIO(body), name)


@pytest.mark.parametrize("name", ["Dockerfile", "./Dockerfile", ".//Dockerfile"])
def test_a_dockerfile_at_the_root_is_found(name: str) -> None:
    assert looked(tarred((name, "FROM scratch\n"))) == []
    assert looked(tarred((name, "FROM scratch\n"), mode="w"), "context.tar") == []


def test_a_zip_with_a_dockerfile_is_fine() -> None:
    assert looked(zip_with(("Dockerfile", "FROM scratch\n"), ("code/", ""), ("code/a.py", "1")), "context.zip") == []


@pytest.mark.parametrize("name", ["dockerfile", "Dockerfile.gpu", "code/Dockerfile", "DOCKERFILE"])
def test_a_dockerfile_of_another_name_or_place_is_none(name: str) -> None:
    (problem,) = looked(tarred((name, "FROM scratch\n"), ("a.py", "1")))
    assert problem.startswith("has no Dockerfile at its root")


def test_a_folder_or_a_link_named_dockerfile_is_none() -> None:
    assert looked(tarred(header("Dockerfile", type=tarfile.DIRTYPE), ("a", "1")))
    assert looked(tarred(("real", "FROM scratch\n"), link("Dockerfile", "real")))


def test_a_folder_that_was_packed_instead_of_its_contents_is_told_how_to_pack() -> None:
    (problem,) = looked(tarred(("image/Dockerfile", "FROM scratch\n"), ("image/a.py", "1")))
    assert "`tar -C image -czf context.tar.gz .`" in problem


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([link("Dockerfile", "docker/gpu"), ("docker/gpu", "x")], "has a Dockerfile that is a link to docker/gpu"),
        ([header("Dockerfile", type=tarfile.DIRTYPE), ("Dockerfile/a", "x")], "has a folder named Dockerfile"),
        ([("Dockerfile.txt", "x")], "has no Dockerfile at its root (it has Dockerfile.txt)"),
        ([("dockerfile", "x"), ("a.py", "x")], "has no Dockerfile at its root (it has dockerfile)"),
        ([("Containerfile", "x")], "has no Dockerfile at its root (it has Containerfile)"),
        ([("docker/Dockerfile", "x"), ("a.py", "x")], "has no Dockerfile at its root (it has docker/Dockerfile)"),
        ([("a.py", "x")], "has no Dockerfile at its root"),
        ([("only/a.py", "x"), ("only/b.py", "x")], "has no Dockerfile at its root"),
    ],
)
def test_what_stands_in_the_place_of_a_dockerfile_is_named(members: list[Any], said: str) -> None:
    (problem,) = looked(tarred(*members))
    assert problem.startswith(f"{said}; allowed: an archive with a file named Dockerfile at its root")


def test_a_link_that_a_later_file_replaces_is_no_longer_the_dockerfile() -> None:
    assert looked(tarred(("a", "x"), link("Dockerfile", "a"), ("Dockerfile", "FROM scratch\n"))) == []


@pytest.mark.parametrize("beside", ["__MACOSX/image/._Dockerfile", ".DS_Store", "._image"])
def test_what_macos_adds_does_not_hide_that_a_folder_was_packed(beside: str) -> None:
    (problem,) = looked(zip_with(("a/b/Dockerfile", "x"), ("a/b/c.py", "1"), (beside, "")), "c.zip")
    assert (
        "(it is at a/b/Dockerfile: pack the folder's contents, as `tar -C a/b -czf context.tar.gz .` does)" in problem
    )


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "a/..", "//x"])
def test_a_name_that_leaves_the_context_is_refused(name: str) -> None:
    for body, kind in ((tarred(DOCKERFILE, (name, "x")), "c.tar.gz"), (zip_with(DOCKERFILE, (name, "x")), "c.zip")):
        (problem,) = looked(body, kind)
        assert "points out of its folder" in problem


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../up", "a/../..", "a/../b", "../../x", ""])
def test_a_link_that_leaves_the_context_or_might_is_refused(target: str) -> None:
    (problem,) = looked(tarred(DOCKERFILE, link("link", target)))
    assert "has the entry 'link', a link to" in problem


@pytest.mark.parametrize(("name", "target"), [("a", "b"), ("d/a", "../b"), ("d/e/a", "../../b"), ("a", "d/e")])
def test_a_link_that_stays_is_fine(name: str, target: str) -> None:
    assert looked(tarred(DOCKERFILE, link(name, target))) == []


def test_nothing_may_lie_below_a_link() -> None:
    (problem,) = looked(tarred(DOCKERFILE, link("d", "e"), ("d/x", "1")))
    assert "lies below a link" in problem


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "a/../../x"])
def test_a_hard_link_that_leaves_the_context_is_refused(target: str) -> None:
    (problem,) = looked(tarred(DOCKERFILE, link("hard", target, hard=True)))
    assert "out of its folder" in problem


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(kind: bytes) -> None:
    (problem,) = looked(tarred(DOCKERFILE, header("odd", type=kind)))
    assert "neither a file nor a folder nor a link" in problem


@pytest.mark.parametrize(("target", "fine"), [("target", True), ("../target", False), ("/target", False), ("", False)])
def test_a_link_in_a_zip_is_judged_as_one_in_a_tar(target: str, fine: bool) -> None:
    found = looked(zip_with(DOCKERFILE, (zip_entry("link", stat.S_IFLNK | 0o777), target)), "c.zip")
    assert (found == []) is fine


def test_only_the_first_bad_entries_are_named() -> None:
    found = looked(tarred(DOCKERFILE, *((f"/abs/{n}", "x") for n in range(100))))
    assert len(found) == archive.TOLD


def test_an_odd_name_is_shown_so_that_it_cannot_deceive() -> None:
    (problem,) = looked(tarred(DOCKERFILE, ("../\u202egpj.exe\n- tag: fine", "x")))
    assert "\n" not in problem
    assert "\u202e" not in problem


class Zeros(io.RawIOBase):
    """Endless zeros after what begins."""

    def __init__(self, head: bytes, size: int) -> None:
        self._head, self._size, self._place = head, size, 0
        self.given = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = offset + {0: 0, 1: self._place, 2: self._size}[whence]
        return self._place

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "everything at once"
        size = min(size, self._size - self._place)
        data = self._head[self._place : self._place + size]
        data += bytes(size - len(data))
        self._place += size
        self.given += size
        return data


def test_a_file_of_twenty_gigabytes_is_refused_without_reading_it() -> None:
    file = Zeros(raw_header("big", 20 * 1024**3), 21 * 1024**3)
    (problem,) = problems(file, "c.tar")  # type: ignore[arg-type]
    assert "is too large: with 'big' it would take 21,474,836,480 bytes" in problem
    assert file.given < 1024**2


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_description_of_gigabytes_is_not_taken_into_memory(kind: bytes) -> None:
    file = Zeros(raw_header("x", 5 * 1024**3, kind), 6 * 1024**3)
    (problem,) = problems(file, "c.tar")  # type: ignore[arg-type]
    assert "cannot be read" in problem
    assert file.given < 4 * 1024**2


def test_a_gzip_bomb_is_left_where_it_is_too_large() -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as whole:
        for n in range(3):
            whole.write(raw_header(f"f{n}", 5 * 1024**3))
            whole.write(bytes(1024))  # far less than was announced
    (problem,) = looked(packed.getvalue())
    assert "cannot be read" in problem or "is too large" in problem


@pytest.mark.at_length
def test_very_many_entries_are_looked_at_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_ENTRIES", 15_000)
    file = io.BytesIO(raw_header("f", 0) * 16_000 + bytes(1024))
    tracemalloc.start()
    (problem,) = problems(file, "c.tar")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "too many entries: 'f' is one more than 15,000" in problem
    assert peak < 2 * 1024**2  # kept, they would be some ten


def test_a_zip_that_lies_about_its_directory_is_not_taken_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_DIRECTORY", 70_000)
    (problem,) = looked(zip_with(*((f"{n:0100d}", "") for n in range(1000))), "c.zip")
    assert "larger than that of any valid archive" in problem


def test_a_zip_bomb_is_told_by_what_it_announces() -> None:
    body = bytearray(zip_with(DOCKERFILE, ("big", "x")))
    place = body.rindex(b"PK\x01\x02")
    body[place + 24 : place + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    three = zip_with(DOCKERFILE)
    assert looked(three, "c.zip") == []
    (problem,) = looked(bytes(body), "c.zip") or ["fine"]
    assert problem == "fine"  # 4 GB is allowed, 10 GB is not
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "MOST_BYTES", 1024**3)
        assert "more than 1,073,741,824" in looked(bytes(body), "c.zip")[0]


@pytest.mark.parametrize(
    "body", [b"", b"not an archive", b"\x1f\x8b\x08broken", b"PK\x03\x04broken", bytes(10_240), b"\xff" * 5000]
)
@pytest.mark.parametrize("name", ["c.tar", "c.tar.gz", "c.tgz", "c.zip"])
def test_broken_bytes_are_told_in_a_sentence(body: bytes, name: str) -> None:
    (problem,) = looked(body, name)
    assert "; allowed: " in problem


def test_an_archive_that_breaks_off_is_told() -> None:
    whole = tarred(DOCKERFILE, ("a", "x" * 100_000), mode="w")
    (problem,) = looked(whole[: len(whole) // 2], "c.tar")
    assert "cannot be read" in problem


def test_bytes_behind_the_last_entry_are_told() -> None:
    body = tarred(DOCKERFILE, mode="w")
    place = body.index(bytes(512), 1024)
    assert "cannot be read" in looked(body[:place] + b"\x01" * 512, "c.tar")[0]


def test_an_encrypted_zip_is_refused() -> None:
    body = bytearray(zip_with(DOCKERFILE))
    body[body.rindex(b"PK\x01\x02") + 8] |= 1
    assert "is encrypted" in looked(bytes(body), "c.zip")[0]


def test_the_pieces_that_are_read_are_small() -> None:
    sizes = []

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            sizes.append(size)
            return super().read(size)

    file: IO[bytes] = Watched(tarred(DOCKERFILE, ("a", "x" * 3_000_000)))
    assert problems(file, "c.tar.gz") == []
    assert all(size is not None and 0 <= size <= 1024**2 for size in sizes)

"""The build context on CodeBuild's machine: unpacked by whatever Python that has, and nothing of it outside."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import pytest

from image_builder.unpack import unpack
from tests.archives import header, link, tarred

FILE = ("Dockerfile", "FROM scratch\n")


HOSTILE = {
    "a path that climbs": ("../evil", "x"),
    "an absolute path": ("/etc/evil", "x"),
    "a link out": link("evil", "../outside"),
    "a hard link out": link("evil", "../outside", hard=True),
    "a device": header("evil", type=tarfile.CHRTYPE),
}


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python from before tarfile's filters, as Debian 12's 3.11.2 is."""
    for name in ("data_filter", "tar_filter", "fully_trusted_filter", "FilterError"):
        monkeypatch.delattr(tarfile, name, raising=False)

    def without(*_: object, **_named: object) -> None:
        raise TypeError("TarFile.extractall() got an unexpected keyword argument 'filter'")

    monkeypatch.setattr(tarfile.TarFile, "extractall", without)
    monkeypatch.setattr(tarfile.TarFile, "extract", without)


def context(folder: Path, *entries: tuple[str, bytes | str] | tarfile.TarInfo) -> Path:
    file = folder / "context.tar.gz"
    file.write_bytes(tarred(*entries))
    return file


@pytest.mark.parametrize("python", ["old", "this"])
@pytest.mark.parametrize("entry", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_context_is_refused_by_any_python(
    tmp_path: Path, request: pytest.FixtureRequest, python: str, entry: tuple[str, str] | tarfile.TarInfo
) -> None:
    if python == "old":
        request.getfixturevalue("old")
    (tmp_path / "outside").write_text("untouched")
    with pytest.raises(SystemExit, match=r"^The context has the entry .*evil"):
        unpack(context(tmp_path, FILE, entry), tmp_path / "context")
    assert (tmp_path / "outside").read_text() == "untouched"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("python", ["old", "this"])
def test_a_context_is_unpacked_by_any_python(tmp_path: Path, request: pytest.FixtureRequest, python: str) -> None:
    if python == "old":
        request.getfixturevalue("old")
    script = header("run.sh", mode=0o4755)
    unpack(context(tmp_path, FILE, script, link("again.sh", "run.sh")), tmp_path / "context")
    assert (tmp_path / "context/Dockerfile").read_text() == "FROM scratch\n"
    assert stat.S_IMODE((tmp_path / "context/run.sh").stat().st_mode) == 0o755
    assert (tmp_path / "context/again.sh").is_symlink()


def test_what_has_no_dockerfile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^The context has no Dockerfile at its root\.$"):
        unpack(context(tmp_path, ("app/Dockerfile", "FROM scratch\n")), tmp_path / "context")

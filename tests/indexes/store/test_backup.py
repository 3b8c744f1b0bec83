"""Backups: one generation, whole, while writers continue; restored from folders and archives, and nothing else."""

import errno
import io
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexes.disk import writing
from indexes.interface import DamagedError, IndexesError
from indexes.store import backup as backups
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import records
from linker.engine.engine import Engine
from tests.faults.support import assert_tidy, content
from tests.faults.test_compaction import document, fresh
from tests.helpers import linker, linker_process


@pytest.fixture
def out(tmp_path: Path) -> Path:
    out = fresh(tmp_path / "i", [document(n) for n in range(60)])
    linker("index", "delete", out, "d3", "--keep", "1")
    return out


def no_links(*_: object) -> None:
    raise OSError(errno.EXDEV, "no links here")


@pytest.mark.parametrize("linked", [True, False])
def test_a_folder_is_the_same(
    out: Path, tmp_path: Path, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linked:
        monkeypatch.setattr(Path, "hardlink_to", no_links)
    copy = tmp_path / "deep" / "copy"
    done = linker("index", "backup", out, copy).stdout
    assert f"{copy}: generation {manifests.load(out).generation} of {out}, 59 documents" in done
    assert content(copy) == content(out)
    assert_tidy(copy)
    for name in manifests.load(copy).files:
        assert (copy / name).samefile(out / name) == linked
    before = content(out)
    linker("index", "delete", copy, "d4")
    linker("index", "compact", copy)
    assert content(out) == before
    linker("index", "drop", copy, "--yes")
    assert not copy.exists()
    assert content(out) == before


def test_archives_go_to_files_and_through_pipes(out: Path, tmp_path: Path) -> None:
    archive = tmp_path / "i.tar"
    linker("index", "backup", out, archive)
    piped = subprocess.run(
        [sys.executable, "-m", "linker", "index", "backup", str(out), "-"], capture_output=True, check=True
    )
    assert piped.stdout == archive.read_bytes()
    linker("index", "restore", archive, tmp_path / "r")
    (tmp_path / "s").mkdir()
    restored = subprocess.run(
        [sys.executable, "-m", "linker", "index", "restore", "-", str(tmp_path / "s")],
        input=piped.stdout, capture_output=True, check=True,
    )  # fmt: skip
    assert restored.stdout.decode() == f"{tmp_path / 's'}: generation 2 restored, 59 documents\n"
    for copy in (tmp_path / "r", tmp_path / "s"):
        assert content(copy) == content(out)
        assert_tidy(copy)


def test_nothing_is_overwritten(out: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "mine").write_text("mine", encoding="utf-8")
    (tmp_path / "old.tar").write_text("mine", encoding="utf-8")
    linker("index", "backup", out, tmp_path / "b")
    for arguments in (
        ("backup", out, tmp_path / "old"),
        ("backup", out, tmp_path / "old.tar"),
        ("backup", out, out),
        ("restore", tmp_path / "b", tmp_path / "old"),
        ("restore", tmp_path / "b", out),
    ):
        assert "already exists" in linker("index", *arguments, check=1).stderr
    assert (tmp_path / "old.tar").read_text() == (tmp_path / "old" / "mine").read_text() == "mine"
    assert "holds no index" in linker("index", "backup", tmp_path / "old", tmp_path / "n", check=1).stderr
    assert (
        "is not a backup" in linker("index", "restore", tmp_path / "nothing", tmp_path / "n", check=1).stderr
    )
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("target", ["b", "b.tar"])
def test_a_damaged_index_has_no_backup(out: Path, tmp_path: Path, target: str) -> None:
    victim = out / next(name for name in manifests.load(out).files if name.endswith("ids.txt"))
    victim.write_bytes(victim.read_bytes().replace(b"d7", b"d8"))
    assert str(victim) in linker("index", "backup", out, tmp_path / target, check=1).stderr
    victim.unlink()
    assert str(victim) in linker("index", "backup", out, tmp_path / target, check=1).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_a_writer_that_sweeps_is_overtaken(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files deleted after being opened are copied; files deleted earlier make the backup restart."""
    linker("index", "compact", out, "--keep", "0")
    opened = backups._open_all
    attempts: list[Any] = []

    def swept(directory: Path, *rest: Any) -> Any:
        if not attempts:
            remove(out)
        attempts.append(opened(directory, *rest))
        if attempts[1:]:
            remove(out)
        return attempts[-1]

    monkeypatch.setattr(backups, "_open_all", swept)
    backups.backup(out, tmp_path / "b")
    assert [bool(files) for files in attempts] == [False, True]
    assert manifests.load(tmp_path / "b").generation < manifests.load(out).generation
    assert storage.damage(tmp_path / "b", manifests.load(tmp_path / "b")) == []


def remove(out: Path) -> None:
    """Delete a document and compact, so that no file of the previous generation is left."""
    linker("index", "delete", out, Engine(out).collection.rows.ids[0])
    linker("index", "compact", out)


KILL = """
import os, signal, sys
from pathlib import Path
from indexes.disk import writing
from indexes.store import backup
write, left = writing.write, [int(sys.argv[3])]
def dying(path, parts):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, parts)
def link(*_):
    raise OSError(18, "no links here")
writing.write, Path.hardlink_to = dying, link
backup.restore(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["b", "b.tar"])
@pytest.mark.parametrize("after", [0, 3, 6])
def test_a_killed_restore_leaves_nothing(out: Path, tmp_path: Path, kind: str, after: int) -> None:
    linker("index", "backup", out, tmp_path / kind)
    target = tmp_path / "r"
    killed = subprocess.run(
        [sys.executable, "-c", KILL, str(tmp_path / kind), str(target), str(after)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    linker("index", "restore", tmp_path / kind, target)
    assert content(target) == content(out)


def test_a_full_disk_leaves_no_half_archive(out: Path, tmp_path: Path) -> None:
    limit = "import resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, (5000, 5000)); from linker.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", limit, "index", "backup", str(out), str(tmp_path / "b.tar")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert "ulimit -f" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def rewritten(archive: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> bytes:
    with tarfile.open(archive) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    change(members)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def renamed(members: list[tuple[tarfile.TarInfo, bytes]], name: str) -> None:
    members[1][0].name = name


def retyped(members: list[tuple[tarfile.TarInfo, bytes]], kind: bytes) -> None:
    member, _ = members[1]
    members[1] = (member, b"")
    member.type, member.size, member.linkname = kind, 0, "/etc/passwd"


def flipped(members: list[tuple[tarfile.TarInfo, bytes]], number: int) -> None:
    member, data = members[number]
    members[number] = (member, bytes([data[0] ^ 1]) + data[1:])


HOSTILE: dict[str, Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]] = {
    "outside": lambda m: renamed(m, "../evil"), "absolute": lambda m: renamed(m, "/tmp/evil"),
    "unlisted": lambda m: renamed(m, "segments/000001/evil"), "link": lambda m: retyped(m, tarfile.SYMTYPE),
    "hard link": lambda m: retyped(m, tarfile.LNKTYPE), "device": lambda m: retyped(m, tarfile.CHRTYPE),
    "pipe": lambda m: retyped(m, tarfile.FIFOTYPE), "folder": lambda m: retyped(m, tarfile.DIRTYPE),
    "twice": lambda m: m.insert(1, m[1]), "missing": lambda m: m.pop(1) and None,
    "no manifest": lambda m: m.pop(0) and None, "altered": lambda m: flipped(m, 2),
    "altered manifest": lambda m: flipped(m, 0), "empty": lambda m: m.clear(),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_an_archive_from_elsewhere_reaches_nothing(out: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    backups.backup(out, folder / "b.tar")
    (folder / "c.tar").write_bytes(rewritten(folder / "b.tar", HOSTILE[what]))
    with pytest.raises(DamagedError, match=r"c\.tar"):
        backups.restore(folder / "c.tar", folder / "r")
    assert sorted(path.name for path in folder.iterdir()) == ["b.tar", "c.tar"]
    assert not (tmp_path / "evil").exists()


def test_a_manifest_that_lists_other_names_is_no_backup(tmp_path: Path) -> None:
    record = writing.write(tmp_path / "secret", [b"secret"])
    (tmp_path / "i").mkdir()
    storage.replace_manifest(tmp_path / "i", records.Manifest(files={"../secret": record}))
    with pytest.raises(IndexesError):
        backups.backup(tmp_path / "i", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_an_archive_cut_short_is_damaged(out: Path, tmp_path: Path) -> None:
    backups.backup(out, tmp_path / "b.tar")
    data = (tmp_path / "b.tar").read_bytes()
    for length in (0, 100, 600, len(data) // 2):
        (tmp_path / "c.tar").write_bytes(data[:length])
        refused = linker("index", "restore", tmp_path / "c.tar", tmp_path / "r", check=1).stderr
        assert "c.tar" in refused
        assert not (tmp_path / "r").exists()
    assert linker_process("index", "backup", out, "-", "--json", check=2).stderr
